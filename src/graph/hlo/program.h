#pragma once

#include <string>
#include <vector>

#include "graph/hlo/module.h"

namespace plait::graph {

// An array that the program computes or is given.
struct Value {
  const Shape* shape = nullptr;  // an array's
  int node = -1;                 // that makes it
  int output = 0;                // which of the node's

  const std::vector<std::int64_t>& dims() const { return shape->dims; }
};

enum class NodeKind {
  op,          // an instruction
  argument,    // a leaf of a parameter of the program
  loop_enter,  // a value that a loop carries, as its body sees it; operands: before, from the body
  loop_exit,   // the same after the loop; operand: from the body
  join         // of the branches of a conditional
};

struct Node {
  NodeKind kind = NodeKind::op;
  const Instruction* source = nullptr;  // of the module; the while for loop_enter and loop_exit
  int computation = 0;                  // that the source stands in
  std::vector<int> operands;            // values
  std::vector<int> barriers;            // of each operand, see Program::barrier; empty = none
  std::vector<int> outputs;             // values
  int loop = -1;                        // that it stands in
  int runs_in = -1;                     // the same, but for what the loop changes nothing of
  int argument = -1;  // the leaf's number, of the program's, the loop's or the conditional's

  bool is(std::string_view opcode) const {
    return kind == NodeKind::op && source->opcode == opcode;
  }
};

struct Loop {
  int parent = -1;
  double trips = 1;
  bool known = true;  // the number of trips was found
  const Instruction* source = nullptr;
};

// The program as a graph of arrays: calls, fusions and tuples are resolved, what no result needs is
// left out, bodies of loops stand once. Nodes are in an order in which operands come first, except
// for what a loop_enter gets from its own body.
struct Program {
  const Module* module = nullptr;  // must outlive the program
  std::vector<Node> nodes;
  std::vector<Value> values;
  std::vector<Loop> loops;
  std::vector<int> arguments;                // nodes, by leaf of the parameters
  std::vector<int> results;                  // values, by leaf of the root
  std::vector<std::pair<int, int>> donated;  // (argument, result) that share memory
  std::vector<std::string> warnings;

  double trips(int node) const;          // how often it runs in a step
  double trips_of_loop(int loop) const;  // -1: outside of any
  // The outermost loop that the node runs in and the value is made outside of; -1 = there is none.
  int entered_loop(int value, int node) const;
  // The first barrier that a value goes through on its way to an operand, leaving out those inside
  // of loops that only hand it through; -1 = none. Compilers see another value behind it.
  int barrier(int node, int operand) const {
    const std::vector<int>& all = nodes[node].barriers;
    return operand < 0 || all.empty() ? -1 : all[operand];
  }
  std::vector<std::vector<int>> users() const;  // of each value: nodes, ascending
};

// InputError for recursion of computations and for programs that calls make longer than is
// reasonable.
Program flatten(const Module& module);

}  // namespace plait::graph
