#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graph/factor/rule.h"

namespace plait::graph {

using Dims = std::vector<std::int64_t>;

inline bool contains(const Dims& dims, std::int64_t dim) {
  return std::ranges::find(dims, dim) != dims.end();
}

// A rule being written. Every dimension is bound once; finish() checks that the factors multiply to
// the dimensions, so that a shape that contradicts its op is found here.
class RuleBuilder {
 public:
  RuleBuilder(const Program& program, const Node& node);

  const Instruction& source() const { return *node_.source; }
  const Node& node() const { return node_; }
  int operand_count() const { return static_cast<int>(node_.operands.size()); }
  int output_count() const { return static_cast<int>(node_.outputs.size()); }
  const std::vector<std::int64_t>& operand(int i) const;
  const std::vector<std::int64_t>& output(int i = 0) const;
  int rank(int i) const { return static_cast<int>(operand(i).size()); }
  int output_rank(int i = 0) const { return static_cast<int>(output(i).size()); }

  // The op that combines two values in what the node applies: "add", "maximum"; "parameter" where
  // one of them replaces the other, "" where nothing is applied.
  const std::string& combining_op() const;

  int factor(std::int64_t size, FactorKind kind = FactorKind::pass);
  // Appends the factor to a dimension, inside of what it has already.
  void bind_operand(int i, std::int64_t dim, int factor);
  void bind_output(int i, std::int64_t dim, int factor);
  // A factor of their common size for a dimension of an operand and one of an output.
  void pass(int operand_index, std::int64_t dim, int output_index, std::int64_t output_dim);

  // Nothing where no neighbour has what is wanted.
  void halo(const Halo& halo);

  void need_operands(int count) const;
  void need_outputs(int count) const;
  // Dimensions that nothing was said about cannot be divided.
  Rule finish();
  [[noreturn]] void contradicts(const std::string& what) const;
  void need(bool holds, const std::string& what) const {
    if (!holds) contradicts(what);
  }

 private:
  void close(TensorFactors& tensor, const std::vector<std::int64_t>& dims);
  const Program& program_;
  const Node& node_;
  Rule rule_;
};

// The rules, one function a family of ops; rules.cpp has the table.
void dot_rule(RuleBuilder& rule);
void convolution_rule(RuleBuilder& rule);
void gather_rule(RuleBuilder& rule);
void scatter_rule(RuleBuilder& rule);
void batch_norm_rule(RuleBuilder& rule);
void reduce_rule(RuleBuilder& rule);
void elementwise_rule(RuleBuilder& rule);
void broadcast_rule(RuleBuilder& rule);
void transpose_rule(RuleBuilder& rule);
void reverse_rule(RuleBuilder& rule);
void reshape_rule(RuleBuilder& rule);
void slice_rule(RuleBuilder& rule);
void pad_rule(RuleBuilder& rule);
void concatenate_rule(RuleBuilder& rule);
void dynamic_slice_rule(RuleBuilder& rule);
void dynamic_update_slice_rule(RuleBuilder& rule);
void window_rule(RuleBuilder& rule);
void sort_rule(RuleBuilder& rule);
void top_k_rule(RuleBuilder& rule);
void source_rule(RuleBuilder& rule);
void matrix_rule(RuleBuilder& rule);
void replicated_rule(RuleBuilder& rule);

}  // namespace plait::graph
