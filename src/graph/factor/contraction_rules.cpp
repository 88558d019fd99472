// Ops that multiply and sum, and those that do the same as if with a one-hot matrix.

#include <algorithm>
#include <array>
#include <string_view>

#include "graph/factor/rule_builder.h"
#include "graph/factor/window.h"
#include "graph/hlo/attributes.h"

namespace plait::graph {
namespace {

// Partial results of the op can be combined by an all-reduce.
bool has_collective(const RuleBuilder& rule) {
  constexpr std::array<std::string_view, 7> kKnown{"",        "add", "multiply", "maximum",
                                                   "minimum", "and", "or"};
  return std::ranges::find(kKnown, rule.combining_op()) != kKnown.end();
}

}  // namespace

// Output: batch dimensions, then free ones of the left, then free ones of the right.
void dot_rule(RuleBuilder& rule) {
  rule.need(rule.operand_count() >= 2, "it must have two operands");
  const Dims lhs_batch = integers(rule.source(), "lhs_batch_dims");
  const Dims rhs_batch = integers(rule.source(), "rhs_batch_dims");
  const Dims lhs_contracting = integers(rule.source(), "lhs_contracting_dims");
  const Dims rhs_contracting = integers(rule.source(), "rhs_contracting_dims");
  rule.need(
      lhs_batch.size() == rhs_batch.size() && lhs_contracting.size() == rhs_contracting.size(),
      "its sides have different numbers of dimensions");
  const auto size_of_lhs = [&](std::int64_t d) {
    rule.need(d >= 0 && d < rule.rank(0), "a dimension is not one of its operands'");
    return rule.operand(0)[d];
  };
  std::int64_t out = 0;
  for (std::size_t i = 0; i < lhs_batch.size(); ++i) {
    const int f = rule.factor(size_of_lhs(lhs_batch[i]));
    rule.bind_operand(0, lhs_batch[i], f);
    rule.bind_operand(1, rhs_batch[i], f);
    rule.bind_output(0, out++, f);
  }
  for (std::size_t i = 0; i < lhs_contracting.size(); ++i) {
    const int f = rule.factor(size_of_lhs(lhs_contracting[i]), FactorKind::reduction);
    rule.bind_operand(0, lhs_contracting[i], f);
    rule.bind_operand(1, rhs_contracting[i], f);
  }
  for (std::int64_t d = 0; d < rule.rank(0); ++d)
    if (!contains(lhs_batch, d) && !contains(lhs_contracting, d)) rule.pass(0, d, 0, out++);
  for (std::int64_t d = 0; d < rule.rank(1); ++d)
    if (!contains(rhs_batch, d) && !contains(rhs_contracting, d)) rule.pass(1, d, 0, out++);
  rule.need(out == rule.output_rank(), "the result has " + std::to_string(rule.output_rank()) +
                                           " dimensions, and must have " + std::to_string(out));
}

// Feature groups are a factor of all three tensors; groups of the batch are one of the batch and of
// the features that come out. Positions pass, or are summed over where the window is as large as
// the operand, with what the window wants of neighbours; with groups only where it is of one
// position.
void convolution_rule(RuleBuilder& rule) {
  rule.need_operands(2);
  const ConvolutionDims dims = convolution_dims(rule.source());
  const int spatial = static_cast<int>(dims.lhs_spatial.size());
  rule.need(dims.valid && rule.rank(0) == spatial + 2 && rule.rank(1) == spatial + 2 &&
                rule.output_rank() == spatial + 2,
            "dim_labels do not fit its operands");
  const std::int64_t groups =
      std::max<std::int64_t>(integer_or(rule.source(), "feature_group_count", 1), 1);
  const std::int64_t batches =
      std::max<std::int64_t>(integer_or(rule.source(), "batch_group_count", 1), 1);
  const std::int64_t outputs = rule.operand(1)[dims.rhs_output];
  const std::int64_t batch = rule.operand(0)[dims.lhs_batch];
  rule.need(outputs % (groups * batches) == 0 && batch % batches == 0,
            "groups do not divide its features");
  // XLA's partitioner divides groups of one feature each, but no others: of those, every device
  // computes all of what it is not given by a divided inner range.
  const std::int64_t inputs = rule.operand(1)[dims.rhs_input];
  const bool features_stay = groups > 1 && inputs > 1;
  const bool batches_stay = batches > 1 && (batches != batch || batches != outputs);
  const FactorKind pass =
      features_stay || batches_stay ? FactorKind::replication : FactorKind::pass;
  const int group = rule.factor(groups, pass);
  const int batch_group = rule.factor(batches, pass);
  const int rows = rule.factor(batch / batches, pass);
  const int columns = rule.factor(outputs / groups / batches, pass);
  const int inner =
      rule.factor(inputs, features_stay ? FactorKind::replication : FactorKind::reduction);
  rule.bind_operand(0, dims.lhs_batch, batch_group);
  rule.bind_operand(0, dims.lhs_batch, rows);
  rule.bind_operand(0, dims.lhs_feature, group);
  rule.bind_operand(0, dims.lhs_feature, inner);
  rule.bind_operand(1, dims.rhs_input, inner);
  for (const int f : {group, batch_group, columns}) {
    rule.bind_operand(1, dims.rhs_output, f);
    rule.bind_output(0, dims.out_feature, f);
  }
  rule.bind_output(0, dims.out_batch, rows);
  if (groups == 1 && batches == 1) {
    bind_positions(rule, dims);
    return;
  }
  const std::vector<Window> windows = windows_of(rule.source(), spatial);
  for (int s = 0; s < spatial; ++s)
    if (windows[s] == Window() && rule.operand(1)[dims.rhs_spatial[s]] == 1)
      rule.pass(0, dims.lhs_spatial[s], 0, dims.out_spatial[s]);
}

// Rows of the operand that whole slices are taken from are summed over, as in a product with a
// one-hot matrix: a device that has only some rows gives zeros for the others.
void gather_rule(RuleBuilder& rule) {
  rule.need_operands(2);
  const Instruction& it = rule.source();
  const Dims offset = integers(it, "offset_dims");
  const Dims collapsed = integers(it, "collapsed_slice_dims");
  const Dims map = integers(it, "start_index_map");
  const Dims sizes = integers(it, "slice_sizes");
  const Dims batching = integers(it, "operand_batching_dims");
  const Dims index_batching = integers(it, "start_indices_batching_dims");
  const std::int64_t vector_dim = integer_or(it, "index_vector_dim", rule.rank(1));
  rule.need(sizes.size() == rule.operand(0).size() && batching.size() == index_batching.size(),
            "slice_sizes do not fit its operand");
  // Dimensions of the indices that become dimensions of the result, in order.
  std::vector<int> index_factor(rule.rank(1), -1);
  std::int64_t out = 0;
  for (std::int64_t d = 0; d < rule.rank(1); ++d) {
    if (d == vector_dim) continue;
    while (contains(offset, out)) ++out;
    index_factor[d] = rule.factor(rule.operand(1)[d]);
    rule.bind_operand(1, d, index_factor[d]);
    rule.bind_output(0, out++, index_factor[d]);
  }
  std::size_t next_offset = 0;
  for (std::int64_t d = 0; d < rule.rank(0); ++d) {
    const auto batch = std::ranges::find(batching, d);
    if (batch != batching.end()) {
      const std::int64_t index_dim = index_batching[batch - batching.begin()];
      rule.need(index_dim >= 0 && index_dim < rule.rank(1), "a batching dimension does not exist");
      rule.bind_operand(0, d, index_factor[index_dim]);
      continue;
    }
    if (contains(collapsed, d)) {
      if (contains(map, d) && sizes[d] == 1)
        rule.bind_operand(0, d, rule.factor(rule.operand(0)[d], FactorKind::reduction));
      continue;
    }
    rule.need(next_offset < offset.size(), "offset_dims are too few");
    const std::int64_t out_dim = offset[next_offset++];
    if (sizes[d] == rule.operand(0)[d]) rule.pass(0, d, 0, out_dim);
  }
}

// Updates are added to rows: divided updates give partial results. What is written over others
// depends on the order, so that its updates are not divided.
void scatter_rule(RuleBuilder& rule) {
  const Instruction& it = rule.source();
  rule.need(rule.operand_count() >= 3 && rule.operand_count() % 2 == 1, "operands are missing");
  const int count = rule.operand_count() / 2;
  rule.need_outputs(count);
  const Dims window = integers(it, "update_window_dims");
  const Dims inserted = integers(it, "inserted_window_dims");
  const Dims batching = integers(it, "input_batching_dims");
  const Dims index_batching = integers(it, "scatter_indices_batching_dims");
  rule.need(batching.size() == index_batching.size(), "batching dimensions do not fit");
  const std::int64_t vector_dim = integer_or(it, "index_vector_dim", rule.rank(count));
  const FactorKind divided = has_collective(rule) ? FactorKind::reduction : FactorKind::replication;
  std::vector<int> index_factor(rule.rank(count), -1);
  std::int64_t update = 0;
  for (std::int64_t d = 0; d < rule.rank(count); ++d) {
    if (d == vector_dim) continue;
    while (contains(window, update)) ++update;
    const bool batch = contains(index_batching, d);
    index_factor[d] = rule.factor(rule.operand(count)[d], batch ? FactorKind::pass : divided);
    rule.bind_operand(count, d, index_factor[d]);
    for (int i = 0; i < count; ++i) rule.bind_operand(count + 1 + i, update, index_factor[d]);
    ++update;
  }
  std::size_t next_window = 0;
  for (std::int64_t d = 0; d < rule.rank(0); ++d) {
    const auto batch = std::ranges::find(batching, d);
    int f = -1;
    std::int64_t update_dim = -1;
    if (batch != batching.end()) {
      const std::int64_t index_dim = index_batching[batch - batching.begin()];
      rule.need(index_dim >= 0 && index_dim < rule.rank(count), "a batching dimension is absent");
      f = index_factor[index_dim];
    } else if (contains(inserted, d)) {
      f = rule.factor(rule.operand(0)[d]);
    } else {
      rule.need(next_window < window.size(), "update_window_dims are too few");
      const std::int64_t at = window[next_window++];
      rule.need(at >= 0 && at < rule.rank(count + 1), "an update_window_dim does not exist");
      const bool whole = rule.operand(count + 1)[at] == rule.operand(0)[d];
      f = rule.factor(rule.operand(0)[d], whole ? FactorKind::pass : FactorKind::replication);
      if (whole) update_dim = at;
    }
    for (int i = 0; i < count; ++i) {
      rule.bind_operand(i, d, f);
      rule.bind_output(i, d, f);
      if (update_dim >= 0) rule.bind_operand(count + 1 + i, update_dim, f);
    }
  }
}

// Features pass; everything else is summed for mean and variance, or for the gradients of scale and
// offset.
void batch_norm_rule(RuleBuilder& rule) {
  rule.need(rule.operand_count() >= 3 && rule.output_count() >= 1, "operands are missing");
  const std::int64_t feature = integer_or(rule.source(), "feature_index", 1);
  rule.need(feature >= 0 && feature < rule.rank(0), "feature_index is not a dimension");
  const int whole = rule.rank(0);
  for (std::int64_t d = 0; d < whole; ++d) {
    const int f =
        rule.factor(rule.operand(0)[d], d == feature ? FactorKind::pass : FactorKind::reduction);
    for (int i = 0; i < rule.operand_count(); ++i) {
      if (rule.rank(i) == whole) rule.bind_operand(i, d, f);
      if (rule.rank(i) == 1 && whole > 1 && d == feature) rule.bind_operand(i, 0, f);
    }
    for (int i = 0; i < rule.output_count(); ++i) {
      if (rule.output_rank(i) == whole) rule.bind_output(i, d, f);
      if (rule.output_rank(i) == 1 && whole > 1 && d == feature) rule.bind_output(i, 0, f);
    }
  }
}

void reduce_rule(RuleBuilder& rule) {
  const Dims reduced = integers(rule.source(), "dimensions");
  const int count = rule.operand_count() / 2;
  rule.need(rule.operand_count() % 2 == 0 && count >= 1, "initial values are missing");
  rule.need_outputs(count);
  // Several results (the largest and where it is) are gathered and reduced again.
  const FactorKind divided =
      count > 1 || has_collective(rule) ? FactorKind::reduction : FactorKind::replication;
  std::int64_t out = 0;
  for (std::int64_t d = 0; d < rule.rank(0); ++d) {
    const bool gone = contains(reduced, d);
    const int f = rule.factor(rule.operand(0)[d], gone ? divided : FactorKind::pass);
    for (int i = 0; i < count; ++i) {
      rule.bind_operand(i, d, f);
      if (!gone) rule.bind_output(i, out, f);
    }
    if (!gone) ++out;
  }
  rule.need(out == rule.output_rank(), "the result has " + std::to_string(rule.output_rank()) +
                                           " dimensions, and must have " + std::to_string(out));
}

}  // namespace plait::graph
