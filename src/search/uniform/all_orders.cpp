#include "search/uniform/all_orders.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "cost/pipeline/schedule.h"
#include "search/uniform/layouts/network_bound.h"

namespace plait {
namespace {

constexpr int kPriceSteps = 10;
constexpr double kPriceStep = 1.5;       // relative to what would close the question at once
constexpr int kHalvings = 5;             // of the range of steps that is open
constexpr int kRounds = 3;               // of room and paths
constexpr std::size_t kMostPrices = 4;   // of a layer
constexpr double kOrderRounding = 1e-9;  // relative

// Of a graph that counts hosts, if all stages may be: it lists a host more from every set of them.
double least_edges(const NodeMix& mix) {
  double sets = 1;
  double from_each = 0;
  for (const int count : mix) {
    sets *= count + 1;
    from_each += count / (count + 1.0);
  }
  return sets * from_each;
}

}  // namespace

AllOrders::AllOrders(const UniformGround& ground, const UniformLayout& layout, const Space& space,
                     const OrderWork& work)
    : ground_(ground),
      layout_(layout),
      micro_batches_(layout.settings.micro_batches),
      placed_(ground, layout, space),
      rooms_(layout, placed_),
      layers_(placed_.layers()),
      work_(work) {}

bool AllOrders::closes(Seconds step) {
  if (!layers_ || !std::isfinite(step.value)) return layout_.bound >= step;
  asked_ = step.value - placed_.tied();
  return layout_.bound >= step || (set_graph(asked_) && !is_possible(asked_));
}

Seconds AllOrders::bound() {
  const Seconds known = layout_.bound;
  if (!graph_ || gives_up_) return known;
  double low = std::min(layout_.untied.value, asked_);
  double high = asked_;
  if (!is_possible(high)) return std::max(known, Seconds(high + placed_.tied()));
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (is_possible(middle) ? high : low) = middle;
  }
  return std::max(known, Seconds(low + placed_.tied()));
}

bool AllOrders::set_graph(double step) {
  const NodeMix& mix = ground_.mixes[layout_.mix];
  // Experts are spread over neighbouring replicas.
  const int replicas = layout_.settings.expert > 1
                           ? std::lcm(layout_.settings.context, layout_.settings.expert)
                           : layout_.settings.context;
  const bool in_order = ground_.context.problem.job.zero_group > 0;
  const int group = in_order ? layout_.stage_devices() : layout_.tensor * replicas;
  OrderGraph::Shape shape{
      {}, mix, layout_.stage_devices(), group, work_.most_edges, layout_.devices()};
  for (const NodeKind& kind : ground_.kinds) shape.devices.push_back(kind.devices());
  const auto may = [&](const OrderGraph::Place& place) { return may_be(place, step); };
  if (work_.counts_hosts && least_edges(mix) <= static_cast<double>(work_.most_edges))
    graph_ = OrderGraph::of(shape, may);
  if (!graph_ && !gives_up_) {
    shape.is_priced.assign(mix.size(), true);
    prices_.assign(mix.size(), 0);
    graph_ = OrderGraph::of(shape, may);
  }
  if (!graph_ || gives_up_) return false;
  for (const OrderGraph::Place& place : graph_->places()) stages_.push_back(placed_.at(place));
  return true;
}

// Whether the stages of some order have room for all layers. With a price u_k of a host of kind k,
// of which there are N_k, no order has more room than
//   the most of any sum over an order's stages of room, less its hosts' prices + sum of u_k N_k
// even where it has more hosts of a kind than there are. Prices follow what is missing.
bool AllOrders::have_room(const std::vector<double>& most) {
  const double needed = layers_->count * (1 - kOrderRounding);
  std::vector<double> cost(most.size());
  for (std::size_t i = 0; i < most.size(); ++i)
    cost[i] = most[i] < stages_[i].fewest ? HUGE_VAL : -most[i];
  if (prices_.empty()) return -graph_->least(cost) >= needed;
  const NodeMix& mix = ground_.mixes[layout_.mix];
  for (int i = 0; i < kPriceSteps; ++i) {
    const OrderGraph::Priced own = graph_->least_priced(cost, prices_);
    double room = -own.least;
    for (std::size_t k = 0; k < mix.size(); ++k) room += prices_[k] * mix[k];
    if (!std::isfinite(own.least) || room < needed) return false;
    double missing = 0;
    const auto change = [&](std::size_t k) {
      const int more = own.hosts[k] - mix[k];
      return more < 0 && prices_[k] <= 0 ? 0 : more;
    };
    for (std::size_t k = 0; k < mix.size(); ++k) missing += change(k) * change(k);
    if (missing <= 0) return true;
    const double step = kPriceStep * (room - needed + kOrderRounding * needed) / missing;
    for (std::size_t k = 0; k < mix.size(); ++k)
      prices_[k] = std::max(0.0, prices_[k] + step * change(k));
  }
  return true;
}

bool AllOrders::may_be(const OrderGraph::Place& place, double step) {
  gives_up_ = gives_up_ || placed_.count() > work_.most_signatures || ground_.stop();
  if (gives_up_ || !placed_.on_parts(place.parts).runs) return false;
  const StageAt stage = placed_.at(place);
  return rooms_.most_layers(place, stage, {.step = step}, {}) >= stage.fewest;
}

bool AllOrders::is_possible(double step) {
  const auto& places = graph_->places();
  std::vector<double> most(places.size());
  std::vector<Around> others(places.size());
  Limits limits{.step = step};
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < places.size(); ++i)
      most[i] = rooms_.most_layers(places[i], stages_[i], limits, others[i]);
    if (!have_room(most)) return false;
    // Of other schedules no more is counted than what the busiest stage has to do.
    if (splits_backward(layout_.schedule)) return true;
    limits.finish = least_finish(most, 0);
    const RoundTrip trip = least_trip(most);
    limits.trip = trip.all;
    limits.forward = trip.forward;
    if (whole_trips(trip) * (1 - kOrderRounding) + limits.finish >= step) return false;
    others = around(most);
  }
  if (!work_.places_layers || !prices_.empty() || layers_->units.size() > 1) return true;
  return finds_room(limits, {others, most}, 0, layers_->count);
}

// The more layers the first stage has, the longer its finish is, which follows all else: parts of
// the range that leave no room are left out.
bool AllOrders::finds_room(Limits limits, const Known& known, int first_least, int first_most) {
  limits.finish = std::max(limits.finish, least_finish(known.most, first_least));
  if (!std::isfinite(limits.finish) || !places_all(limits, known, first_least, first_most))
    return false;
  if (first_least == first_most) return true;
  const int middle = (first_least + first_most) / 2;
  return finds_room(limits, known, first_least, middle) ||
         finds_room(limits, known, middle + 1, first_most);
}

// Layers placed stage by stage, with the least that the stages so far may take before the next.
bool AllOrders::places_all(const Limits& limits, const Known& known, int first_least,
                           int first_most) {
  const int layers = layers_->count;
  const double v = layout_.chunks;
  const auto& places = graph_->places();
  double forward = 0.5;  // of both passes, at least
  double backward = 0.5;
  for (const StageAt& at : stages_) {
    forward = std::min(forward, at.stage.layer > 0 ? at.on->forward / at.stage.layer : 0);
    backward = std::min(backward, at.stage.layer > 0 ? at.on->backward / at.stage.layer : 0);
  }
  std::vector<StageRooms::Rooms> rooms;
  for (std::size_t i = 0; i < places.size(); ++i)
    rooms.push_back(rooms_.of(places[i], stages_[i], limits, known.others[i]));
  const auto advance = [&](int i, const OrderGraph::Placed& before, OrderGraph::Placed& after) {
    const StageAt& at = stages_[i];
    const Around& others = known.others[i];
    const bool is_first = places[i].stage == 0;
    const int fewest = std::max(static_cast<int>(std::ceil(at.fewest)), is_first ? first_least : 0);
    const int most =
        static_cast<int>(is_first ? std::min<double>(known.most[i], first_most) : known.most[i]);
    if (most < fewest) return;
    Around around = others;
    double asked = -1;
    int room = 0;
    for (int done = 0; done + fewest <= layers; ++done) {
      if (!std::isfinite(before[done])) continue;
      if (before[done] != asked) {
        asked = before[done];
        around.before = std::max(others.before, asked);
        around.forward_before = std::max(others.forward_before, forward * asked);
        around.backward_before = std::max(others.backward_before, backward * asked);
        room = static_cast<int>(std::min<double>(most, rooms_.most_within(rooms[i], around)));
        if (layout_.recomputes_some && layers_->equal && room > 0)
          room = rooms_.fewer_for_recompute(room, places[i], at, limits, around);
      }
      for (int n = fewest; n <= std::min(room, layers - done); ++n) {
        const double first =
            std::max(0.0, std::floor((n + placed_.others()) / v) - placed_.others());
        const double ends = layout_.chunks > 1 ? 0 : at.stage.ends;
        const double sum = asked + first * at.stage.layer + ends + 2 * at.sent;
        after[done + n] = std::min(after[done + n], sum);
      }
    }
  };
  return std::isfinite(graph_->least_placed(layers, advance)[layers]);
}

double AllOrders::least_finish(const std::vector<double>& most, double fewest) const {
  double least = HUGE_VAL;
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    const double from = std::max(fewest, stages_[i].fewest);
    if (graph_->places()[i].stage > 0 || most[i] < from) continue;
    const InterleavedStage& stage = stages_[i].stage;
    for (const double n : {from, most[i]})
      least = std::min(least, std::max(0.0, n * stage.finish + stage.finish_of_ends));
  }
  return least;
}

double AllOrders::least_sum(const std::vector<double>& most, const std::vector<double>& of_layer,
                            const std::vector<double>& beside) const {
  const std::set<double> times(of_layer.begin(), of_layer.end());
  const std::vector<double> all(times.begin(), times.end());
  std::vector<double> cost(stages_.size());
  double sum = 0;
  const std::size_t prices = std::min(kMostPrices, all.size());
  for (std::size_t j = 0; j < prices; ++j) {
    const double price = all[prices > 1 ? j * (all.size() - 1) / (prices - 1) : 0];
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      const double n = of_layer[i] < price ? most[i] : stages_[i].fewest;
      cost[i] = most[i] < stages_[i].fewest ? HUGE_VAL : beside[i] + n * (of_layer[i] - price);
    }
    sum = std::max(sum, layers_->count * price + graph_->least(cost));
  }
  return sum;
}

AllOrders::RoundTrip AllOrders::least_trip(const std::vector<double>& most) const {
  const std::size_t count = stages_.size();
  std::vector<double> layer(count);
  std::vector<double> forward(count);
  std::vector<double> both(count);  // ends and hand-overs
  std::vector<double> sends(count);
  std::vector<double> chunk_sends(count);
  for (std::size_t i = 0; i < count; ++i) {
    const StageAt& at = stages_[i];
    layer[i] = at.stage.layer;
    forward[i] = at.on->forward;
    sends[i] = most[i] < at.fewest ? HUGE_VAL : at.sent;
    chunk_sends[i] = layout_.chunks * at.sent;
    both[i] = at.stage.ends + 2 * chunk_sends[i];
  }
  RoundTrip trip;
  trip.all = least_sum(most, layer, both);
  trip.forward = least_sum(most, forward, chunk_sends);
  if (layout_.schedule != Schedule::interleaved) return trip;
  trip.layers = least_sum(most, layer, std::vector<double>(count));
  trip.sends = graph_->least(sends);
  return trip;
}

// How long micro-batches that follow each other on the first stage take, all of their way: as many
// are in flight there as it keeps. In chunks (bound_by_memory() in interleaved_bound.cpp), what is
// after a chunk of the first stage is a part of the round trip, less a layer of every stage.
double AllOrders::whole_trips(const RoundTrip& trip) const {
  const double in_flight = std::min(micro_batches_, static_cast<double>(layout_.stages));
  if (layout_.schedule == Schedule::one_f_one_b)
    return (std::floor((micro_batches_ - 1) / in_flight) + 1) * trip.all;
  if (layout_.schedule != Schedule::interleaved) return trip.all;
  double longest = 0;  // layer
  for (const StageAt& at : stages_) longest = std::max(longest, at.stage.layer);
  const int v = layout_.chunks;
  double sum = 0;
  for (int rounds = 0; rounds < v; ++rounds) {
    const double later =
        trip.layers * rounds / v - layout_.stages * rooms_.missing_layers(1) * longest;
    sum += std::max(0.0, later) + 2 * (rounds + 1) * trip.sends;
  }
  const int chunks =
      chunks_in_flight(layout_.schedule, layout_.stages, 0, layout_.settings.micro_batches, v);
  return std::max(trip.all, micro_batches_ * sum / chunks);
}

// Each stage has its fewest layers, and the stages before one, or after it, those for which the
// others have no room. In chunks, what is before a stage are the first chunks of the stages before
// it, with floor((n + o) / v) - o of their n layers where o other units may be there.
double AllOrders::in_chunks_of(double layers, int stages) const {
  return std::max(0.0, layers - rooms_.missing_layers(stages)) / layout_.chunks;
}

std::vector<AllOrders::Around> AllOrders::around(const std::vector<double>& most) const {
  const std::size_t count = stages_.size();
  std::vector<double> room(count);
  std::vector<double> fewest(count);
  std::vector<double> passes(count);
  std::vector<double> forward(count);
  std::vector<double> sent(count);
  double layer = HUGE_VAL;
  double layer_forward = HUGE_VAL;
  double layer_backward = HUGE_VAL;
  for (std::size_t i = 0; i < count; ++i) {
    const StageAt& at = stages_[i];
    const bool may_be = most[i] >= at.fewest;
    room[i] = may_be ? -most[i] : HUGE_VAL;
    fewest[i] = at.fewest;
    const double known = layout_.chunks > 1 ? 0 : at.fewest;
    const double ends = layout_.chunks > 1 ? 0 : at.stage.ends;
    passes[i] = may_be ? ends + 2 * at.sent + known * at.stage.layer : HUGE_VAL;
    forward[i] = may_be ? at.sent + known * at.on->forward : HUGE_VAL;
    sent[i] = may_be ? at.sent : HUGE_VAL;
    if (!may_be) continue;
    layer = std::min(layer, at.stage.layer);
    layer_forward = std::min(layer_forward, at.on->forward);
    layer_backward = std::min(layer_backward, at.on->backward);
  }
  const std::vector<double> room_before = graph_->least_before(room);
  const std::vector<double> room_after = graph_->least_after(room);
  const std::vector<double> known_before = graph_->least_before(fewest);
  const std::vector<double> known_after = graph_->least_after(fewest);
  const std::vector<double> before = graph_->least_before(passes);
  const std::vector<double> forward_before = graph_->least_before(forward);
  const std::vector<double> after = graph_->least_after(passes);
  const std::vector<double> sent_before = graph_->least_before(sent);
  const std::vector<double> sent_after = graph_->least_after(sent);
  std::vector<Around> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double others = layers_->count - std::max(0.0, most[i]);
    double more_before = std::max(0.0, others + room_after[i] - known_before[i]);
    const int stage = graph_->places()[i].stage;
    if (layout_.chunks > 1) more_before = in_chunks_of(others + room_after[i], stage);
    const double more_after = std::max(0.0, others + room_before[i] - known_after[i]);
    out[i].before = before[i] + more_before * layer;
    out[i].forward_before = forward_before[i] + more_before * layer_forward;
    // The hand-over to the stage after is on the way there.
    out[i].after = after[i] + more_after * layer + 2 * stages_[i].sent;
    if (layout_.schedule != Schedule::interleaved) continue;
    // The head of the model may have a place in the last chunk.
    const double last = in_chunks_of(others + room_before[i], layout_.stages - stage);
    out[i].backward_before = sent_before[i] + more_before * layer_backward;
    out[i].backward_after = sent_after[i] + stages_[i].sent + last * layer_backward;
  }
  return out;
}

}  // namespace plait
