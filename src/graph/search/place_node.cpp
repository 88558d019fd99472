// Where one node wants its operands and makes its results under a strategy.

#include <algorithm>
#include <functional>
#include <map>

#include "graph/hlo/attributes.h"
#include "graph/search/placement/route.h"
#include "graph/search/strategy.h"

namespace plait::graph {
namespace {

// The factor of a node that each axis divides, or -1. Of axes that divide one dimension the late
// ones make the finest parts.
struct AxisFactors {
  std::array<int, kMostAxes> factor{-1, -1, -1};
  AxisSet late = 0;
  int& operator[](int axis) { return factor[axis]; }
  int operator[](int axis) const { return factor[axis]; }
};

AxisFactors factor_of_axis(const Rule& rule, const std::vector<int>& classes,
                           const std::vector<char>& yields, const Mesh& mesh,
                           const ClassAxes& axes) {
  AxisFactors chosen;
  AxisFactors fallback;
  for (int f = 0; f < static_cast<int>(rule.factors.size()); ++f) {
    if (classes.empty() || classes[f] < 0 || yields[f] != 0) continue;
    const ClassAxes::Entry* entry = axes.find(classes[f]);
    if (entry == nullptr) continue;
    for (int a = 0; a < mesh.axes(); ++a) {
      if ((entry->first >> a & 1U) != 0 && chosen[a] < 0) chosen[a] = f;
      if ((entry->second >> a & 1U) != 0 && fallback[a] < 0) fallback[a] = f;
    }
  }
  for (int a = 0; a < mesh.axes(); ++a)
    if (chosen[a] < 0) chosen[a] = fallback[a];
  return chosen;
}

// The placement of a tensor whose dimensions have the factors. An axis is left out where its part
// of a dimension would not be contiguous: a factor before it is not divided to the end.
Placement placement_of(const TensorFactors& tensor, const Rule& rule, const Mesh& mesh,
                       const AxisFactors& factor) {
  Placement made;
  for (int d = 0; d < static_cast<int>(tensor.size()); ++d) {
    bool open = true;
    int rank = 0;
    for (const int f : tensor[d]) {
      std::int64_t left = rule.factors[f].size;
      for (int i = 0; i < 2 * mesh.axes(); ++i) {
        const int a = i % mesh.axes();
        const bool late = (factor.late >> a & 1U) != 0;
        if (late != (i >= mesh.axes()) || factor[a] != f || made.dim[a] >= 0) continue;
        if (!open || left % mesh.sizes[a] != 0) continue;
        made.dim[a] = static_cast<std::int8_t>(d);
        made.rank[a] = static_cast<std::int8_t>(rank++);
        left /= mesh.sizes[a];
      }
      open = open && left == 1;
    }
  }
  return made;
}

bool contains(const TensorFactors& tensor, int factor) {
  return std::ranges::any_of(tensor, [&](const std::vector<int>& dim) {
    return std::ranges::find(dim, factor) != dim.end();
  });
}

// Divides the tensors of an update by the axes that share it, those of `axes`, as far as they have
// one of their classes and all that have it are divided evenly.
void share(const std::vector<const TensorFactors*>& tensors, const Rule& rule,
           const std::vector<int>& classes, const Mesh& mesh, const ClassAxes& block_axes,
           AxisSet axes, AxisFactors& factor) {
  const auto fits = [&](int f, int axis) {
    bool any = false;
    for (const TensorFactors* tensor : tensors) {
      if (!contains(*tensor, f)) continue;
      any = true;
      if (placement_of(*tensor, rule, mesh, factor).dim[axis] < 0) return false;
    }
    return any;
  };
  for (int a = 0; a < mesh.axes(); ++a) {
    if ((axes & block_axes.shared & 1U << a) == 0) continue;
    factor.late |= 1U << a;
    factor[a] = -1;
    for (const int cls : block_axes.shared_classes) {
      for (int f = 0; f < static_cast<int>(rule.factors.size()); ++f) {
        if (classes[f] != cls) continue;
        factor[a] = f;
        if (fits(f, a)) break;
        factor[a] = -1;
      }
      if (factor[a] >= 0) break;
    }
  }
}

// Where the parts of an output that is partial along `axes` go: to the dimensions that the block
// keeps divided by them, in an update to those that its devices share, else nowhere (it is summed
// on every device).
Placement scattered(const TensorFactors& tensor, const Rule& rule, const std::vector<int>& classes,
                    const Mesh& mesh, const ClassAxes& block_axes, AxisSet axes, bool update,
                    AxisFactors factor) {
  AxisSet left = 0;
  for (int a = 0; a < mesh.axes(); ++a) {
    if ((axes >> a & 1U) == 0) continue;
    factor[a] = -1;
    for (int f = 0; f < static_cast<int>(rule.factors.size()); ++f) {
      if (classes[f] < 0 || !contains(tensor, f)) continue;
      const ClassAxes::Entry* entry = block_axes.find(classes[f]);
      if (entry != nullptr && ((entry->first | entry->second) >> a & 1U) != 0) factor[a] = f;
    }
    if (factor[a] < 0) left |= 1U << a;
  }
  if (update) share({&tensor}, rule, classes, mesh, block_axes, left, factor);
  return placement_of(tensor, rule, mesh, factor);
}

// The axes that partial results are summed along, at once or one after the other: XLA's partitioner
// sums those of products and reductions along the axes of one dimension of the operand at a time,
// and only the last sum can be scattered.
std::vector<AxisSet> sums_of(const Node& node, const Rule& rule, const AxisFactors& factor,
                             AxisSet partial, const Mesh& mesh) {
  if (partial == 0) return {};
  const bool at_once =
      !node.is("dot") && !node.is("convolution") && !node.is("scatter") && !node.is("reduce");
  if (at_once) return {partial};
  const TensorFactors& tensor = rule.operands[node.is("scatter") ? rule.operands.size() / 2 : 0];
  std::vector<int> spatial;
  if (node.is("convolution")) spatial = convolution_dims(*node.source).lhs_spatial;
  std::map<int, AxisSet, std::greater<>> by_dimension;
  for (int a = 0; a < mesh.axes(); ++a) {
    if ((partial >> a & 1U) == 0) continue;
    int at = -1;
    for (int d = 0; d < static_cast<int>(tensor.size()); ++d)
      if (std::ranges::find(tensor[d], factor[a]) != tensor[d].end()) at = d;
    // Of a convolution those of all positions at once.
    if (std::ranges::find(spatial, at) != spatial.end()) at = spatial.front();
    by_dimension[at] |= 1U << a;
  }
  std::vector<AxisSet> sums;
  for (const auto& [dimension, axes] : by_dimension) sums.push_back(axes);
  return sums;
}

struct OutputOf {
  int node = 0;
  int output = 0;
};

// Where an output is made and kept, and what its partial results need.
void place_output(const Analysis& analysis, const Mesh& mesh, const OutputOf& of,
                  const ClassAxes& axes, const AxisFactors& factor, NodePlacement& made) {
  const Node& node = analysis.program.nodes[of.node];
  const Rule& rule = analysis.rules[of.node];
  const TensorFactors& tensor = rule.outputs[of.output];
  const int value = node.outputs[of.output];
  const Placement* fixed = axes.fixed_of(value);
  const bool given = node.kind == NodeKind::argument && fixed != nullptr;
  const Placement placed = given ? *fixed : placement_of(tensor, rule, mesh, factor);
  const Bytes whole = size_of(*analysis.program.values[value].shape);
  const Bytes size = whole / mesh.size_of(placed.axes());
  const auto add = [&](const Transfer& transfer) {
    made.reductions.push_back(transfer);
    made.reduction_output.push_back(of.output);
  };
  AxisSet partial = 0;
  for (int a = 0; a < mesh.axes(); ++a)
    if (factor[a] >= 0 && rule.factors[factor[a]].kind == FactorKind::reduction &&
        !contains(tensor, factor[a]))
      partial |= 1U << a;
  Placement kept = placed;
  if (fixed != nullptr) {
    kept = *fixed;
  } else if (partial != 0) {
    kept = scattered(tensor, rule, analysis.blocks.classes[of.node], mesh, axes, partial,
                     analysis.updates.of_node[of.node] != 0, factor);
  }
  if (partial != 0 && node.is("reduce") && rule.outputs.size() > 1) {
    // What each device found is gathered, and reduced again.
    kept = fixed != nullptr ? *fixed : placed;
    add({CollectiveKind::all_gather, partial, size * mesh.size_of(partial)});
    partial = 0;
  }
  const std::vector<AxisSet> sums = sums_of(node, rule, factor, partial, mesh);
  for (std::size_t i = 0; i + 1 < sums.size(); ++i)
    add({CollectiveKind::all_reduce, sums[i], size});
  if (!sums.empty()) {
    const AxisSet scatter = fixed == nullptr ? kept.axes() & sums.back() : 0;
    if (scatter != 0) add({CollectiveKind::reduce_scatter, scatter, size});
    if ((sums.back() & ~scatter) != 0)
      add({CollectiveKind::all_reduce, sums.back() & ~scatter, size / mesh.size_of(scatter)});
  }
  // Parts are made by the axes of the sum last; others may be wanted last.
  for (const Transfer& transfer : transfers(mesh, whole, placed, kept)) add(transfer);
  made.produced.push_back(placed);
  made.outputs.push_back(kept);
}

// XLA's partitioner sums a kernel's gradient over all devices where positions are divided, or where
// it has groups: devices that have copies would add theirs. Then positions are not divided at all,
// nor is what is summed over.
void keep_windows_whole(const Node& node, const Rule& rule, const Mesh& mesh, AxisFactors& factor) {
  if (!node.is("convolution")) return;
  const std::vector<int> spatial = convolution_dims(*node.source).lhs_spatial;
  bool copies = false;
  for (int a = 0; a < mesh.axes(); ++a) copies = copies || (factor[a] < 0 && mesh.sizes[a] > 1);
  for (int a = 0; a < mesh.axes() && copies; ++a)
    for (const int d : spatial)
      if (std::ranges::find(rule.operands[0][d], factor[a]) != rule.operands[0][d].end())
        factor[a] = -1;
  if (!copies || integer_or(*node.source, "batch_group_count", 1) < 2) return;
  for (int a = 0; a < mesh.axes(); ++a)
    if (factor[a] >= 0 && rule.factors[factor[a]].kind == FactorKind::reduction) factor[a] = -1;
}

// What windows of products that get their borders once have in common.
std::string shared_window(const Node& node, const Rule& rule) {
  for (const Halo& halo : rule.halos)
    for (const int f : rule.operands[halo.operand][halo.dim])
      if (rule.factors[f].kind == FactorKind::reduction) return {};
  std::string text;
  for (const char* key : {"window", "dim_labels"})
    if (const std::string* value = node.source->attribute(key)) text += *value + ' ';
  return text;
}

// Devices send the border of their part to the next one and to the one before, one dimension after
// the other: what came along the first is sent on along the second.
void add_halos(const Analysis& analysis, const Mesh& mesh, int n, NodePlacement& made) {
  const Program& program = analysis.program;
  double grown = 1;
  for (const Halo& halo : analysis.rules[n].halos) {
    const Placement& placed = made.operands[halo.operand];
    AxisSet axes = 0;
    double part = static_cast<double>(
        program.values[program.nodes[n].operands[halo.operand]].dims()[halo.dim]);
    for (const int a : placed.axes_of(halo.dim)) {
      axes |= 1U << a;
      part /= mesh.sizes[a];
    }
    if (axes == 0) continue;
    const Shape& shape = *program.values[program.nodes[n].operands[halo.operand]].shape;
    const Bytes row = size_of(shape) / mesh.size_of(placed.axes()) * (grown / part);
    for (const std::int64_t elements : {halo.before, halo.behind}) {
      if (elements == 0) continue;
      made.halos.push_back({CollectiveKind::permute, axes, row * static_cast<double>(elements)});
      made.halo_operand.push_back(halo.operand);
    }
    grown *= (part + static_cast<double>(halo.before + halo.behind)) / part;
  }
  if (!made.halos.empty()) made.window = shared_window(program.nodes[n], analysis.rules[n]);
}

}  // namespace

NodePlacement place_node(const Analysis& analysis, const Mesh& mesh, int n,
                         const ClassAxes& classes) {
  const Rule& rule = analysis.rules[n];
  const Node& node = analysis.program.nodes[n];
  AxisFactors factor =
      factor_of_axis(rule, analysis.blocks.classes[n], analysis.blocks.yields[n], mesh, classes);
  const bool in_parts = analysis.updates.of_node[n] != 0
                            ? !is_contraction(analysis.program, analysis.program.nodes[n])
                            : classes.shares_weights && analysis.updates.of_weight[n] != 0;
  if (classes.shared != 0 && in_parts) {
    AxisSet free = 0;
    for (int a = 0; a < mesh.axes(); ++a)
      if (factor[a] < 0) free |= 1U << a;
    std::vector<const TensorFactors*> tensors;
    for (const TensorFactors& tensor : rule.operands) tensors.push_back(&tensor);
    for (const TensorFactors& tensor : rule.outputs) tensors.push_back(&tensor);
    share(tensors, rule, analysis.blocks.classes[n], mesh, classes, free, factor);
  }
  // An axis that one tensor cannot take on is not used for the op at all.
  const auto drop_unplaced = [&](const TensorFactors& tensor) {
    const Placement placed = placement_of(tensor, rule, mesh, factor);
    for (int a = 0; a < mesh.axes(); ++a)
      if (factor[a] >= 0 && placed.dim[a] < 0 && contains(tensor, factor[a])) factor[a] = -1;
  };
  // Nor one whose parts are smaller than what a neighbour wants of them.
  const auto drop_short = [&](const Halo& halo) {
    const Placement placed = placement_of(rule.operands[halo.operand], rule, mesh, factor);
    const auto& dims = analysis.program.values[node.operands[halo.operand]].dims();
    const std::vector<int> axes = placed.axes_of(halo.dim);
    std::int64_t part = dims[halo.dim];
    for (const int a : axes) part /= mesh.sizes[a];
    if (part >= std::max(halo.before, halo.behind)) return;
    for (const int a : axes) factor[a] = -1;
  };
  for (int round = 0; round < 2; ++round) {
    for (const Halo& halo : rule.halos) drop_short(halo);
    for (const TensorFactors& tensor : rule.operands) drop_unplaced(tensor);
    for (const TensorFactors& tensor : rule.outputs) drop_unplaced(tensor);
  }
  keep_windows_whole(node, rule, mesh, factor);
  NodePlacement made;
  for (const TensorFactors& tensor : rule.operands)
    made.operands.push_back(placement_of(tensor, rule, mesh, factor));
  for (int a = 0; a < mesh.axes(); ++a)
    if (factor[a] >= 0) made.share /= mesh.sizes[a];
  for (int o = 0; o < static_cast<int>(rule.outputs.size()); ++o)
    place_output(analysis, mesh, {n, o}, classes, factor, made);
  add_halos(analysis, mesh, n, made);
  return made;
}

}  // namespace plait::graph
