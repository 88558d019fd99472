#include "graph/search/strategy.h"

#include <algorithm>

namespace plait::graph {
namespace {

// Divides the classes of a role by the axes, the major class first; the next is begun only when one
// is used up, since parts of an array are contiguous. False where the sizes do not fit.
bool divide(const Role& role, const Mesh& mesh, const std::vector<int>& axes,
            std::vector<std::pair<int, int>>& axis_of_class) {
  std::size_t at = 0;
  std::int64_t left = role.sizes.empty() ? 1 : role.sizes[0];
  for (const int axis : axes) {
    while (left == 1 && at + 1 < role.sizes.size()) left = role.sizes[++at];
    if (left % mesh.sizes[axis] != 0) return false;
    left /= mesh.sizes[axis];
    axis_of_class.emplace_back(role.classes[at], axis);
  }
  return true;
}

std::vector<int> axes_with_role(const Strategy& strategy, const Mesh& mesh, int role) {
  std::vector<int> axes;
  for (int a = 0; a < mesh.axes(); ++a)
    if (strategy.role[a] == role) axes.push_back(a);
  return axes;
}

// On three axes partial results are treated alike along all of them: what else there is differs
// little and is much.
bool is_mixed(const Block& block, const Mesh& mesh, const Strategy& strategy) {
  if (mesh.axes() < 3) return false;
  int scattered = 0;
  int summed = 0;
  for (int a = 0; a < mesh.axes(); ++a)
    if (strategy.role[a] >= 0 && block.roles[strategy.role[a]].name == "inner")
      ++(strategy.scatter[a] ? scattered : summed);
  return scattered > 0 && summed > 0;
}

// Whether the columns can be divided further by the axes that partial results are scattered along.
bool fits_scattered(const Block& block, const Mesh& mesh, const Strategy& strategy) {
  std::vector<int> axes;
  bool any = false;
  const Role* columns = nullptr;
  for (const Role& role : block.roles)
    if (role.name == "columns") columns = &role;
  for (int a = 0; a < mesh.axes(); ++a) {
    any = any || strategy.scatter[a];
    if (strategy.scatter[a] ||
        (strategy.role[a] >= 0 && block.roles[strategy.role[a]].name == "columns"))
      axes.push_back(a);
  }
  if (!any) return true;
  std::vector<std::pair<int, int>> ignored;
  return columns != nullptr && divide(*columns, mesh, axes, ignored);
}

bool fits(const Block& block, const Mesh& mesh, const Strategy& strategy) {
  if (is_mixed(block, mesh, strategy) || !fits_scattered(block, mesh, strategy)) return false;
  for (int r = 0; r < static_cast<int>(block.roles.size()); ++r) {
    std::vector<std::pair<int, int>> ignored;
    if (!divide(block.roles[r], mesh, axes_with_role(strategy, mesh, r), ignored)) return false;
  }
  return true;
}

// Whether every device along an axis may do everything, by axis.
using MayCopy = std::array<bool, kMostAxes>;

void extend(const Block& block, const Mesh& mesh, const MayCopy& may, Strategy& strategy, int axis,
            std::vector<Strategy>& all) {
  if (axis == mesh.axes()) {
    if (fits(block, mesh, strategy)) all.push_back(strategy);
    return;
  }
  for (int r = 0; r < static_cast<int>(block.roles.size()); ++r) {
    strategy.role[axis] = static_cast<std::int8_t>(r);
    extend(block, mesh, may, strategy, axis + 1, all);
    if (block.roles[r].name != "inner") continue;
    strategy.scatter[axis] = true;
    extend(block, mesh, may, strategy, axis + 1, all);
    strategy.scatter[axis] = false;
  }
  strategy.role[axis] = -1;
  if (may[axis]) extend(block, mesh, may, strategy, axis + 1, all);
}

// The factor of a node that each axis divides, or -1. Of axes that divide one dimension the late
// ones make the finest parts.
struct AxisFactors {
  std::array<int, kMostAxes> factor{-1, -1, -1};
  AxisSet late = 0;
  int& operator[](int axis) { return factor[axis]; }
  int operator[](int axis) const { return factor[axis]; }
};

AxisFactors factor_of_axis(const Rule& rule, const std::vector<int>& classes, const Mesh& mesh,
                           const ClassAxes& axes) {
  AxisFactors chosen;
  AxisFactors fallback;
  for (int f = 0; f < static_cast<int>(rule.factors.size()); ++f) {
    if (classes.empty() || classes[f] < 0) continue;
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
  const AxisSet scatter = fixed == nullptr ? kept.axes() & partial : 0;
  if (scatter != 0) add({CollectiveKind::reduce_scatter, scatter, size});
  if ((partial & ~scatter) != 0)
    add({CollectiveKind::all_reduce, partial & ~scatter, size / mesh.size_of(scatter)});
  // Parts are made by the axes of the sum last; others may be wanted last.
  for (const Transfer& transfer : transfers(mesh, whole, placed, kept)) add(transfer);
  made.produced.push_back(placed);
  made.outputs.push_back(kept);
}

}  // namespace

const ClassAxes::Entry* ClassAxes::find(int cls) const {
  for (const Entry& entry : entries)
    if (entry.cls == cls) return &entry;
  return nullptr;
}

const Placement* ClassAxes::fixed_of(int value) const {
  for (const auto& [v, placement] : fixed)
    if (v == value) return &placement;
  return nullptr;
}

std::vector<Strategy> strategies_of(const Block& block, const Mesh& mesh, bool whole) {
  std::vector<Strategy> all;
  Strategy strategy;
  MayCopy may{whole, whole, whole};
  extend(block, mesh, may, strategy, 0, all);
  if (!all.empty()) return all;
  // Along the axes that divide nothing of the block even alone; else along any.
  for (int a = 0; a < mesh.axes(); ++a) {
    may[a] = true;
    for (int r = 0; r < static_cast<int>(block.roles.size()); ++r) {
      strategy.role[a] = static_cast<std::int8_t>(r);
      may[a] = may[a] && !fits(block, mesh, strategy);
    }
    strategy.role[a] = -1;
  }
  extend(block, mesh, may, strategy, 0, all);
  if (all.empty()) extend(block, mesh, {true, true, true}, strategy, 0, all);
  return all;
}

std::vector<Sharing> sharings_of(const Analysis& analysis, int b) {
  bool state = false;
  bool weights = false;
  for (const int n : analysis.blocks.blocks[b].nodes) {
    const Node& node = analysis.program.nodes[n];
    if (node.kind != NodeKind::argument) continue;
    state = state || analysis.updates.is_state[node.argument] != 0;
    weights = weights || analysis.updates.of_weight[n] != 0;
  }
  std::vector<Sharing> all;
  if (state) all.push_back(Sharing::update);
  if (weights) all.push_back(Sharing::weights);
  return all;
}

AxisSet copied_axes(const Block& block, const Mesh& mesh, const Strategy& strategy) {
  AxisSet axes = 0;
  for (int a = 0; a < mesh.axes(); ++a)
    if (strategy.role[a] < 0 || block.roles[strategy.role[a]].name == "rows") axes |= 1U << a;
  return axes;
}

std::string text_of(const Strategy& strategy, const Block& block, const Mesh& mesh) {
  std::string out;
  for (int r = 0; r < static_cast<int>(block.roles.size()); ++r) {
    std::string axes;
    for (const int a : axes_with_role(strategy, mesh, r))
      axes += (axes.empty() ? "" : ",") + axis_name(a) + (strategy.scatter[a] ? " scattered" : "");
    if (!axes.empty()) out += (out.empty() ? "" : ", ") + block.roles[r].name + " over " + axes;
  }
  if (out.empty()) out = "whole on every device";
  if (strategy.sharing == Sharing::update) out += ", update shared";
  if (strategy.sharing == Sharing::weights) out += ", weights shared";
  return out;
}

ClassAxes class_axes(const Block& block, const Mesh& mesh, const Strategy& strategy) {
  ClassAxes made;
  const auto entry = [&](int cls) -> ClassAxes::Entry& {
    for (ClassAxes::Entry& e : made.entries)
      if (e.cls == cls) return e;
    made.entries.push_back({cls, 0, 0});
    return made.entries.back();
  };
  const Role* columns = nullptr;
  for (const Role& role : block.roles) {
    if (role.name == "columns") columns = &role;
    if (strategy.sharing == Sharing::nothing || role.name == "rows") continue;
    made.shared_classes.insert(made.shared_classes.end(), role.classes.begin(), role.classes.end());
  }
  if (strategy.sharing != Sharing::nothing) made.shared = copied_axes(block, mesh, strategy);
  made.shares_weights = strategy.sharing == Sharing::weights;
  for (int r = 0; r < static_cast<int>(block.roles.size()); ++r) {
    std::vector<std::pair<int, int>> divided;
    divide(block.roles[r], mesh, axes_with_role(strategy, mesh, r), divided);
    for (const auto& [cls, axis] : divided) entry(cls).first |= 1U << axis;
  }
  for (int r = 0; columns != nullptr && r < static_cast<int>(block.roles.size()); ++r) {
    if (block.roles[r].name != "inner") continue;
    // Columns that are divided already keep their axes before those of the inner range.
    std::vector<int> axes;
    for (int a = 0; a < mesh.axes(); ++a)
      if (strategy.scatter[a] ||
          (strategy.role[a] >= 0 && block.roles[strategy.role[a]].name == "columns"))
        axes.push_back(a);
    std::vector<std::pair<int, int>> divided;
    if (!divide(*columns, mesh, axes, divided)) continue;
    for (const auto& [cls, axis] : divided)
      if (strategy.scatter[axis]) entry(cls).second |= 1U << axis;
  }
  return made;
}

NodePlacement place_node(const Analysis& analysis, const Mesh& mesh, int n, const ClassAxes& axes) {
  const Rule& rule = analysis.rules[n];
  AxisFactors factor = factor_of_axis(rule, analysis.blocks.classes[n], mesh, axes);
  const bool in_parts = analysis.updates.of_node[n] != 0
                            ? !is_contraction(analysis.program, analysis.program.nodes[n])
                            : axes.shares_weights && analysis.updates.of_weight[n] != 0;
  if (axes.shared != 0 && in_parts) {
    AxisSet free = 0;
    for (int a = 0; a < mesh.axes(); ++a)
      if (factor[a] < 0) free |= 1U << a;
    std::vector<const TensorFactors*> tensors;
    for (const TensorFactors& tensor : rule.operands) tensors.push_back(&tensor);
    for (const TensorFactors& tensor : rule.outputs) tensors.push_back(&tensor);
    share(tensors, rule, analysis.blocks.classes[n], mesh, axes, free, factor);
  }
  // An axis that one tensor cannot take on is not used for the op at all.
  const auto drop_unplaced = [&](const TensorFactors& tensor) {
    const Placement placed = placement_of(tensor, rule, mesh, factor);
    for (int a = 0; a < mesh.axes(); ++a)
      if (factor[a] >= 0 && placed.dim[a] < 0 && contains(tensor, factor[a])) factor[a] = -1;
  };
  for (int round = 0; round < 2; ++round) {
    for (const TensorFactors& tensor : rule.operands) drop_unplaced(tensor);
    for (const TensorFactors& tensor : rule.outputs) drop_unplaced(tensor);
  }
  NodePlacement made;
  for (const TensorFactors& tensor : rule.operands)
    made.operands.push_back(placement_of(tensor, rule, mesh, factor));
  for (int a = 0; a < mesh.axes(); ++a)
    if (factor[a] >= 0) made.share /= mesh.sizes[a];
  for (int o = 0; o < static_cast<int>(rule.outputs.size()); ++o)
    place_output(analysis, mesh, {n, o}, axes, factor, made);
  return made;
}

}  // namespace plait::graph
