#include "cost/layer/unit_cost.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "cost/framework/framework.h"
#include "cost/layer/layer_cost.h"
#include "cost/op/op_points.h"

namespace plait {

namespace {

// The costs of a model's distinct layers.
struct LayerCosts {
  std::vector<LayerCost> units;  // of each distinct layer, in order
  std::vector<int> first;        // by shape of layer, into `units`
};

LayerCosts layer_costs(const Problem& problem, const ReplicaShape& shape,
                       const ModelLayers& layers) {
  const DeviceType& device = problem.cluster.device_types[shape.device_type];
  const OpPoints points(problem.profile, device.name);
  const auto kernels = kernels_of(problem.job, problem.model, device);
  const ReplicaSetting setting{problem, shape, *kernels, points, layers};
  LayerCosts costs;
  for (const LayerShape& layer : layers.shapes) {
    costs.first.push_back(static_cast<int>(costs.units.size()));
    std::vector<LayerCost> units = layer_cost(setting, layer);
    std::ranges::move(units, std::back_inserter(costs.units));
  }
  return costs;
}

void count(Source source, std::array<int, 2>& counts) {
  if (source != Source::measured) ++counts[static_cast<int>(source) - 1];
}

}  // namespace

void UnitTable::Facts::add(const Extent& more, const Origin& origin) {
  extent += more;
  count(origin.time, time);
  count(origin.memory, memory);
}

void UnitTable::Facts::add(const Facts& more) {
  extent += more.extent;
  for (const int i : {0, 1}) {
    time[i] += more.time[i];
    memory[i] += more.memory[i];
  }
}

void UnitTable::Pass::add(const UnitCost& unit) {
  forward += unit.forward;
  backward += unit.backward;
  weight_gradient += unit.weight_gradient;
  recompute += unit.recompute;
  forward_comm += unit.forward_comm;
  backward_comm += unit.backward_comm;
  network_forward += unit.network_forward;
  network_backward += unit.network_backward;
  saved += unit.saved;
}

void UnitTable::Parameters::add(const UnitCost& unit) {
  all += unit.parameters;
  experts += unit.expert_parameters;
  trained += unit.trained;
  trained_experts += unit.trained_experts;
}

void UnitTable::Measured::add(const UnitCost& unit) {
  held += unit.held;
  optimizer += unit.optimizer;
  optimizer_parameters += unit.optimizer_parameters;
}

void UnitTable::Sums::begin(std::size_t count, bool from_profile) {
  parameters.reserve(count + 1);
  parameters.emplace_back();
  for (int r = 0; r < 3; ++r) {
    passes[r].reserve(count + 1);
    passes[r].emplace_back();
    if (!from_profile) continue;
    measured[r].reserve(count + 1);
    measured[r].emplace_back();
  }
}

void UnitTable::Sums::begin_anew() {
  parameters.back() = {};
  for (int r = 0; r < 3; ++r) {
    passes[r].back() = {};
    if (!measured[r].empty()) measured[r].back() = {};
  }
}

void UnitTable::Sums::append(const std::array<UnitCost, 3>& cost) {
  const auto add = [](auto& sums, const UnitCost& own) {
    auto sum = sums.back();
    sum.add(own);
    sums.push_back(sum);
  };
  add(parameters, cost.front());
  for (int r = 0; r < 3; ++r) {
    add(passes[r], cost[r]);
    if (!measured[r].empty()) add(measured[r], cost[r]);
  }
}

UnitTable::UnitTable(const Problem& problem, const ReplicaShape& shape) {
  const ModelLayers layers = layers_of(problem.model, shape.split);
  const LayerCosts costs = layer_costs(problem, shape, layers);
  in_ops_ = layers.in_ops;
  layer_begin_ = layers.begin;
  const auto count = static_cast<std::size_t>(layers.count());
  const bool from_profile = std::ranges::any_of(costs.units, [](const LayerCost& unit) {
    return std::ranges::any_of(unit.by_recompute, [](const UnitCost& own) {
      return own.held > Bytes(0) || own.optimizer > Seconds(0) || own.optimizer_parameters > 0;
    });
  });
  sums_.begin(count, from_profile);
  const std::vector<Whole> wholes = add_distinct(costs.units, costs.first, from_profile);
  std::array<std::vector<Bytes>, 3> repeated;
  std::array<std::vector<Bytes>, 3> workspace;
  std::array<Bytes, 3> saved{};
  bool has_workspace = false;
  facts_.reserve(count + 1);
  facts_.emplace_back();
  blocks_until_.reserve(count);
  layer_of_.reserve(problem.model.units.size() + 1);
  cost_of_.reserve(problem.model.units.size() + 1);
  int blocks = 0;
  for (int l = 0; l < layers.count(); ++l) {
    const int shape_of = layers.shape_of[l];
    const Whole& whole = wholes[shape_of];
    sums_.append(whole.cost);
    for (int r = 0; r < 3; ++r) {
      repeated[r].push_back(whole.repeated[r]);
      saved[r] += whole.cost[r].saved;
      workspace[r].push_back(whole.workspace + (in_ops_ ? Bytes(0) : saved[r]));
    }
    has_workspace = has_workspace || whole.workspace > Bytes(0);
    Facts facts = facts_.back();
    facts.add(whole.facts);
    facts_.push_back(facts);
    const bool is_block = !costs.units[costs.first[shape_of]].is_table;
    blocks += is_block ? 1 : 0;
    blocks_until_.push_back(blocks);
    is_block_.push_back(is_block);
    for (int u = layers.begin[l]; u < layers.begin[l + 1]; ++u) {
      layer_of_.push_back(l);
      cost_of_.push_back(costs.first[shape_of] + u - layers.begin[l]);
    }
  }
  layer_of_.push_back(layers.count());
  cost_of_.push_back(static_cast<int>(costs.units.size()));
  for (int r = 0; r < 3 && has_workspace; ++r) workspace_[r] = RangeMaximum(workspace[r]);
  for (const int r : {static_cast<int>(Recompute::selective), static_cast<int>(Recompute::full)})
    working_set_[r] = RangeMaximum(repeated[r]);
}

// `first`: of each distinct layer, its first unit.
std::vector<UnitTable::Whole> UnitTable::add_distinct(const std::vector<LayerCost>& units,
                                                      const std::vector<int>& first,
                                                      bool from_profile) {
  std::vector<Whole> wholes;
  inner_.begin(in_ops_ ? units.size() : 0, from_profile);
  for (std::size_t s = 0; s < first.size(); ++s) {
    const auto end = s + 1 < first.size() ? static_cast<std::size_t>(first[s + 1]) : units.size();
    Whole& whole = wholes.emplace_back();
    inner_.begin_anew();
    for (std::size_t d = first[s]; d < end; ++d) {
      const LayerCost& own = units[d];
      if (in_ops_) inner_.append(own.by_recompute);
      for (int r = 0; r < 3; ++r) {
        inner_repeated_[r].push_back(whole.repeated[r]);
        whole.cost[r] += own.by_recompute[r];
        whole.repeated[r] += own.repeated[r];
      }
      inner_facts_.push_back(whole.facts);
      whole.facts.add(own.extent, own.origin);
      whole.workspace = std::max(whole.workspace, own.workspace);
      unit_workspace_.push_back(own.workspace);
      const bool starts = d == static_cast<std::size_t>(first[s]);
      inside_input_.push_back(starts ? Bytes(0) : own.input);
      recompute_input_.push_back(own.is_table ? Bytes(0) : inside_input_.back());
      origins_.push_back(own.origin);
    }
  }
  inner_.begin_anew();
  for (std::vector<Bytes>& inner : inner_repeated_) inner.emplace_back();
  inner_facts_.emplace_back();
  return wholes;
}

Source UnitTable::weakest(std::array<int, 2> Facts::*which, const UnitRange& range) const {
  const auto between = [&](int i) {
    return (facts_[layer_of_[range.end]].*which)[i] - (facts_[layer_of_[range.begin]].*which)[i] +
           (inner_facts_[cost_of_[range.end]].*which)[i] -
           (inner_facts_[cost_of_[range.begin]].*which)[i];
  };
  if (between(1) > 0) return Source::analytic;
  return between(0) > 0 ? Source::interpolated : Source::measured;
}

UnitRange UnitTable::whole_layers(const UnitRange& range) const {
  const int first = layer_of_[range.begin];
  return {first + (layer_begin_[first] < range.begin ? 1 : 0), layer_of_[range.end]};
}

Bytes UnitTable::repeated(int recompute, const UnitRange& part) const {
  const int layer = layer_of_[part.begin];
  const std::vector<Bytes>& inner = inner_repeated_[recompute];
  const Bytes until = part.end == layer_begin_[layer + 1]
                          ? working_set_[recompute].most({layer, layer + 1})
                          : inner[cost_of_[part.end]];
  return until - inner[cost_of_[part.begin]];
}

Bytes UnitTable::working_set(const UnitRange& range, Recompute recompute) const {
  PLAIT_CHECK(range.begin < range.end);
  if (recompute == Recompute::none) return {};
  const int r = static_cast<int>(recompute);
  const UnitRange whole = whole_layers(range);
  if (whole.begin > whole.end) return repeated(r, range);
  // Layers of which the range has some units only, at its ends, and those between them.
  Bytes largest;
  if (range.begin < layer_begin_[whole.begin])
    largest = repeated(r, {range.begin, layer_begin_[whole.begin]});
  if (layer_begin_[whole.end] < range.end)
    largest = std::max(largest, repeated(r, {layer_begin_[whole.end], range.end}));
  if (whole.size() > 0) largest = std::max(largest, working_set_[r].most(whole));
  return largest;
}

Bytes UnitTable::workspace(const UnitRange& range, Recompute recompute) const {
  const int r = static_cast<int>(recompute);
  if (workspace_[r].empty()) return {};
  const UnitRange whole = whole_layers(range);
  if (!in_ops_) {
    const Bytes saved_until_end = cost({0, range.end}, recompute).saved;
    return std::max(Bytes(0), workspace_[r].most(whole) - saved_until_end);
  }
  Bytes largest;
  const auto add = [&](int begin, int end) {
    for (int u = begin; u < end; ++u) largest = std::max(largest, unit_workspace_[cost_of_[u]]);
  };
  if (whole.begin > whole.end) {
    add(range.begin, range.end);
    return largest;
  }
  add(range.begin, layer_begin_[whole.begin]);
  add(layer_begin_[whole.end], range.end);
  return whole.size() > 0 ? std::max(largest, workspace_[r].most(whole)) : largest;
}

}  // namespace plait
