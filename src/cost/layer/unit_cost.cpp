#include "cost/layer/unit_cost.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "cost/framework/framework.h"
#include "cost/layer/layer_cost.h"
#include "cost/op/op_points.h"

namespace plait {

namespace {

// The cost of every unit of a model, by reference to those of its distinct layers.
struct CostsByUnit {
  std::vector<LayerCost> distinct;
  std::vector<int> of;  // by unit, into `distinct`
  const LayerCost& unit(std::size_t u) const { return distinct[of[u]]; }
};

CostsByUnit unit_costs(const Problem& problem, const ReplicaShape& shape,
                       const ModelLayers& layers) {
  const DeviceType& device = problem.cluster.device_types[shape.device_type];
  const OpPoints points(problem.profile, device.name);
  const auto kernels = kernels_of(problem.job, problem.model, device);
  const ReplicaSetting setting{problem, shape, *kernels, points, layers};
  CostsByUnit costs;
  std::vector<int> first;  // by shape of layer, into `distinct`
  for (const LayerShape& layer : layers.shapes) {
    first.push_back(static_cast<int>(costs.distinct.size()));
    std::vector<LayerCost> units = layer_cost(setting, layer);
    std::ranges::move(units, std::back_inserter(costs.distinct));
  }
  costs.of.reserve(problem.model.units.size());
  for (int l = 0; l < layers.count(); ++l)
    for (int u = layers.begin[l]; u < layers.begin[l + 1]; ++u)
      costs.of.push_back(first[layers.shape_of[l]] + u - layers.begin[l]);
  return costs;
}

std::vector<Bytes> sums_by_layer(const std::vector<Bytes>& units, const ModelLayers& layers) {
  std::vector<Bytes> sums(layers.count());
  for (int l = 0; l < layers.count(); ++l)
    for (int u = layers.begin[l]; u < layers.begin[l + 1]; ++u) sums[l] += units[u];
  return sums;
}

std::vector<Bytes> sums_from_start(const std::vector<Bytes>& units) {
  std::vector<Bytes> sums(units.size() + 1);
  for (std::size_t u = 0; u < units.size(); ++u) sums[u + 1] = sums[u] + units[u];
  return sums;
}

}  // namespace

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

UnitTable::UnitTable(const Problem& problem, const ReplicaShape& shape) {
  const ModelLayers layers = layers_of(problem.model, shape.split);
  const CostsByUnit costs = unit_costs(problem, shape, layers);
  const std::size_t units = problem.model.units.size();
  in_ops_ = layers.in_ops;
  const auto sum_up = [&](auto& sums, int r) {
    sums.reserve(units + 1);
    sums.emplace_back();
    for (std::size_t u = 0; u < units; ++u) {
      auto sum = sums.back();
      sum.add(costs.unit(u).by_recompute[r]);
      sums.push_back(sum);
    }
  };
  sum_up(parameters_, 0);
  for (int r = 0; r < 3; ++r) {
    sum_up(passes_[r], r);
    if (std::ranges::any_of(costs.distinct, [r](const LayerCost& cost) {
          const UnitCost& own = cost.by_recompute[r];
          return own.held > Bytes(0) || own.optimizer > Seconds(0) || own.optimizer_parameters > 0;
        }))
      sum_up(measured_[r], r);
  }
  extent_.reserve(units + 1);
  extent_.emplace_back();
  time_counts_.reserve(units + 1);
  memory_counts_.reserve(units + 1);
  time_counts_.emplace_back();
  memory_counts_.emplace_back();
  const auto count = [](SourceCounts& counts, Source source) {
    counts.push_back(counts.back());
    if (source != Source::measured) ++counts.back()[static_cast<int>(source) - 1];
  };
  for (std::size_t u = 0; u < units; ++u) {
    const LayerCost& own = costs.unit(u);
    Extent sum = extent_.back();
    sum.loss += own.extent.loss;
    sum.kept_loss += own.extent.kept_loss;
    sum.table_parameters += own.extent.table_parameters;
    extent_.push_back(sum);
    count(time_counts_, own.origin.time);
    count(memory_counts_, own.origin.memory);
  }
  const auto of_units = [&](auto&& part) {
    std::vector<Bytes> values;
    values.reserve(units);
    for (std::size_t u = 0; u < units; ++u) values.push_back(part(costs.unit(u)));
    return values;
  };
  if (std::ranges::any_of(costs.distinct,
                          [](const LayerCost& cost) { return cost.workspace > Bytes(0); }))
    workspace_ = RangeMaximum(of_units([](const LayerCost& unit) { return unit.workspace; }));
  for (const LayerCost& cost : costs.distinct) origins_.push_back(cost.origin);
  origin_of_ = costs.of;
  int blocks = 0;
  for (int l = 0; l < layers.count(); ++l) {
    const bool is_block = !costs.unit(layers.begin[l]).is_table;
    blocks += is_block ? 1 : 0;
    const int size = layers.begin[l + 1] - layers.begin[l];
    blocks_until_.insert(blocks_until_.end(), size, blocks);
    is_block_.insert(is_block_.end(), size, is_block);
    if (in_ops_) layer_of_.insert(layer_of_.end(), size, l);
  }
  for (const int r : {static_cast<int>(Recompute::selective), static_cast<int>(Recompute::full)}) {
    std::vector<Bytes> repeated = of_units([r](const LayerCost& unit) { return unit.repeated[r]; });
    working_set_[r] = RangeMaximum(in_ops_ ? sums_by_layer(repeated, layers) : repeated);
    if (in_ops_) repeated_[r] = sums_from_start(repeated);
  }
  if (!in_ops_) return;
  layer_begin_ = layers.begin;
  inside_input_ = of_units([](const LayerCost& unit) { return unit.input; });
  for (int l = 0; l < layers.count(); ++l) inside_input_[layers.begin[l]] = Bytes(0);
  recompute_input_ = inside_input_;
  for (std::size_t u = 0; u < units; ++u)
    if (costs.unit(u).is_table) recompute_input_[u] = Bytes(0);
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
  const int r = static_cast<int>(recompute);
  if (!in_ops_) return working_set_[r].most(range);
  // Layers of which the range has some units only, at its ends, and those between them.
  const std::vector<Bytes>& sums = repeated_[r];
  int first = layer_of_[range.begin];
  int last = layer_of_[range.end - 1];
  Bytes largest;
  if (layer_begin_[first] < range.begin || layer_begin_[first + 1] > range.end) {
    largest = sums[std::min(layer_begin_[first + 1], range.end)] - sums[range.begin];
    ++first;
  }
  if (first <= last && layer_begin_[last + 1] > range.end) {
    largest = std::max(largest, sums[range.end] - sums[layer_begin_[last]]);
    --last;
  }
  if (first <= last) largest = std::max(largest, working_set_[r].most({first, last + 1}));
  return largest;
}

}  // namespace plait
