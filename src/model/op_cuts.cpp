#include "model/op_cuts.h"

#include <algorithm>
#include <cmath>

namespace plait {
namespace {

using enum TensorLayout;

bool is_product(const Op& op) {
  return op.kind == OpKind::matmul || op.kind == OpKind::convolution;
}

// `stream`: the layout of what is between the regions that are cut by feature.
OpCut usual_cut(const Op& op, TensorLayout stream) {
  switch (op.split) {
    case Split::replicated:
    case Split::experts:
      break;
    case Split::column:
      // Where the forward pass has a sum to do, it gathers the output.
      return {op.split, stream, op.forward_reduce > 0 ? stream : by_feature, stream};
    case Split::row:
      return {op.split, by_feature, stream, by_feature};
    case Split::heads:
    case Split::shard:
      return {op.split, by_feature, by_feature, by_feature};
    case Split::vocabulary:
      if (op.kind == OpKind::loss) return {op.split, by_feature, whole, by_feature};
      if (op.kind == OpKind::matmul) return {op.split, stream, by_feature, stream};
      break;
  }
  return {op.split, stream, stream, stream};
}

}  // namespace

std::vector<OpCut> cuts_of(const Op& op, bool sequence_parallel) {
  const TensorLayout stream = sequence_parallel ? by_position : whole;
  if (!op.cuts.empty()) {
    std::vector<OpCut> cuts = op.cuts;
    for (OpCut& cut : cuts)
      for (TensorLayout* layout : {&cut.input, &cut.output, &cut.input_gradient})
        if (*layout == whole) *layout = stream;
    return cuts;
  }
  std::vector<OpCut> cuts{usual_cut(op, stream)};
  if (!is_product(op) || op.count != 1) return cuts;
  if (op.split == Split::column && op.backward_reduce > 0)
    cuts.push_back({Split::row, by_feature, partial_sums, by_feature});
  if (op.split == Split::row && op.forward_reduce > 0)
    cuts.push_back({Split::column, whole, by_feature, partial_sums});
  return cuts;
}

Op with_cut(const Op& op, int cut) {
  Op out = op;
  const std::vector<OpCut> cuts = cuts_of(op);
  if (cut <= 0 || cut >= static_cast<int>(cuts.size())) return out;
  out.split = cuts[cut].split;
  if (!op.cuts.empty()) return out;
  out.forward_reduce = out.backward_reduce = 0;
  out.saved_is_sharded = cuts[cut].input == by_feature;
  out.saved_is_whole = cuts[cut].input == whole;
  return out;
}

bool is_divided(const Op& op, int tensor) {
  const double side = op.split == Split::heads    ? op.count
                      : op.split == Split::column ? op.count * op.columns
                      : op.split == Split::row    ? op.count * op.inner
                                                  : 0;
  return std::fmod(side, tensor) == 0;
}

int ways_to_cut(const LayerKind& unit) {
  return unit.ops.size() == 1 ? static_cast<int>(cuts_of(unit.ops.front()).size()) : 1;
}

double input_elements(const Op& op) {
  if (op.kind == OpKind::matmul) return op.count * op.rows * op.inner;
  return op.kind == OpKind::convolution ? op.moved - op.rows * op.columns : 0;
}

double output_elements(const Op& op) {
  return is_product(op) ? op.count * op.rows * op.columns : 0;
}

}  // namespace plait
