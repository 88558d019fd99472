#include "search/uniform/all_orders.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "cost/pipeline/schedule.h"
#include "search/uniform/network_bound.h"

namespace plait {
namespace {

constexpr std::size_t kMostEdges = 4'000;     // of the graph
constexpr std::size_t kMostSignatures = 200;  // stages that cost differently
constexpr int kHalvings = 5;                  // of the range of steps that is open
constexpr int kRounds = 3;                    // of room and paths
constexpr std::size_t kMostPrices = 4;        // of a layer
constexpr double kOrderRounding = 1e-9;       // relative

bool is_plain(Schedule schedule) {
  return schedule == Schedule::one_f_one_b || schedule == Schedule::gpipe;
}

}  // namespace

AllOrders::AllOrders(const UniformGround& ground, const UniformLayout& layout, const Space& space)
    : ground_(ground),
      layout_(layout),
      space_(space),
      problem_(space.problem()),
      micro_batches_(layout.settings.micro_batches),
      layers_(layers_by_kind(problem_.model)) {
  if (!layers_) return;
  others_ = problem_.model.unit_count() - 2 - layers_->count;
  const NodeMix& mix = ground.mixes[layout.mix];
  NetworkBound network(problem_, ground.kinds);
  tied_ = network.tied(layout, mix).value;
  for (std::size_t k = 0; k < mix.size(); ++k)
    send_.push_back(mix[k] > 0 && problem_.profile.collectives.empty()
                        ? network.of_a_device(layout, static_cast<int>(k), mix).value
                        : 0);
}

bool AllOrders::closes(Seconds step) {
  if (!layers_ || !std::isfinite(step.value)) return layout_.bound >= step;
  asked_ = step.value - tied_;
  return layout_.bound >= step || (set_graph(asked_) && !is_possible(asked_));
}

Seconds AllOrders::bound() {
  const Seconds known = layout_.bound;
  if (!graph_ || gives_up_) return known;
  double low = std::min(layout_.untied.value, asked_);
  double high = asked_;
  if (!is_possible(high)) return std::max(known, Seconds(high + tied_));
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (is_possible(middle) ? high : low) = middle;
  }
  return std::max(known, Seconds(low + tied_));
}

bool AllOrders::set_graph(double step) {
  const NodeMix& mix = ground_.mixes[layout_.mix];
  OrderGraph::Shape shape{{}, mix, layout_.stage_devices(), false, kMostEdges};
  const int replica = layout_.tensor * layout_.settings.context;
  for (std::size_t k = 0; k < mix.size(); ++k) {
    shape.devices.push_back(ground_.kinds[k].devices());
    if (mix[k] > 0 && shape.devices[k] % replica != 0) shape.parts_in_order = true;
  }
  if (layout_.settings.expert > 1 || problem_.job.zero_group > 0) shape.parts_in_order = true;
  graph_ = OrderGraph::of(shape, [&](const auto& place) { return may_be(place, step); });
  if (!graph_ || gives_up_) return false;
  for (const OrderGraph::Place& place : graph_->places()) stages_.push_back(at(place));
  return true;
}

bool AllOrders::may_be(const OrderGraph::Place& place, double step) {
  gives_up_ = gives_up_ || on_parts_.size() > kMostSignatures || ground_.stop();
  if (gives_up_ || !on_parts(place.parts).runs) return false;
  const StageAt stage = at(place);
  return most_layers(place, stage, {.step = step}, {}) >= stage.fewest;
}

AllOrders::StageOnParts& AllOrders::on_parts(const std::vector<NodePart>& parts) {
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
  // Of several replicas no more is known than that one pass is half of both.
  const bool alike = out.runs->frame().replica_count() == 1;
  double backward = HUGE_VAL;
  out.forward = HUGE_VAL;
  for (std::size_t k = 0; k < layers_->units.size(); ++k) {
    const int u = layers_->units[k];
    const StageTime time = out.runs->alone({u, u + 1});
    const double half = time.total().value / 2;
    out.forward = std::min(out.forward, (alike ? time.forward.value : half) / layers_->worth[k]);
    backward = std::min(backward, (alike ? time.backward.value : half) / layers_->worth[k]);
  }
  out.longer = std::max(out.forward, backward);
  if (!alike) out.forward = 0;
  return out;
}

// Layers of several kinds are worth what they take on some stage.
void AllOrders::set_worth(const RunCosts& runs) {
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
StagePlace AllOrders::where(const OrderGraph::Place& place) const {
  const int last = layout_.schedule == Schedule::zb_v ? 0 : layout_.stages - 1;
  return {.first = place.stage == 0,
          .last = place.stage == last,
          .mean_layers = 1.0 * layers_->count / layout_.stages,
          .live = static_cast<double>(chunks_in_flight(layout_.schedule, layout_.stages,
                                                       place.stage, layout_.settings.micro_batches,
                                                       layout_.chunks)) /
                  layout_.chunks};
}

AllOrders::StageAt AllOrders::at(const OrderGraph::Place& place) {
  const StagePlace own = where(place);
  StageOnParts& on = on_parts(place.parts);
  const auto [known, is_new] = on.by_end.try_emplace({own.first, own.last});
  if (is_new) known->second = least_stage(*on.runs, *layers_, own);
  StageAt out{.on = &on, .stage = known->second};
  out.in_flight = std::min(micro_batches_, static_cast<double>(layout_.stages - place.stage));
  if (layout_.chunks > 1) {
    const bool is_first_of_v = layout_.schedule == Schedule::zb_v && own.first;
    out.fewest = is_first_of_v ? 0 : std::max(0, layout_.chunks - 1 - others_) * least_worth_;
    return out;
  }
  // An end of the model may be a stage of its own.
  const int without = (own.first ? 1 : 0) + (own.last ? 1 : 0) + others_;
  out.fewest = std::max(0, layout_.chunks - without) * least_worth_;
  if (place.stage + 1 < layout_.stages) out.sent = crossing(place, 1);
  if (place.stage > 0) out.received = crossing(place, -1);
  return out;
}

// What hand-overs to the device a stage further on take, or from the one a stage before, where
// those are on other nodes: the devices of a stage on a node share its network (hand_over() in
// cost/stage_cost.h).
double AllOrders::crossing(const OrderGraph::Place& place, int direction) const {
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

int AllOrders::most_that_fit(const OrderGraph::Place& place, const StageOnParts& on) {
  const StagePlace own = where(place);
  const auto [known, is_new] = fitting_.try_emplace({&on, own.live, own.first, own.last});
  const bool some = layout_.recomputes_some || space_.pins().recompute_layers;
  const Recompute recompute = some ? Recompute::full : layout_.recompute;
  if (is_new)
    known->second = plait::most_layers(on.runs->frame(), space_, *layers_, recompute, own);
  return known->second;
}

const LayerLoad& AllOrders::load(const OrderGraph::Place& place, const StageOnParts& on) {
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

// What is recomputed in the last micro-batch may hide as much of the finish.
int AllOrders::fewer_for_recompute(int most, const OrderGraph::Place& place, const StageAt& at,
                                   const Limits& limits, const Around& around) {
  const LayerLoad& own = load(place, *at.on);
  const InterleavedStage& stage = at.stage;
  const double m = micro_batches_;
  const double c = m - at.in_flight;
  most = std::min(most, own.most_layers());
  const auto is_late = [&](int n) {
    const double more = own.needed[n] * own.recomputed;
    const double busy = n * stage.layer + stage.ends;
    const double finish = n * stage.finish + stage.finish_of_ends;
    const double step = limits.step * (1 + kOrderRounding) - m * busy;
    const bool is_1f1b = layout_.schedule == Schedule::one_f_one_b;
    return m * more + limits.finish + around.before > step ||
           (m - 1) * more + finish + around.forward_before > step ||
           (is_1f1b && c * (busy + more) + (at.in_flight - 1) * n * at.on->longer + limits.trip +
                               limits.finish >
                           limits.step * (1 + kOrderRounding));
  };
  while (most > 0 && is_late(most)) --most;
  return most;
}

// What the stage has room for, or less than nothing. With n layers its passes take n x + ends = X,
// and m micro-batches, of which k are in flight there,
//   before + m X + finish of the first stage
//   forward part of before + m X + finish
// and under 1F1B, with c = m - k, the first micro-batch's round trip and the finish of the first
// stage besides
//   c X + (k - 1) max(f, b)
//   c X + after, if c > 0.
double AllOrders::most_layers(const OrderGraph::Place& place, const StageAt& at,
                              const Limits& limits, const Around& around) {
  const InterleavedStage& stage = at.stage;
  const double m = micro_batches_;
  double most = layers_->count;
  const auto limit = [&](double room, double of_layer) {
    if (of_layer > 0) most = std::min(most, room / of_layer);
    if (room < 0 && of_layer <= 0) most = -1;
  };
  const double step = limits.step - m * stage.ends;
  limit(step - limits.finish - around.before, m * stage.layer);
  limit(step - around.forward_before - stage.finish_of_ends, m * stage.layer + stage.finish);
  const double handed = m * layout_.chunks * (at.sent + at.received);
  limit(limits.step + tied_ - stage.wire_of_ends - handed, stage.wire);
  const double rest = limits.step - limits.finish - limits.trip;
  if (layout_.schedule == Schedule::one_f_one_b) {
    const double c = m - at.in_flight;
    limit(rest - c * stage.ends, c * stage.layer + (at.in_flight - 1) * at.on->longer);
    if (c > 0) limit(rest - c * stage.ends - around.after, c * stage.layer);
  } else if (layout_.schedule == Schedule::gpipe) {
    limit(rest - (m - 1) * stage.ends, (m - 1) * stage.layer);
  }
  if (most < -kOrderRounding) return -1;
  most = std::max(0.0, most) * (1 + kOrderRounding);
  if (layers_->units.size() == 1) most = std::floor(most);
  if (most <= 0) return 0;
  const double fitting = most_that_fit(place, *at.on) * most_worth_;
  lacks_memory_ = lacks_memory_ || fitting < most;
  most = std::min(most, fitting);
  if (!layout_.recomputes_some || !layers_->equal || most < 1) return most;
  return fewer_for_recompute(static_cast<int>(most), place, at, limits, around);
}

bool AllOrders::is_possible(double step) {
  const auto& places = graph_->places();
  std::vector<double> most(places.size());
  std::vector<double> cost(places.size());
  std::vector<Around> others(places.size());
  Limits limits{.step = step};
  const double in_flight = std::min(micro_batches_, static_cast<double>(layout_.stages));
  const bool is_1f1b = layout_.schedule == Schedule::one_f_one_b;
  const double trips = is_1f1b ? std::floor((micro_batches_ - 1) / in_flight) + 1 : 1;
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      most[i] = most_layers(places[i], stages_[i], limits, others[i]);
      cost[i] = most[i] < stages_[i].fewest ? HUGE_VAL : -most[i];
    }
    if (-graph_->least(cost) < layers_->count * (1 - kOrderRounding)) return false;
    // Of other schedules no more is counted than what the busiest stage has to do.
    if (!is_plain(layout_.schedule)) return true;
    limits.finish = least_finish(most);
    limits.trip = least_trip(most);
    if (trips * limits.trip * (1 - kOrderRounding) + limits.finish >= step) return false;
    others = around(most);
  }
  return true;
}

double AllOrders::least_finish(const std::vector<double>& most) const {
  double least = HUGE_VAL;
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    if (graph_->places()[i].stage > 0 || most[i] < stages_[i].fewest) continue;
    const InterleavedStage& stage = stages_[i].stage;
    for (const double n : {stages_[i].fewest, most[i]})
      least = std::min(least, std::max(0.0, n * stage.finish + stage.finish_of_ends));
  }
  return least;
}

double AllOrders::least_trip(const std::vector<double>& most) const {
  std::set<double> times;
  for (const StageAt& at : stages_) times.insert(at.stage.layer);
  const std::vector<double> all(times.begin(), times.end());
  std::vector<double> cost(stages_.size());
  double trip = 0;
  const std::size_t prices = std::min(kMostPrices, all.size());
  for (std::size_t j = 0; j < prices; ++j) {
    const double price = all[prices > 1 ? j * (all.size() - 1) / (prices - 1) : 0];
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      const InterleavedStage& stage = stages_[i].stage;
      const double n = stage.layer < price ? most[i] : stages_[i].fewest;
      cost[i] = most[i] < stages_[i].fewest
                    ? HUGE_VAL
                    : stage.ends + 2 * stages_[i].sent + n * (stage.layer - price);
    }
    trip = std::max(trip, layers_->count * price + graph_->least(cost));
  }
  return trip;
}

// Each stage has its fewest layers, and the stages before one, or after it, those for which the
// others have no room.
std::vector<AllOrders::Around> AllOrders::around(const std::vector<double>& most) const {
  const std::size_t count = stages_.size();
  std::vector<double> room(count);
  std::vector<double> fewest(count);
  std::vector<double> passes(count);
  std::vector<double> forward(count);
  double layer = HUGE_VAL;
  double layer_forward = HUGE_VAL;
  for (std::size_t i = 0; i < count; ++i) {
    const StageAt& at = stages_[i];
    const bool may_be = most[i] >= at.fewest;
    room[i] = may_be ? -most[i] : HUGE_VAL;
    fewest[i] = at.fewest;
    passes[i] = may_be ? at.stage.ends + 2 * at.sent + at.fewest * at.stage.layer : HUGE_VAL;
    forward[i] = may_be ? at.sent + at.fewest * at.on->forward : HUGE_VAL;
    if (!may_be) continue;
    layer = std::min(layer, at.stage.layer);
    layer_forward = std::min(layer_forward, at.on->forward);
  }
  const std::vector<double> room_before = graph_->least_before(room);
  const std::vector<double> room_after = graph_->least_after(room);
  const std::vector<double> known_before = graph_->least_before(fewest);
  const std::vector<double> known_after = graph_->least_after(fewest);
  const std::vector<double> before = graph_->least_before(passes);
  const std::vector<double> forward_before = graph_->least_before(forward);
  const std::vector<double> after = graph_->least_after(passes);
  std::vector<Around> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double others = layers_->count - std::max(0.0, most[i]);
    const double more_before = std::max(0.0, others + room_after[i] - known_before[i]);
    const double more_after = std::max(0.0, others + room_before[i] - known_after[i]);
    out[i].before = before[i] + more_before * layer;
    out[i].forward_before = forward_before[i] + more_before * layer_forward;
    // The hand-over to the stage after is on the way there.
    out[i].after = after[i] + more_after * layer + 2 * stages_[i].sent;
  }
  return out;
}

}  // namespace plait
