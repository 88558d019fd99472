#include "search/uniform/layout_evaluation.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "cost/pipeline/schedule.h"
#include "cost/stage_cost.h"
#include "model/layers.h"
#include "search/space/schedules.h"
#include "search/uniform/chunk_layers.h"
#include "search/uniform/interleaved_bound.h"

namespace plait {
namespace {

constexpr double kPlainLimit = 2;  // plain pipelines under other schedules, relative to the limit

class Evaluation {
 public:
  Evaluation(const UniformGround& ground, const UniformLayout& layout)
      : ground_(ground),
        layout_(layout),
        space_(*ground.spaces.at(layout.recompute)),
        problem_(ground.context.problem),
        units_(problem_.model.unit_count()),
        tables_([&ground](const ReplicaShape& shape) -> const UnitTable& {
          return ground.engine.table(shape);
        }) {}

  Seconds run(Seconds limit, Shortlist& found) {
    const NodeMix& mix = ground_.mixes[layout_.mix];
    const bool is_plain = layout_.schedule == ground_.layouts.base_schedule();
    Seconds least(HUGE_VAL);
    std::vector<std::vector<int>> orders = host_orders(ground_.kinds, mix);
    if (layout_.stages == 1) orders.resize(1);
    for (const std::vector<int>& order : orders) {
      if (ground_.stop() && !found.empty()) return layout_.bound;
      place(devices_in(ground_.kinds, order));
      if (!tensor_groups_have_one_type()) continue;
      read_signatures(order);
      const Seconds wanted = std::min(limit, found.best());
      const Seconds bound = order_bound();
      if (bound >= wanted) {
        least = std::min(least, bound);
        continue;
      }
      const CutResult cuts = cut(is_plain ? wanted : kPlainLimit * wanted);
      if (is_plain) {
        least = std::min(least, std::max(bound, cuts.lower_bound));
        for (const Cut& own : cuts.cuts) found.offer(plan_of(own.begins));
      } else {
        least = std::min(least, bound);
        offer_others(cuts, found);
      }
    }
    return least;
  }

 private:
  // Stages of consecutive devices.
  void place(const std::vector<DeviceId>& devices) {
    plan_ = {};
    plan_.schedule = ground_.layouts.base_schedule();
    plan_.micro_batches = layout_.settings.micro_batches;
    plan_.context = layout_.settings.context;
    plan_.expert = layout_.settings.expert;
    plan_.zero = layout_.settings.zero;
    plan_.offload = layout_.settings.offload;
    plan_.sequence_parallel =
        layout_.settings.sequence_parallel &&
        (layout_.tensor > 1 || ground_.context.options.pins.sequence_parallel.has_value());
    const int size = layout_.stage_devices();
    for (int s = 0; s < layout_.stages; ++s) {
      Stage stage;
      stage.devices.assign(devices.begin() + static_cast<long>(s) * size,
                           devices.begin() + static_cast<long>(s + 1) * size);
      stage.spans.push_back({.units = {0, units_},
                             .tensor = layout_.tensor,
                             .data = layout_.data,
                             .recompute = layout_.recompute});
      plan_.stages.push_back(std::move(stage));
    }
  }

  // Groups over several nodes are apart where hosts of two kinds take turns.
  bool tensor_groups_have_one_type() const {
    const Cluster& cluster = problem_.cluster;
    for (const Stage& stage : plan_.stages)
      for (std::size_t d = 0; d < stage.devices.size(); ++d) {
        const DeviceId first = stage.devices[d - d % static_cast<std::size_t>(layout_.tensor)];
        if (cluster.device(first).type != cluster.device(stage.devices[d]).type) return false;
      }
    return true;
  }

  // How many devices of which kind of node follow each other on every stage: stages that read the
  // same cost the same, and so do hand-overs between them.
  void read_signatures(const std::vector<int>& order) {
    sides_.clear();
    std::vector<int> key;
    int left = layout_.stage_devices();
    for (const int kind : order)
      for (int own = ground_.kinds[kind].devices(); own > 0;) {
        const int taken = std::min(own, left);
        key.insert(key.end(), {kind, taken});
        own -= taken;
        left -= taken;
        if (left > 0) continue;
        const auto at = signatures_.try_emplace(key, static_cast<int>(signatures_.size())).first;
        sides_.push_back({at->second, own > 0});
        key.clear();
        left = layout_.stage_devices();
      }
  }

  RunCosts* runs_of(int s) {
    auto& runs = runs_[sides_[s].signature];
    if (!runs)
      runs =
          std::make_unique<RunCosts>(space_, rhythm(),
                                     SpanFrame(problem_, layout_.settings, plan_.stages[s].devices,
                                               layout_.tensor, layout_.data, {}, tables_));
    return runs.get();
  }

  // From a stage to the next before a unit.
  const HandOver& over(int s, int unit) {
    const std::array key{sides_[s].signature, sides_[s + 1].signature,
                         sides_[s].ends_inside_node ? 1 : 0, problem_.model.units[unit - 1]};
    const auto [at, is_new] = overs_.try_emplace(key);
    if (is_new) at->second = hand_over(problem_, plan_, plan_.stages[s], plan_.stages[s + 1], unit);
    return at->second;
  }

  ScheduleSetting rhythm() const {
    return {ground_.layouts.base_schedule(), layout_.settings.micro_batches};
  }

  CutResult cut(Seconds limit) {
    std::vector<CutSearch::Slot> slots;
    for (int s = 0; s < layout_.stages; ++s) {
      CutSearch::Slot slot{runs_of(s), {}};
      if (s + 1 < layout_.stages) slot.send = [this, s](int unit) { return over(s, unit).time; };
      slots.push_back(std::move(slot));
    }
    return CutSearch(space_, rhythm(), limits()).run(slots, limit, tied(), ground_.stop);
  }

  // Of any cut with the hosts in this order.
  Seconds order_bound() {
    layers_.clear();
    const Seconds after = tied();
    const Seconds least = layout_.bound + after;
    if (!has_equal_layers()) return least;
    const Seconds busy = busiest_link();
    if (layout_.schedule != Schedule::interleaved) return std::max(least, busy);
    InterleavedPipeline pipeline{.layers = units_ - 2,
                                 .chunks = layout_.chunks,
                                 .micro_batches = layout_.settings.micro_batches,
                                 .forward_share = 0.5,
                                 .tied = after.value};
    for (int s = 0; s < layout_.stages; ++s) pipeline.stages.push_back(bound_stage(s, pipeline));
    pipeline.wrap =
        hand_over(problem_, plan_, plan_.stages.back(), plan_.stages.front(), 2).time.value;
    const double known = std::max(busy - after, layout_.bound).value;
    InterleavedBound found = interleaved_bound(pipeline, known);
    layers_ = std::move(found.layers);
    return Seconds(found.step) + after;
  }

  // Every micro-batch passes every cut there and back. A link carries one hand-over at a time, and
  // the network of a stage's nodes those to and from both of its neighbours.
  Seconds busiest_link() {
    Seconds most;
    Seconds before;  // from the stage before, over the network
    for (int s = 0; s < layout_.stages; ++s) {
      const bool last = s + 1 == layout_.stages;
      const Seconds busy = last ? Seconds(0) : std::min(over(s, 1).busy, over(s, 2).busy);
      const Seconds sent = !last && over(s, 1).crosses_nodes ? busy : Seconds(0);
      most = std::max({most, busy, before + sent});
      before = sent;
    }
    return layout_.settings.micro_batches * layout_.chunks * most;
  }

  // An embedding, layers of one kind and a head: the models of most people.
  bool has_equal_layers() const {
    const Model& model = problem_.model;
    if (units_ < 4 || is_layer(model.unit(0)) || is_layer(model.unit(units_ - 1))) return false;
    for (int u = 1; u + 1 < units_; ++u)
      if (model.units[u] != model.units[1]) return false;
    return begins_layer(model.unit(1));
  }

  // What follows the pipeline on a stage, and how long its nodes' network is busy, as sums over
  // units without latencies. Of gradients and of weights either a part e is added or what nothing
  // hides (SpanFrame::gradient_sync); both hold, and what is more for a mean stage is taken.
  void bound_finish(int s, const StageTime& layer, const StageTime& ends, InterleavedStage& out) {
    const SpanFrame& frame = runs_of(s)->frame();
    const std::optional<SpanFrame::FinishRates> rates = frame.finish_rates();
    if (!rates) return;
    const double hidden = 1 - rates->price;
    const double layers = std::max(1.0, 1.0 * (units_ - 2) / layout_.stages);
    const bool alone = frame.replica_count() == 1;
    struct Part {
      double layer = 0;
      double ends = 0;
    };
    const auto of = [&](const SpanFrame::FinishRates::Way& way) {
      const auto time = [&](int u) {
        const UnitCost cost = frame.time_on(0, {u, u + 1}, Recompute::none);
        return (cost.trained * way.of_parameter + cost.trained_experts * way.of_expert_parameter)
            .value;
      };
      return Part{time(1),
                  (s == 0 ? time(0) : 0) + (s + 1 == layout_.stages ? time(units_ - 1) : 0)};
    };
    const auto add = [&](const Part& comm, const Part& beside) {
      const Part open{comm.layer - hidden * beside.layer, comm.ends - hidden * beside.ends};
      const bool is_open =
          layers * open.layer + open.ends > rates->price * (layers * comm.layer + comm.ends);
      out.finish += is_open ? open.layer : rates->price * comm.layer;
      out.finish_of_ends += is_open ? open.ends : rates->price * comm.ends;
    };
    const Part gradients = of(rates->gradients);
    const Part weights = of(rates->weights);
    const Part both{gradients.layer + weights.layer, gradients.ends + weights.ends};
    out.finish = frame.optimizer({1, 2}).value;
    if (alone) {
      add(gradients, {layer.backward.value, ends.backward.value});
      add(weights, {layer.forward.value, ends.forward.value});
    } else {
      add(both, {layer.total().value, ends.total().value});
    }
    const Seconds sync = frame.whole_gradient_sync({1, 2});
    const double share = sync > Seconds(0) ? frame.sync_network({1, 2}) / sync : 0;
    out.wire = share * both.layer;
    out.wire_of_ends = share * both.ends;
  }

  InterleavedStage bound_stage(int s, InterleavedPipeline& pipeline) {
    const RunCosts& runs = *runs_of(s);
    const StageTime layer = runs.alone({1, 2});
    InterleavedStage out;
    out.layer = layer.total().value;
    out.finish = layer.finish.value;
    pipeline.forward_share =
        std::min(pipeline.forward_share, layer.forward.value / layer.total().value);
    const bool last = s + 1 == layout_.stages;
    StageTime ends;
    const auto add_end = [&](int unit) {
      const StageTime end = runs.alone({unit, unit + 1});
      ends.forward += end.forward;
      ends.backward += end.backward;
    };
    if (s == 0) add_end(0);
    if (last) add_end(units_ - 1);
    out.ends = ends.total().value;
    bound_finish(s, layer, ends, out);
    out.wire_of_ends += wire_of_sends(s);
    if (!last) out.send = std::min(over(s, 1).time, over(s, 2).time).value;
    const double live =
        static_cast<double>(chunks_in_flight(Schedule::interleaved, layout_.stages, s,
                                             layout_.settings.micro_batches, layout_.chunks)) /
        layout_.chunks;
    int good = 0;
    int bad = units_ - 1;
    while (bad - good > 1) {
      const int middle = (good + bad) / 2;
      const UnitRange units = last     ? UnitRange{units_ - 1 - middle, units_}
                              : s == 0 ? UnitRange{0, middle + 1}
                                       : UnitRange{1, middle + 1};
      (fits(runs.frame(), units, live) ? good : bad) = middle;
    }
    out.most_layers = good;
    return out;
  }

  // Of hand-overs to the next stage and from the one before, there and back, without the way round.
  double wire_of_sends(int s) {
    double busy = 0;
    const auto add = [&](int from) {
      if (over(from, 2).crosses_nodes)
        busy += std::min(over(from, 1).busy, over(from, 2).busy).value;
    };
    if (s > 0) add(s - 1);
    if (s + 1 < layout_.stages) add(s);
    return layout_.settings.micro_batches * layout_.chunks * busy;
  }

  bool fits(const SpanFrame& frame, const UnitRange& units, double live) const {
    const double tied = space_.tied_copies().of(units);
    for (int r = 0; r < frame.replica_count(); ++r)
      if (frame.memory(r, units, layout_.recompute, tied).spare(live) < Bytes(0)) return false;
    return true;
  }

  CutLimits limits() const {
    const Target& target = space_.target();
    const bool even = target.cuts == CutRule::even_layers || space_.pins().even_layers;
    const bool equal = target.cuts == CutRule::equal_layers;
    if (layout_.stages == 1 || (!even && !equal)) return {};
    const int layers = whole_layer_count(problem_.model);
    const int least = layers / layout_.stages;
    const int most = (layers + layout_.stages - 1) / layout_.stages;
    if (equal && least != most) return {units_ + 1, units_ + 2};  // there is none
    return {least, std::max(most, 1)};
  }

  // Of embeddings that the first and the last stage share.
  Seconds tied() const {
    Seconds sum;
    if (layout_.stages == 1) return sum;
    for (const Tie& tie : problem_.model.ties)
      if (tie.first == 0 && tie.second == units_ - 1)
        sum += tied_sync_time(problem_, tie, plan_.stages.front().devices,
                              plan_.stages.back().devices, layout_.tensor);
    return sum;
  }

  Plan plan_of(const std::vector<int>& begins) const {
    return recut(plan_, ground_.layouts.base_schedule(), begins, units_);
  }

  // The pipeline under the layout's own schedule, in chunks where it has any: as the best plain
  // cuts have it, and evenly.
  void offer_others(const CutResult& cuts, Shortlist& found) {
    const bool may_differ = space_.target().cuts == CutRule::between_layers ||
                            space_.target().cuts == CutRule::between_ops;
    if (may_differ && !space_.pins().even_layers)
      for (const Cut& own : cuts.cuts)
        for (const Plan& plan : under_schedule(plan_of(own.begins))) offer_if_low(plan, found);
    if (may_differ && !space_.pins().even_layers && !layers_.empty()) {
      std::vector<int> begins{0};  // the embedding is with the first stage
      for (std::size_t s = 0; s + 1 < layers_.size(); ++s)
        begins.push_back(std::max(1, begins.back()) + layers_[s]);
      for (const Plan& plan : under_schedule(plan_of(begins))) offer_if_low(plan, found);
    }
    if (layout_.schedule != Schedule::interleaved) return;
    const RunCosts& runs = *runs_of(layout_.stages - 1);
    const double layer = runs.alone({units_ / 2, units_ / 2 + 1}).total().value;
    const double last = runs.alone({units_ - 1, units_}).total().value;
    const bool equal = space_.target().cuts == CutRule::equal_layers;
    const std::vector<int> begins =
        even_begins(problem_.model, layout_.stages, layout_.chunks, layer > 0 ? last / layer : 0);
    if (begins.empty()) return;
    const Plan plan = recut(plan_, Schedule::interleaved, begins, units_);
    if (equal && !is_equal(plan)) return;
    offer_if_low(plan, found);
  }

  bool is_equal(const Plan& plan) const {
    const std::vector<int> layers = layers_by_chunk(problem_.model, plan);
    return std::ranges::all_of(layers, [&](int n) { return n == layers.front(); });
  }

  std::vector<Plan> under_schedule(const Plan& plain) const {
    if (layout_.chunks > 1) return in_layers(in_chunks(plain, layout_.schedule, layout_.chunks));
    Plan plan = plain;
    plan.schedule = layout_.schedule;
    return {plan};
  }

  // Chunks of a model by ops may begin inside layers.
  std::vector<Plan> in_layers(std::vector<Plan> plans) const {
    std::erase_if(plans, [&](const Plan& plan) {
      return why_not(space_.target(), problem_, plan).has_value();
    });
    return plans;
  }

  void offer_if_low(const Plan& plan, Shortlist& found) const {
    const Estimate outline = ground_.engine.outline(plan);
    if (outline.fits && outline.step >= found.best()) return;
    found.offer(plan);
  }

  const UniformGround& ground_;
  const UniformLayout& layout_;
  const Space& space_;
  const Problem& problem_;
  int units_;
  TableSource tables_;
  Plan plan_;  // with all units on every stage
  struct Side {
    int signature = 0;
    bool ends_inside_node = false;
  };
  std::vector<Side> sides_;  // by stage
  std::map<std::vector<int>, int> signatures_;
  std::map<int, std::unique_ptr<RunCosts>> runs_;  // by signature
  std::map<std::array<int, 4>, HandOver> overs_;
  std::vector<int> layers_;  // by stage, with which the bound of an interleaved order is reached
};

}  // namespace

Seconds evaluate(const UniformGround& ground, const UniformLayout& layout, Seconds limit,
                 Shortlist& found) {
  return Evaluation(ground, layout).run(limit, found);
}

}  // namespace plait
