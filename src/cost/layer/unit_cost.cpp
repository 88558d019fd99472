#include "cost/layer/unit_cost.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "cost/layer/layer_cost.h"
#include "cost/op/op_points.h"

namespace plait {

UnitTable::UnitTable(const Problem& problem, const ReplicaShape& shape) {
  const Model& model = problem.model;
  // A kind's input is the output of the unit before it; kinds that follow several others take the
  // largest.
  std::vector<double> input(model.kinds.size(), 0);
  for (int u = 1; u < model.unit_count(); ++u)
    input[model.units[u]] = std::max(input[model.units[u]], model.unit(u - 1).output);
  const OpPoints points(problem.profile, problem.cluster.device_types[shape.device_type].name);
  std::vector<LayerCost> kinds;
  for (std::size_t k = 0; k < model.kinds.size(); ++k) {
    const LayerKind& kind = model.kinds[k];
    kinds.push_back(layer_cost(problem, shape, points, kind, input[k]));
    if (!kind.starts_layer && kinds.back().extent.tables == 0)
      kinds.back().by_recompute[static_cast<int>(Recompute::full)].saved = Bytes(0);
  }
  for (int r = 0; r < 3; ++r) {
    prefix_[r].reserve(model.units.size() + 1);
    prefix_[r].emplace_back();
    for (const int kind : model.units) {
      UnitCost sum = prefix_[r].back();
      sum += kinds[kind].by_recompute[r];
      prefix_[r].push_back(sum);
    }
  }
  extent_.reserve(model.units.size() + 1);
  extent_.emplace_back();
  for (const int kind : model.units) {
    const Extent& own = kinds[kind].extent;
    Extent sum = extent_.back();
    sum.loss += own.loss;
    sum.kept_loss += own.kept_loss;
    sum.table_parameters += own.table_parameters;
    sum.tables += own.tables;
    extent_.push_back(sum);
  }
  const auto of_units = [&](auto&& part) {
    std::vector<Bytes> values;
    values.reserve(model.units.size());
    for (const int kind : model.units) values.push_back(part(kinds[kind]));
    return values;
  };
  for (const int r : {static_cast<int>(Recompute::selective), static_cast<int>(Recompute::full)})
    working_set_[r] = levels_of(of_units([&](const LayerCost& kind) { return kind.repeated[r]; }));
  if (std::ranges::any_of(kinds, [](const LayerCost& kind) { return kind.workspace > Bytes(0); }))
    workspace_ = levels_of(of_units([](const LayerCost& kind) { return kind.workspace; }));
  time_counts_.reserve(model.units.size() + 1);
  memory_counts_.reserve(model.units.size() + 1);
  time_counts_.emplace_back();
  memory_counts_.emplace_back();
  for (const int kind : model.units) {
    const auto count = [](SourceCounts& counts, Source source) {
      counts.push_back(counts.back());
      if (source != Source::measured) ++counts.back()[static_cast<int>(source) - 1];
    };
    count(time_counts_, kinds[kind].origin.time);
    count(memory_counts_, kinds[kind].origin.memory);
  }
  for (const LayerCost& kind : kinds) origins_.push_back(kind.origin);
  kind_of_ = model.units;
  in_ops_ = !std::ranges::all_of(model.kinds, &LayerKind::starts_layer);
  if (!in_ops_) return;
  inside_input_ = of_units([](const LayerCost& kind) { return kind.input; });
  next_layer_.assign(model.units.size(), model.unit_count());
  for (int u = model.unit_count() - 1; u >= 0; --u) {
    if (u + 1 < model.unit_count())
      next_layer_[u] = model.unit(u + 1).starts_layer ? u + 1 : next_layer_[u + 1];
    if (model.unit(u).starts_layer) inside_input_[u] = Bytes(0);
  }
}

UnitTable::Levels UnitTable::levels_of(std::vector<Bytes> units) {
  Levels levels{std::move(units)};
  const std::size_t count = levels.front().size();
  for (std::size_t width = 2; width <= count; width *= 2) {
    const std::vector<Bytes>& half = levels.back();
    std::vector<Bytes> level;
    level.reserve(count - width + 1);
    for (std::size_t u = 0; u + width <= count; ++u)
      level.push_back(std::max(half[u], half[u + width / 2]));
    levels.push_back(std::move(level));
  }
  return levels;
}

Bytes UnitTable::most(const Levels& levels, const UnitRange& range) {
  PLAIT_CHECK(range.size() > 0);
  const auto size = static_cast<unsigned>(range.size());
  const std::vector<Bytes>& level = levels[std::bit_width(size) - 1];
  return std::max(level[range.begin], level[range.end - static_cast<int>(std::bit_floor(size))]);
}

Source UnitTable::weakest(const SourceCounts& counts, const UnitRange& range) {
  const std::array<int, 2>& begin = counts[range.begin];
  const std::array<int, 2>& end = counts[range.end];
  if (end[1] > begin[1]) return Source::analytic;
  return end[0] > begin[0] ? Source::interpolated : Source::measured;
}

Bytes UnitTable::working_set(const UnitRange& range, Recompute recompute) const {
  PLAIT_CHECK(range.begin < range.end);
  if (recompute == Recompute::none) return {};
  if (!in_ops_ || recompute == Recompute::selective)
    return most(working_set_[static_cast<int>(recompute)], range);
  const std::vector<UnitCost>& all = prefix_[static_cast<int>(Recompute::none)];
  Bytes largest;
  for (int u = range.begin; u < range.end; u = next_layer_[u])
    largest = std::max(largest, all[std::min(next_layer_[u], range.end)].saved - all[u].saved);
  return largest;
}

}  // namespace plait
