#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/hlo/shape.h"

namespace plait::graph {

// key=value behind an instruction, or in the module's first line; the value is kept as written.
struct Attribute {
  std::string key;
  std::string value;
  friend bool operator==(const Attribute&, const Attribute&) = default;
};

// A computation that an instruction names: to_apply=, body=, calls= and so on.
struct Called {
  std::string role;  // the attribute's key
  int computation = 0;
  friend bool operator==(const Called&, const Called&) = default;
};

struct Instruction {
  std::string name;  // without '%'
  std::string opcode;
  Shape shape;
  std::vector<int> operands;  // positions in the computation
  std::vector<Attribute> attributes;
  std::vector<Called> called;
  std::string literal;  // of a constant: what stands between its parentheses
  int parameter = -1;   // the number of a parameter
  int line = 0;         // where it was read
  int column = 0;

  const std::string* attribute(std::string_view key) const;
};

struct Computation {
  std::string name;
  std::vector<Instruction> instructions;  // operands before their users
  std::vector<int> parameters;            // by number: positions in `instructions`
  int root = 0;
  std::vector<Attribute> attributes;
};

// A program as its text says it.
struct Module {
  std::string name;
  std::string where;  // the file, for messages
  std::vector<Attribute> attributes;
  std::string alias_place;  // of input_output_alias, for messages; "" where it has none
  std::string tables;       // FileNames and its like, as written
  std::vector<Computation> computations;
  int entry = 0;

  const Computation& entry_computation() const { return computations[entry]; }
  const std::string* attribute(std::string_view key) const;
  // "step.hlo:12:3", for messages about an instruction.
  std::string place(const Instruction& instruction) const;
};

int instruction_count(const Module& module);
// True where a constant is written as {...}: it can be planned, not run.
bool has_elided_constants(const Module& module);

}  // namespace plait::graph
