#include "search/uniform/layout_evaluation.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "cost/pipeline/schedule.h"
#include "cost/stage_cost.h"
#include "model/layers.h"
#include "search/space/schedules.h"
#include "search/uniform/chunk_layers.h"
#include "search/uniform/interleaved_stage.h"

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
        }),
        by_kind_(layers_by_kind(problem_.model)) {}

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
      const Seconds bound = order_bound(wanted);
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

  // Of any cut with the hosts in this order; no more is asked for than `enough`.
  Seconds order_bound(Seconds enough) {
    layers_.clear();
    // A V has both ends of the model on one stage.
    const Seconds after = layout_.schedule == Schedule::zb_v ? Seconds(0) : tied();
    const Seconds least = layout_.bound + after;
    if (!by_kind_) return least;
    const Seconds busy = busiest_link();
    if (layout_.schedule != Schedule::interleaved || std::max(least, busy) >= enough)
      return std::max(least, busy);
    InterleavedPipeline pipeline{.layers = by_kind_->count,
                                 .others = units_ - 2 - by_kind_->count,
                                 .chunks = layout_.chunks,
                                 .micro_batches = layout_.settings.micro_batches,
                                 .forward_share = 0.5,
                                 .tied = after.value};
    for (int s = 0; s < layout_.stages; ++s) pipeline.stages.push_back(bound_stage(s, pipeline));
    const auto wrap = [&](int unit) {
      return hand_over(problem_, plan_, plan_.stages.back(), plan_.stages.front(), unit + 1).time;
    };
    pipeline.wrap = HUGE_VAL;
    for (const int unit : by_kind_->cut_after)
      pipeline.wrap = std::min(pipeline.wrap, wrap(unit).value);
    const double known = std::max(busy - after, layout_.bound).value;
    InterleavedBound found = interleaved_bound(pipeline, known, (enough - after).value);
    if (by_kind_->equal) layers_ = std::move(found.layers);
    return Seconds(found.step) + after;
  }

  // Every micro-batch passes every cut there and back. A link carries one hand-over at a time, and
  // the network of a stage's nodes those to and from both of its neighbours.
  Seconds busiest_link() {
    Seconds most;
    Seconds before;  // from the stage before, over the network
    for (int s = 0; s < layout_.stages; ++s) {
      const bool last = s + 1 == layout_.stages;
      const HandOver least = last ? HandOver{} : least_over(s);
      const Seconds sent = least.crosses_nodes ? least.busy : Seconds(0);
      most = std::max({most, least.busy, before + sent});
      before = sent;
    }
    return layout_.settings.micro_batches * layout_.chunks * most;
  }

  // To the next stage, wherever the cut is.
  HandOver least_over(int s) {
    HandOver least = over(s, by_kind_->cut_after.front() + 1);
    for (const int unit : by_kind_->cut_after) {
      const HandOver& own = over(s, unit + 1);
      least.time = std::min(least.time, own.time);
      least.busy = std::min(least.busy, own.busy);
    }
    return least;
  }

  InterleavedStage bound_stage(int s, InterleavedPipeline& pipeline) {
    const RunCosts& runs = *runs_of(s);
    const StagePlace place{.first = s == 0,
                           .last = s + 1 == layout_.stages,
                           .mean_layers = 1.0 * by_kind_->count / layout_.stages,
                           .live = chunks_live(s)};
    InterleavedStage out = least_stage(runs, *by_kind_, place);
    for (const int u : by_kind_->units) {
      const StageTime layer = runs.alone({u, u + 1});
      pipeline.forward_share =
          std::min(pipeline.forward_share, layer.forward.value / layer.total().value);
    }
    out.most_layers = most_layers(runs.frame(), space_, *by_kind_, layout_.recompute, place);
    out.wire_of_ends += wire_of_sends(s);
    if (!place.last) out.send = least_over(s).time.value;
    return out;
  }

  double chunks_live(int s) const {
    return static_cast<double>(chunks_in_flight(Schedule::interleaved, layout_.stages, s,
                                                layout_.settings.micro_batches, layout_.chunks)) /
           layout_.chunks;
  }

  // Of hand-overs to the next stage and from the one before, without the way round.
  double wire_of_sends(int s) {
    Seconds busy;
    for (const int from : {s - 1, s}) {
      if (from < 0 || from + 1 == layout_.stages) continue;
      const HandOver least = least_over(from);
      if (least.crosses_nodes) busy += least.busy;
    }
    return layout_.settings.micro_batches * layout_.chunks * busy.value;
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
  std::optional<LayersByKind> by_kind_;
  std::vector<int> layers_;  // by stage, with which the bound of an interleaved order is reached
};

}  // namespace

Seconds evaluate(const UniformGround& ground, const UniformLayout& layout, Seconds limit,
                 Shortlist& found) {
  return Evaluation(ground, layout).run(limit, found);
}

}  // namespace plait
