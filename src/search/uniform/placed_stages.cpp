#include "search/uniform/placed_stages.h"

#include <algorithm>
#include <cmath>

#include "cost/pipeline/schedule.h"
#include "search/uniform/layouts/network_bound.h"

namespace plait {

PlacedStages::PlacedStages(const UniformGround& ground, const UniformLayout& layout,
                           const Space& space)
    : ground_(ground),
      layout_(layout),
      space_(space),
      problem_(space.problem()),
      layers_(layers_by_kind(problem_.model)) {
  if (!layers_) return;
  others_ = problem_.model.unit_count() - 2 - layers_->count;
  const NodeMix& mix = ground.mixes[layout.mix];
  NetworkBound network(problem_, ground.kinds);
  const bool one_may_do =
      layout.of_any_nodes && std::ranges::any_of(ground.kinds, [&](const NodeKind& kind) {
        return kind.devices() >= layout.devices();
      });
  tied_ = one_may_do ? 0 : network.tied(layout, mix).value;
  for (std::size_t k = 0; k < mix.size(); ++k)
    send_.push_back(mix[k] > 0 && problem_.profile.collectives.empty()
                        ? network.of_a_device(layout, static_cast<int>(k), mix).value
                        : 0);
}

PlacedStages::StageOnParts& PlacedStages::on_parts(const std::vector<NodePart>& parts) {
  const auto [known, is_new] = on_parts_.try_emplace(parts);
  StageOnParts& out = known->second;
  if (!is_new) return out;
  std::vector<DeviceId> devices;
  std::vector<int> hosts(ground_.kinds.size(), 0);
  for (const NodePart& part : parts) {
    const std::vector<DeviceId>& own = ground_.kinds[part.kind].on_node[hosts[part.kind]++];
    devices.insert(devices.end(), own.begin() + part.first, own.begin() + part.first + part.count);
  }
  const Cluster& cluster = problem_.cluster;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const DeviceId first = devices[d - d % static_cast<std::size_t>(layout_.tensor)];
    if (cluster.device(first).type != cluster.device(devices[d]).type) return out;
  }
  const TableSource tables = [this](const ReplicaShape& shape) -> const UnitTable& {
    return ground_.engine.table(shape);
  };
  out.runs = std::make_unique<RunCosts>(
      space_,
      ScheduleSetting{ground_.layouts.base_schedule(layout_.stages),
                      layout_.settings.micro_batches},
      SpanFrame(problem_, layout_.settings, devices, layout_.tensor, layout_.data, {}, tables));
  if (on_parts_.size() == 1) set_worth(*out.runs);
  // Of several replicas the one that takes longest counts, which need not be slow both ways.
  const SpanFrame& frame = out.runs->frame();
  out.forward = out.backward = out.longer = HUGE_VAL;
  for (std::size_t k = 0; k < layers_->units.size(); ++k) {
    const int u = layers_->units[k];
    const double half = out.runs->alone({u, u + 1}).total().value / 2;
    double forward = HUGE_VAL;
    double backward = HUGE_VAL;
    for (int r = 0; r < frame.replica_count(); ++r) {
      const UnitCost time = frame.time_on(r, {u, u + 1}, space_.recomputes().front());
      forward = std::min(forward, time.forward_total().value);
      backward = std::min(backward, time.backward_total().value);
    }
    const double worth = layers_->worth[k];
    out.forward = std::min(out.forward, forward / worth);
    out.backward = std::min(out.backward, backward / worth);
    out.longer = std::min(out.longer, std::max({half, forward, backward}) / worth);
  }
  return out;
}

// Layers of several kinds are worth what they take on some stage.
void PlacedStages::set_worth(const RunCosts& runs) {
  double sum = 0;
  for (std::size_t k = 0; k < layers_->units.size(); ++k) {
    const int u = layers_->units[k];
    layers_->worth[k] = std::max(1e-12, runs.alone({u, u + 1}).total().value);
    sum += layers_->counts[k] * layers_->worth[k];
  }
  for (double& worth : layers_->worth) worth *= layers_->count / sum;
  if (layers_->units.size() == 1) layers_->worth.front() = 1;
  std::tie(least_worth_, most_worth_) = std::pair(*std::ranges::min_element(layers_->worth),
                                                  *std::ranges::max_element(layers_->worth));
}

// A V has both ends of the model on its first stage.
StagePlace PlacedStages::where(const OrderGraph::Place& place) const {
  const int last = layout_.schedule == Schedule::zb_v ? 0 : layout_.stages - 1;
  return {.first = place.stage == 0,
          .last = place.stage == last,
          .mean_layers = 1.0 * layers_->count / layout_.stages,
          .live = static_cast<double>(chunks_in_flight(layout_.schedule, layout_.stages,
                                                       place.stage, layout_.settings.micro_batches,
                                                       layout_.chunks)) /
                  layout_.chunks};
}

PlacedStages::StageAt PlacedStages::at(const OrderGraph::Place& place) {
  const StagePlace own = where(place);
  StageOnParts& on = on_parts(place.parts);
  const auto [known, is_new] = on.by_end.try_emplace({own.first, own.last});
  if (is_new) known->second = least_stage(*on.runs, *layers_, own);
  StageAt out{.on = &on, .stage = known->second};
  out.in_flight = std::min(layout_.settings.micro_batches, layout_.stages - place.stage);
  if (layout_.chunks > 1) {
    const bool is_first_of_v = layout_.schedule == Schedule::zb_v && own.first;
    out.fewest = is_first_of_v ? 0 : std::max(0, layout_.chunks - 1 - others_) * least_worth_;
  } else {
    // An end of the model may be a stage of its own.
    const int without = (own.first ? 1 : 0) + (own.last ? 1 : 0) + others_;
    out.fewest = std::max(0, layout_.chunks - without) * least_worth_;
  }
  if (place.stage + 1 < layout_.stages) out.sent = crossing(place, 1);
  if (place.stage > 0) out.received = crossing(place, -1);
  return out;
}

// What hand-overs to the device a stage further on take, or from the one a stage before, where
// those are on other nodes: the devices of a stage on a node share its network (hand_over() in
// cost/stage_cost.h).
double PlacedStages::crossing(const OrderGraph::Place& place, int direction) const {
  const int replica = layout_.tensor * layout_.settings.context;
  const int size = layout_.stage_devices();
  double most = 0;
  int before = 0;  // devices of the stage
  for (const NodePart& part : place.parts) {
    const int own = ground_.kinds[part.kind].devices();
    for (int d = 0; d < part.count; ++d) {
      if ((before + d) % replica != 0) continue;
      const int other = part.first + d + direction * size;
      if (other < 0 || other >= own) most = std::max(most, part.count * send_[part.kind]);
    }
    before += part.count;
  }
  return most;
}

int PlacedStages::most_that_fit(const OrderGraph::Place& place, const StageOnParts& on) {
  const StagePlace own = where(place);
  const auto [known, is_new] = fitting_.try_emplace({&on, own.live, own.first, own.last});
  const bool some =
      layout_.of_any_nodes || layout_.recomputes_some || space_.pins().recompute_layers;
  const Recompute recompute = some ? Recompute::full : layout_.recompute;
  if (is_new)
    known->second = plait::most_layers(on.runs->frame(), space_, *layers_, recompute, own);
  return known->second;
}

const LayerLoad& PlacedStages::load(const OrderGraph::Place& place, const StageOnParts& on) {
  const StagePlace own = where(place);
  const auto [known, is_new] = loads_.try_emplace({&on, own.live, own.first, own.last});
  if (is_new)
    known->second = layer_load({.frame = on.runs->frame(),
                                .tied = space_.tied_copies(),
                                .live = own.live,
                                .has_first = own.first,
                                .has_last = own.last,
                                .units = problem_.model.unit_count(),
                                .most_time = HUGE_VAL});
  return known->second;
}

}  // namespace plait
