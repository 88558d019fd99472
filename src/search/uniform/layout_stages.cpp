#include "search/uniform/layout_stages.h"

#include <algorithm>
#include <utility>

namespace plait {

LayoutStages::LayoutStages(const UniformGround& ground, const UniformLayout& layout,
                           const Space& space)
    : ground_(ground),
      layout_(layout),
      space_(space),
      problem_(ground.context.problem),
      tables_([&ground](const ReplicaShape& shape) -> const UnitTable& {
        return ground.engine.table(shape);
      }) {}

bool LayoutStages::place(const std::vector<int>& order) {
  const std::vector<DeviceId> devices = devices_in(ground_.kinds, order);
  plan_ = plan_under(layout_.settings, ground_.layouts.base_schedule(layout_.stages));
  const int size = layout_.stage_devices();
  for (int s = 0; s < layout_.stages; ++s) {
    Stage stage;
    stage.devices.assign(devices.begin() + static_cast<long>(s) * size,
                         devices.begin() + static_cast<long>(s + 1) * size);
    stage.spans.push_back({.units = {0, problem_.model.unit_count()},
                           .tensor = layout_.tensor,
                           .data = layout_.data,
                           .recompute = layout_.recompute});
    plan_.stages.push_back(std::move(stage));
  }
  ground_.context.space->drop_idle_switches(plan_);
  if (!tensor_groups_have_one_type()) return false;
  read_signatures(order);
  return true;
}

// Groups over several nodes are apart where hosts of two kinds take turns.
bool LayoutStages::tensor_groups_have_one_type() const {
  const Cluster& cluster = problem_.cluster;
  for (const Stage& stage : plan_.stages)
    for (std::size_t d = 0; d < stage.devices.size(); ++d) {
      const DeviceId first = stage.devices[d - d % static_cast<std::size_t>(layout_.tensor)];
      if (cluster.device(first).type != cluster.device(stage.devices[d]).type) return false;
    }
  return true;
}

// How many devices of which kind of node follow each other on every stage, and which ones where a
// node has several types: stages that read the same cost the same, and so do hand-overs between
// them.
void LayoutStages::read_signatures(const std::vector<int>& order) {
  sides_.clear();
  std::vector<int> key;
  int left = layout_.stage_devices();
  for (const int kind : order) {
    const NodeKind& node = ground_.kinds[kind];
    const bool alike = std::ranges::count(node.types, node.types.front()) == node.devices();
    for (int own = node.devices(); own > 0;) {
      const int taken = std::min(own, left);
      key.insert(key.end(), {kind, alike ? 0 : node.devices() - own, taken});
      own -= taken;
      left -= taken;
      if (left > 0) continue;
      const auto at = signatures_.try_emplace(key, static_cast<int>(signatures_.size())).first;
      sides_.push_back({at->second, own > 0});
      key.clear();
      left = layout_.stage_devices();
    }
  }
}

RunCosts* LayoutStages::runs_of(int s, BySignature& made) {
  auto& runs = made[sides_[s].signature];
  if (!runs) {
    runs = std::make_unique<RunCosts>(space_, rhythm(),
                                      SpanFrame(problem_, layout_.settings, plan_.stages[s].devices,
                                                layout_.tensor, layout_.data, {}, tables_));
    if (&made == &recomputing_) runs->recompute_first(first_);
  }
  return runs.get();
}

void LayoutStages::recompute_first(const RunCosts::FirstLayers& layers) {
  first_ = layers;
  for (auto& [signature, runs] : recomputing_) runs->recompute_first(layers);
}

const HandOver& LayoutStages::over(int s, int unit) {
  const std::array key{sides_[s].signature, sides_[s + 1].signature,
                       sides_[s].ends_inside_node ? 1 : 0, problem_.model.units[unit - 1]};
  const auto [at, is_new] = overs_.try_emplace(key);
  if (is_new) at->second = hand_over(problem_, plan_, plan_.stages[s], plan_.stages[s + 1], unit);
  return at->second;
}

ScheduleSetting LayoutStages::rhythm() const {
  return {ground_.layouts.base_schedule(layout_.stages), layout_.settings.micro_batches};
}

// Of a single stage, whose gradients are summed over all replicas alike, one will do, but for
// groups of neighbouring devices.
HostOrders orders_of(const UniformGround& ground, const UniformLayout& layout) {
  HostOrders out = host_orders(ground.kinds, ground.mixes[layout.mix]);
  const bool depends = layout.stages > 1 || layout.settings.context > 1 ||
                       layout.settings.expert > 1 || ground.context.problem.job.zero_group > 0;
  if (depends) return out;
  out.are_all = true;
  out.orders.resize(1);
  return out;
}

void sort_orders(std::vector<OpenOrder>& orders) {
  const auto changes = [](const OpenOrder& own) {
    int count = 0;
    for (std::size_t i = 1; i < own.order->size(); ++i)
      count += (*own.order)[i] != (*own.order)[i - 1] ? 1 : 0;
    return count;
  };
  std::ranges::stable_sort(
      orders, {}, [&](const OpenOrder& own) { return std::pair(own.bound, changes(own)); });
}

std::vector<double> LayoutStages::times_alone() {
  std::vector<double> out;
  for (int s = 0; s < layout_.stages; ++s)
    out.push_back(runs(s)->alone({0, problem_.model.unit_count()}).total().value);
  return out;
}

}  // namespace plait
