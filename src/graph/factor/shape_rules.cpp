// Ops that keep, move or cut dimensions.

#include <algorithm>
#include <numeric>

#include "graph/factor/rule_builder.h"
#include "graph/hlo/attributes.h"

namespace plait::graph {
namespace {

// A range of one dimension of an operand and of the result where factors are being found.
struct Rest {
  const Dims& dims;
  std::size_t at = 0;
  std::int64_t left = 1;  // of dims[at - 1]

  bool next() {
    while (left == 1 && at < dims.size()) left = dims[at++];
    return left > 1;
  }
  std::int64_t dim() const { return static_cast<std::int64_t>(at) - 1; }
};

// Where neither divides the other, nothing is shared until the products meet again.
void skip_to_common_end(RuleBuilder& rule, Rest& in, Rest& out) {
  double product_in = static_cast<double>(in.left);
  double product_out = static_cast<double>(out.left);
  const auto bind = [&](bool operand, Rest& rest) {
    const int f = rule.factor(rest.left, FactorKind::replication);
    if (operand) {
      rule.bind_operand(0, rest.dim(), f);
    } else {
      rule.bind_output(0, rest.dim(), f);
    }
    rest.left = 1;
  };
  bind(true, in);
  bind(false, out);
  while (product_in != product_out) {
    const bool operand = product_in < product_out;
    Rest& rest = operand ? in : out;
    if (!rest.next()) return;
    (operand ? product_in : product_out) *= static_cast<double>(rest.left);
    bind(operand, rest);
  }
}

}  // namespace

// Dimensions are equal one by one; scalars (of select and clamp) go with anything.
void elementwise_rule(RuleBuilder& rule) {
  rule.need(rule.output_count() >= 1, "it must have a result");
  rule.need(rule.operand_count() >= 1, "it must have an operand");
  const Dims& dims = rule.output();
  for (int i = 0; i < rule.operand_count(); ++i)
    rule.need(rule.rank(i) == 0 || rule.operand(i) == dims,
              "operand " + std::to_string(i) + " has other dimensions than the result");
  for (std::int64_t d = 0; d < rule.output_rank(); ++d) {
    const int f = rule.factor(dims[d]);
    for (int i = 0; i < rule.operand_count(); ++i)
      if (rule.rank(i) > 0) rule.bind_operand(i, d, f);
    for (int i = 0; i < rule.output_count(); ++i)
      if (rule.output(i) == dims) rule.bind_output(i, d, f);
  }
}

void broadcast_rule(RuleBuilder& rule) {
  rule.need_operands(1);
  const Dims to = integers(rule.source(), "dimensions");
  rule.need(to.size() == rule.operand(0).size(), "dimensions do not fit its operand");
  for (std::int64_t d = 0; d < rule.rank(0); ++d) {
    rule.need(to[d] >= 0 && to[d] < rule.output_rank(), "a dimension is not one of its result's");
    if (rule.operand(0)[d] > 1) rule.pass(0, d, 0, to[d]);
  }
  for (std::int64_t d = 0; d < rule.output_rank(); ++d) {
    const auto from = std::ranges::find(to, d);
    if (from == to.end() || rule.operand(0)[from - to.begin()] == 1)
      rule.bind_output(0, d, rule.factor(rule.output()[d]));
  }
}

void transpose_rule(RuleBuilder& rule) {
  rule.need_operands(1);
  const Dims from = integers(rule.source(), "dimensions");
  rule.need(
      static_cast<int>(from.size()) == rule.output_rank() && rule.rank(0) == rule.output_rank(),
      "dimensions do not fit its operand");
  std::vector<char> seen(from.size(), 0);
  for (std::int64_t d = 0; d < rule.output_rank(); ++d) {
    rule.need(from[d] >= 0 && from[d] < rule.rank(0) && seen[from[d]]++ == 0,
              "dimensions are not a permutation");
    rule.pass(0, from[d], 0, d);
  }
}

void reverse_rule(RuleBuilder& rule) {
  rule.need_operands(1);
  const Dims reversed = integers(rule.source(), "dimensions");
  rule.need(rule.operand(0) == rule.output(), "the result has other dimensions");
  for (std::int64_t d = 0; d < rule.output_rank(); ++d) {
    const int f = rule.factor(rule.output()[d],
                              contains(reversed, d) ? FactorKind::replication : FactorKind::pass);
    rule.bind_operand(0, d, f);
    rule.bind_output(0, d, f);
  }
}

// Both sides are walked from the major end: the common divisor of what is left of a dimension on
// each side is a factor of both. [6,4] -> [6,2,2] shares 6, 2 and 2; [4,6] -> [8,3] shares 4 only.
void reshape_rule(RuleBuilder& rule) {
  rule.need_operands(1);
  const auto product = [](const Dims& dims) {
    return std::accumulate(dims.begin(), dims.end(), 1.0,
                           [](double a, std::int64_t b) { return a * static_cast<double>(b); });
  };
  rule.need(product(rule.operand(0)) == product(rule.output()),
            "its operand has another number of elements");
  if (product(rule.output()) == 0) return;
  Rest in{rule.operand(0)};
  Rest out{rule.output()};
  while (in.next() && out.next()) {
    const std::int64_t shared = std::gcd(in.left, out.left);
    const int f = rule.factor(shared);
    rule.bind_operand(0, in.dim(), f);
    rule.bind_output(0, out.dim(), f);
    in.left /= shared;
    out.left /= shared;
    if (in.left > 1 && out.left > 1) skip_to_common_end(rule, in, out);
  }
}

void slice_rule(RuleBuilder& rule) {
  rule.need_operands(1);
  const std::vector<SliceDim> cut = slice_dims(rule.source());
  rule.need(cut.size() == rule.operand(0).size() && rule.rank(0) == rule.output_rank(),
            "slice does not fit its operand");
  for (std::int64_t d = 0; d < rule.rank(0); ++d) {
    const std::int64_t stride = std::max<std::int64_t>(cut[d].stride, 1);
    const std::int64_t length = (cut[d].limit - cut[d].start + stride - 1) / stride;
    rule.need(length == rule.output()[d] && cut[d].limit <= rule.operand(0)[d],
              "slice takes " + std::to_string(length) + " of dimension " + std::to_string(d));
    if (rule.operand(0)[d] == rule.output()[d] && stride == 1) rule.pass(0, d, 0, d);
  }
}

void pad_rule(RuleBuilder& rule) {
  rule.need_operands(2);
  rule.need(rule.rank(0) == rule.output_rank(), "the result has another rank");
  // "0_0x1_1x0_0_1": low, high and interior of each dimension.
  const std::string* text = rule.source().attribute("padding");
  for (std::int64_t d = 0; d < rule.rank(0); ++d) {
    const bool grows = text == nullptr || rule.operand(0)[d] != rule.output()[d];
    if (!grows) rule.pass(0, d, 0, d);
  }
}

void concatenate_rule(RuleBuilder& rule) {
  const std::int64_t along = integer_or(rule.source(), "dimensions", 0);
  rule.need(rule.operand_count() >= 1 && along < rule.output_rank(), "dimensions do not fit");
  std::int64_t sum = 0;
  for (int i = 0; i < rule.operand_count(); ++i) {
    rule.need(rule.rank(i) == rule.output_rank(), "operands differ in rank");
    sum += rule.operand(i)[along];
  }
  rule.need(sum == rule.output()[along], "its operands have " + std::to_string(sum) +
                                             " along dimension " + std::to_string(along));
  for (std::int64_t d = 0; d < rule.output_rank(); ++d) {
    if (d == along && rule.operand_count() > 1) continue;
    const int f = rule.factor(rule.output()[d]);
    for (int i = 0; i < rule.operand_count(); ++i) rule.bind_operand(i, d, f);
    rule.bind_output(0, d, f);
  }
}

void dynamic_slice_rule(RuleBuilder& rule) {
  rule.need(rule.operand_count() >= 1 && rule.rank(0) == rule.output_rank(),
            "the result has another rank than its operand");
  for (std::int64_t d = 0; d < rule.rank(0); ++d)
    if (rule.operand(0)[d] == rule.output()[d]) rule.pass(0, d, 0, d);
}

// What is written into passes where it is written whole; the other dimensions are not divided.
void dynamic_update_slice_rule(RuleBuilder& rule) {
  rule.need(
      rule.operand_count() >= 2 && rule.operand(0) == rule.output() && rule.rank(1) == rule.rank(0),
      "the result has other dimensions than its operand");
  for (std::int64_t d = 0; d < rule.rank(0); ++d) {
    const bool whole = rule.operand(0)[d] == rule.operand(1)[d];
    const int f =
        rule.factor(rule.operand(0)[d], whole ? FactorKind::pass : FactorKind::replication);
    rule.bind_operand(0, d, f);
    rule.bind_output(0, d, f);
    if (whole) rule.bind_operand(1, d, f);
  }
}

// reduce-window and select-and-scatter: dimensions with a window of one pass.
void window_rule(RuleBuilder& rule) {
  const int rank = rule.output_rank();
  const auto size = window_field(rule.source(), "size", rank, 1);
  for (std::int64_t d = 0; d < rank; ++d) {
    if (size[d] != 1) continue;
    const int f = rule.factor(rule.output()[d]);
    for (int i = 0; i < rule.operand_count(); ++i)
      if (rule.rank(i) == rank && rule.operand(i)[d] == rule.output()[d])
        rule.bind_operand(i, d, f);
    for (int i = 0; i < rule.output_count(); ++i) rule.bind_output(i, d, f);
  }
}

void sort_rule(RuleBuilder& rule) {
  const std::int64_t along = integer_or(rule.source(), "dimensions", 0);
  for (std::int64_t d = 0; d < rule.output_rank(); ++d) {
    const int f =
        rule.factor(rule.output()[d], d == along ? FactorKind::replication : FactorKind::pass);
    for (int i = 0; i < rule.operand_count(); ++i) rule.bind_operand(i, d, f);
    for (int i = 0; i < rule.output_count(); ++i) rule.bind_output(i, d, f);
  }
}

// The last dimension is searched, the others pass.
// XLA's partitioner has every device choose among all rows, however they are divided.
void top_k_rule(RuleBuilder& rule) {
  rule.need(rule.operand_count() >= 1 && rule.rank(0) == rule.output_rank(),
            "the result has another rank than its operand");
}

// Made from nothing: every device makes its part.
void source_rule(RuleBuilder& rule) {
  for (int i = 0; i < rule.output_count(); ++i)
    for (std::int64_t d = 0; d < rule.output_rank(i); ++d)
      rule.bind_output(i, d, rule.factor(rule.output(i)[d]));
}

// Each of a batch of matrices is decomposed or solved as a whole.
void matrix_rule(RuleBuilder& rule) {
  const int rank = rule.output_rank();
  for (std::int64_t d = 0; d + 2 < rank; ++d) {
    const int f = rule.factor(rule.output()[d]);
    for (int i = 0; i < rule.operand_count(); ++i)
      if (rule.rank(i) == rank) rule.bind_operand(i, d, f);
    for (int i = 0; i < rule.output_count(); ++i)
      if (rule.output_rank(i) > d) rule.bind_output(i, d, f);
  }
}

void replicated_rule(RuleBuilder&) {}

}  // namespace plait::graph
