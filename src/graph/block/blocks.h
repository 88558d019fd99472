#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/block/phases.h"
#include "graph/factor/rule.h"

namespace plait::graph {

// A way to divide a block: along one group of index ranges of its key contraction.
struct Role {
  std::string name;          // "rows", "columns", "inner", "batch"; "batch2" for a second one
  std::vector<int> classes;  // of factors, the major one first
  std::vector<std::int64_t> sizes;
  // Which of them begin a dimension, and can be divided without those before: of rows the batch,
  // and the positions of a sequence or of an image.
  std::vector<int> starts{0};
  // For people: "heads" for columns whose major range is a batch of the products of activations
  // behind them, as attention's scores; else the name.
  std::string called{};
  friend bool operator==(const Role&, const Role&) = default;
};

// A ParallelBlock: a contraction with a weight, its gradients, and what hangs on it without
// communication. A partition of the key contraction decides the partition of all of it.
struct Block {
  int key = -1;                   // the node that the roles are those of
  std::vector<int> contractions;  // nodes, ascending
  std::vector<int> nodes;         // all, ascending
  std::vector<Role> roles;
  std::vector<int> stored;        // classes as its largest arguments have them, the outermost first
  bool convolves = false;         // some product has a window
  std::uint64_t fingerprint = 0;  // equal for blocks that behave alike
  int level = 0;                  // of the key, for the order of blocks
  std::string name;               // for people: where the program says it comes from
};

// In the order of the forward pass.
struct Blocks {
  std::vector<Block> blocks;
  std::vector<int> of_node;  // -1: belongs to none, or to several; kept whole on every device
  // Of each node and factor of its rule: the class, shared inside a block by what is partitioned
  // together; -1 = never partitioned.
  std::vector<std::vector<int>> classes;
  // Of each node and factor: 1 where an array has another range of the same class that is divided
  // in its place. Attention has its positions twice, as rows and as what each row looks at.
  std::vector<std::vector<char>> yields;
  int class_count = 0;
};

Blocks find_blocks(const Program& program, const std::vector<Rule>& rules, const Phases& phases);

// Steps of find_blocks.
struct Assignment {
  std::vector<int> of_node;
  std::vector<int> key;    // of each block
  std::vector<int> again;  // of each node: the product that it repeats in the backward pass; or -1
  std::vector<int> gradient_of;  // of each node: the product that it is a gradient of; or -1
};
Assignment assign_blocks(const Program& program, const std::vector<Rule>& rules,
                         const Phases& phases, const std::vector<std::uint64_t>& numbers);
// Blocks whose key is a batched product right behind another with the same batch become one.
bool merge_batched_pairs(const Program& program, const std::vector<Rule>& rules,
                         const Phases& phases, const Blocks& classified, Assignment& assignment);
void find_classes(const Program& program, const std::vector<Rule>& rules, const Phases& phases,
                  const std::vector<std::uint64_t>& numbers, const Assignment& pairs,
                  Blocks& blocks);

// Factors of a contraction by what they are to it.
struct ContractionFactors {
  std::vector<int> batch;    // in both operands and the result
  std::vector<int> rows;     // of the activation (the left side) and the result
  std::vector<int> columns;  // of the weight (the right side) and the result
  std::vector<int> inner;    // in no result
};
ContractionFactors contraction_factors(const Node& node, const Rule& rule, int weight_operand);

}  // namespace plait::graph
