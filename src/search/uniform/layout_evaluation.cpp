#include "search/uniform/layout_evaluation.h"

#include <algorithm>
#include <cmath>

#include "cost/pipeline/schedule.h"
#include "model/layers.h"
#include "search/space/schedules.h"
#include "search/uniform/chunk_layers.h"
#include "search/uniform/order_bounds.h"

namespace plait {
namespace {

constexpr int kMostRanges = 12;    // of numbers of layers that are halved
constexpr double kPlainLimit = 2;  // plain pipelines under other schedules, relative to the limit

class Evaluation {
 public:
  Evaluation(const UniformGround& ground, const UniformLayout& layout)
      : ground_(ground),
        layout_(layout),
        space_(*ground.spaces.at(layout.recompute)),
        problem_(ground.context.problem),
        units_(problem_.model.unit_count()),
        stages_(ground, layout, space_),
        bounds_(layout, space_, stages_) {}

  Evaluated run(Seconds limit, Shortlist& found) {
    const NodeMix& mix = ground_.mixes[layout_.mix];
    const bool is_plain = layout_.schedule == ground_.layouts.base_schedule();
    Seconds least(HUGE_VAL);
    std::vector<std::vector<int>> orders = host_orders(ground_.kinds, mix);
    if (layout_.stages == 1) orders.resize(1);
    for (const std::vector<int>& order : orders) {
      if (ground_.stop() && !found.empty()) return {layout_.bound, lacks_memory_};
      if (!stages_.place(order)) continue;
      const Seconds wanted = std::min(limit, found.best());
      const Seconds bound = order_bound(wanted);
      if (bound >= wanted) {
        least = std::min(least, bound);
        continue;
      }
      if (layout_.recomputes_some) {
        const Seconds own =
            is_plain ? recompute_some(wanted, found) : recompute_chunks(wanted, found);
        least = std::min(least, std::max(bound, own));
        continue;
      }
      const CutResult cuts = cut(is_plain ? wanted : kPlainLimit * wanted, &LayoutStages::runs);
      lacks_memory_ = lacks_memory_ || cuts.lacks_memory;
      if (is_plain) {
        least = std::min(least, std::max(bound, cuts.lower_bound));
        for (const Cut& own : cuts.cuts) found.offer(plan_of(own.begins));
      } else {
        least = std::min(least, bound);
        for (const Plan& plan : other_plans(cuts, layers_)) offer_if_low(plan, found);
      }
    }
    return {least, lacks_memory_};
  }

 private:
  using Runs = RunCosts* (LayoutStages::*)(int stage);
  CutResult cut(Seconds limit, Runs runs) {
    std::vector<CutSearch::Slot> slots;
    for (int s = 0; s < layout_.stages; ++s) {
      CutSearch::Slot slot{(stages_.*runs)(s), {}};
      if (s + 1 < layout_.stages)
        slot.send = [this, s](int unit) { return stages_.over(s, unit).time; };
      slots.push_back(std::move(slot));
    }
    return CutSearch(space_, stages_.rhythm(), limits())
        .run(slots, limit, bounds_.tied(), ground_.stop);
  }

  // Numbers of first layers that are recomputed, with what no plan of them undercuts.
  struct Range {
    RunCosts::FirstLayers layers;
    Seconds bound;
  };

  // The best plans that recompute some layers of every stage. Where layers are alike, each number
  // has a bound, and those that may help are looked at lowest bound first. Else ranges of numbers,
  // with the time of the least and the memory of the most, are halved as long as they promise
  // anything.
  Seconds recompute_some(Seconds limit, Shortlist& found) {
    std::vector<Range> open;  // the last is looked at first
    if (bounds_.has_equal_layers())
      for (const OrderBounds::Number& own : bounds_.numbers(limit, most_layers_of_a_stage()))
        open.insert(open.begin(), {{own.first, own.first}, own.bound});
    else
      open.push_back({{1, most_layers_of_a_stage()}, layout_.bound});
    Seconds least = limit;
    for (int searches = 0; !open.empty(); ++searches) {
      const Range range = open.back();
      open.pop_back();
      const Seconds wanted = std::min(limit, found.best());
      if (range.bound >= wanted) {
        least = std::min(least, range.bound);
        continue;
      }
      stages_.recompute_first(range.layers);
      const CutResult cuts = cut(wanted, &LayoutStages::recomputing_runs);
      const auto [fewest, most] = range.layers;
      if (cuts.cuts.empty() || fewest == most || searches >= kMostRanges) {
        least = std::min(least, std::max(range.bound, cuts.lower_bound));
        if (!cuts.cuts.empty()) offer_recomputing(cuts.cuts.front(), range.layers, found);
        continue;
      }
      const int middle = (fewest + most) / 2;
      open.push_back({{middle + 1, most}, range.bound});
      open.push_back({{fewest, middle}, range.bound});
    }
    return least;
  }

  // The same of chunks.
  Seconds recompute_chunks(Seconds limit, Shortlist& found) {
    Seconds least = limit;
    for (const OrderBounds::Number& own : numbers_in_chunks(limit)) {
      least = std::min(least, own.bound);
      if (own.bound >= std::min(limit, found.best())) continue;
      stages_.recompute_first({layout_.chunks * own.first, layout_.chunks * own.first});
      const CutResult cuts = cut(kPlainLimit * limit, &LayoutStages::recomputing_runs);
      for (Plan& plan : other_plans(cuts, own.layers)) {
        recompute_first(problem_.model, own.first, plan);
        const Estimate outline = ground_.engine.outline(plan);
        if (outline.fits && outline.step < found.best()) found.offer(plan);
      }
    }
    return least;
  }

  std::vector<OrderBounds::Number> numbers_in_chunks(Seconds limit) {
    if (bounds_.has_equal_layers() && layout_.schedule == Schedule::interleaved)
      return bounds_.numbers_in_chunks(limit);
    std::vector<OrderBounds::Number> numbers;
    const int chunks = layout_.stages * layout_.chunks;
    const int most = (whole_layer_count(problem_.model) + chunks - 1) / chunks;
    for (int first = 1; first <= most; ++first) numbers.push_back({first, layout_.bound, {}});
    return numbers;
  }

  // With as few layers of the range recomputed as fit.
  void offer_recomputing(const Cut& own, const RunCosts::FirstLayers& range, Shortlist& found) {
    int bad = range.least - 1;
    int good = range.most;
    while (good - bad > 1) {
      const int middle = (good + bad) / 2;
      (fits_with(own.begins, middle) ? good : bad) = middle;
    }
    Plan plan = plan_of(own.begins);
    recompute_first(problem_.model, good, plan);
    if (ground_.engine.outline(plan).step < found.best()) found.offer(plan);
  }

  bool fits_with(const std::vector<int>& begins, int layers) {
    for (int s = 0; s < layout_.stages; ++s) {
      const UnitRange units{begins[s], s + 1 < layout_.stages ? begins[s + 1] : units_};
      const auto recompute = first_layers(problem_.model, units, layers);
      if (!stages_.runs(s)->fits(units, recompute, layout_.stages - 1 - s)) return false;
    }
    return true;
  }

  int most_layers_of_a_stage() const {
    const CutLimits own = limits();
    return std::max(1, own.most_layers > 0 ? own.most_layers : whole_layer_count(problem_.model));
  }

  // Of any cut with the hosts in this order; no more is asked for than `enough`.
  Seconds order_bound(Seconds enough) {
    layers_.clear();
    // A V has both ends of the model on one stage.
    const Seconds after = layout_.schedule == Schedule::zb_v ? Seconds(0) : bounds_.tied();
    const Seconds least = layout_.bound + after;
    if (!bounds_.layers()) return least;
    const Seconds busy = bounds_.busiest_link();
    if (layout_.schedule != Schedule::interleaved || layout_.recomputes_some ||
        std::max(least, busy) >= enough)
      return std::max(least, busy);
    InterleavedPipeline pipeline = bounds_.interleaved_pipeline();
    for (int s = 0; s < layout_.stages; ++s) {
      InterleavedStage& stage = pipeline.stages[s];
      stage.most_layers = bounds_.most_layers(s);
      lacks_memory_ =
          lacks_memory_ ||
          layout_.settings.micro_batches * stage.most_layers * Seconds(stage.layer) < enough;
    }
    const double known = std::max(busy - after, layout_.bound).value;
    InterleavedBound found = interleaved_bound(pipeline, known, (enough - after).value);
    if (bounds_.layers()->equal) layers_ = std::move(found.layers);
    return Seconds(found.step) + after;
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

  Plan plan_of(const std::vector<int>& begins) const {
    Plan plan = recut(stages_.plan(), ground_.layouts.base_schedule(), begins, units_);
    if (const auto pinned = space_.pins().recompute_layers)
      recompute_first(problem_.model, *pinned, plan);
    return plan;
  }

  // Whether stages may have different numbers of layers.
  bool may_differ() const {
    const CutRule rule = space_.target().cuts;
    return (rule == CutRule::between_layers || rule == CutRule::between_ops) &&
           !space_.pins().even_layers;
  }

  // The pipeline under the layout's own schedule, in chunks where it has any: as the best plain
  // cuts have it, with these numbers of layers, and evenly.
  std::vector<Plan> other_plans(const CutResult& cuts, const std::vector<int>& layers) {
    std::vector<Plan> plans;
    const auto add = [&](const std::vector<int>& begins) {
      for (Plan& plan : under_schedule(plan_of(begins))) plans.push_back(std::move(plan));
    };
    if (may_differ()) {
      for (const Cut& own : cuts.cuts) add(own.begins);
      std::vector<int> begins{0};  // the embedding is with the first stage
      for (std::size_t s = 0; s + 1 < layers.size(); ++s)
        begins.push_back(std::max(1, begins.back()) + layers[s]);
      if (!layers.empty()) add(begins);
    }
    if (layout_.schedule != Schedule::interleaved) return plans;
    const RunCosts& runs = *stages_.runs(layout_.stages - 1);
    const double layer = runs.alone({units_ / 2, units_ / 2 + 1}).total().value;
    const double last = runs.alone({units_ - 1, units_}).total().value;
    const bool equal = space_.target().cuts == CutRule::equal_layers;
    const std::vector<int> begins =
        even_begins(problem_.model, layout_.stages, layout_.chunks, layer > 0 ? last / layer : 0);
    if (begins.empty()) return plans;
    const Plan plan = recut(stages_.plan(), Schedule::interleaved, begins, units_);
    if (!equal || is_equal(plan)) plans.push_back(plan);
    return plans;
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

  void offer_if_low(Plan plan, Shortlist& found) const {
    if (const auto pinned = space_.pins().recompute_layers)
      recompute_first(problem_.model, *pinned, plan);
    const Estimate outline = ground_.engine.outline(plan);
    if (outline.fits && outline.step >= found.best()) return;
    found.offer(plan);
  }

  const UniformGround& ground_;
  const UniformLayout& layout_;
  const Space& space_;
  const Problem& problem_;
  int units_;
  LayoutStages stages_;
  OrderBounds bounds_;
  bool lacks_memory_ = false;  // more of it might allow other plans
  std::vector<int> layers_;    // by stage, with which the bound of an interleaved order is reached
};

}  // namespace

Evaluated evaluate(const UniformGround& ground, const UniformLayout& layout, Seconds limit,
                   Shortlist& found) {
  return Evaluation(ground, layout).run(limit, found);
}

}  // namespace plait
