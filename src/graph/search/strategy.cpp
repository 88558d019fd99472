#include "graph/search/strategy.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace plait::graph {
namespace {

// Divides the classes of a role in [from, to) by the axes, the major class first; the next is begun
// only when one is used up, since parts of an array are contiguous. False where sizes do not fit.
bool divide(const Role& role, const Mesh& mesh, const std::vector<int>& axes,
            std::vector<std::pair<int, int>>& axis_of_class, std::size_t from = 0,
            std::size_t to = std::numeric_limits<std::size_t>::max()) {
  std::size_t at = from;
  std::int64_t left = at < role.sizes.size() ? role.sizes[at] : 1;
  for (const int axis : axes) {
    while (left == 1 && at + 1 < std::min(to, role.sizes.size())) left = role.sizes[++at];
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

// As divide, of the axes that a strategy gives a role. Each dimension is divided by the axes that
// name it; where none names a later one, what is left over when the first is used up goes on there.
bool divide_role(const Block& block, const Mesh& mesh, const Strategy& strategy, int r,
                 std::vector<std::pair<int, int>>& axis_of_class) {
  const Role& role = block.roles[r];
  const std::vector<int> axes = axes_with_role(strategy, mesh, r);
  const bool one_part = std::ranges::all_of(axes, [&](int a) { return strategy.part[a] == 0; });
  if (one_part) return divide(role, mesh, axes, axis_of_class);
  for (std::size_t i = 0; i < role.starts.size(); ++i) {
    std::vector<int> named;
    for (const int a : axes)
      if (strategy.part[a] == role.starts[i]) named.push_back(a);
    const std::size_t to = i + 1 < role.starts.size() ? role.starts[i + 1] : role.sizes.size();
    if (!divide(role, mesh, named, axis_of_class, role.starts[i], to)) return false;
  }
  return true;
}

// "rows" or "heads" of the first dimension, "positions" and "positions2" of others.
std::string name_of(const Role& role, std::size_t start) {
  if (start == 0) return role.called;
  return start == 1 ? "positions" : "positions" + std::to_string(start);
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

// XLA's partitioner divides the positions of a convolution together with its rows alone: with
// features divided as well it computes something else, or every device computes all.
bool mixes_windows(const Block& block, const Mesh& mesh, const Strategy& strategy) {
  if (!block.convolves) return false;
  bool positions = false;
  bool others = false;
  for (int a = 0; a < mesh.axes(); ++a) {
    if (mesh.sizes[a] == 1) continue;
    positions = positions || strategy.part[a] != 0;
    others = others || strategy.role[a] < 0 || block.roles[strategy.role[a]].name != "rows";
  }
  return positions && others;
}

bool fits(const Block& block, const Mesh& mesh, const Strategy& strategy) {
  if (mixes_windows(block, mesh, strategy)) return false;
  if (is_mixed(block, mesh, strategy) || !fits_scattered(block, mesh, strategy)) return false;
  for (int r = 0; r < static_cast<int>(block.roles.size()); ++r) {
    std::vector<std::pair<int, int>> ignored;
    if (!divide_role(block, mesh, strategy, r, ignored)) return false;
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
    for (const int start : block.roles[r].starts) {
      strategy.part[axis] = static_cast<std::int8_t>(start);
      extend(block, mesh, may, strategy, axis + 1, all);
    }
    strategy.part[axis] = 0;
    if (block.roles[r].name != "inner") continue;
    strategy.scatter[axis] = true;
    extend(block, mesh, may, strategy, axis + 1, all);
    strategy.scatter[axis] = false;
  }
  strategy.role[axis] = -1;
  if (may[axis]) extend(block, mesh, may, strategy, axis + 1, all);
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
    const Role& role = block.roles[r];
    for (std::size_t i = 0; i < role.starts.size(); ++i) {
      std::string axes;
      for (const int a : axes_with_role(strategy, mesh, r))
        if (strategy.part[a] == role.starts[i])
          axes +=
              (axes.empty() ? "" : ",") + axis_name(a) + (strategy.scatter[a] ? " scattered" : "");
      if (!axes.empty()) out += (out.empty() ? "" : ", ") + name_of(role, i) + " over " + axes;
    }
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
  std::ranges::stable_sort(made.shared_classes, std::less<>(), [&](int cls) {
    return std::ranges::find(block.stored, cls) - block.stored.begin();
  });
  if (strategy.sharing != Sharing::nothing) made.shared = copied_axes(block, mesh, strategy);
  made.shares_weights = strategy.sharing == Sharing::weights;
  for (int r = 0; r < static_cast<int>(block.roles.size()); ++r) {
    std::vector<std::pair<int, int>> divided;
    divide_role(block, mesh, strategy, r, divided);
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

}  // namespace plait::graph
