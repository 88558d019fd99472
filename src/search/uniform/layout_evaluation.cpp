#include "search/uniform/layout_evaluation.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "cost/pipeline/schedule.h"
#include "model/layers.h"
#include "search/space/schedules.h"
#include "search/uniform/all_orders.h"
#include "search/uniform/division/chunk_descent.h"
#include "search/uniform/division/chunk_layers.h"
#include "search/uniform/division/v_layers.h"
#include "search/uniform/layout_plans.h"
#include "search/uniform/order_bounds.h"

namespace plait {
namespace {

constexpr double kMostRanges = 12;            // of numbers of layers that are halved
constexpr std::size_t kFewOrders = 6;         // of hosts, of which all are looked at one by one
constexpr std::size_t kOrdersOfAClosing = 1;  // that take as long to look at as all of them at once
constexpr double kNear = 1.1;                 // relative to the limit
constexpr std::size_t kNearOrders = 4;
constexpr double kPlainLimit = 2;  // plain pipelines under other schedules, relative to the limit
constexpr double kMostTasks = 200'000;   // that are simulated for better cuts of a V
constexpr double kMostSimulations = 60;  // the same

class Evaluation {
 public:
  Evaluation(const UniformGround& ground, const UniformLayout& layout)
      : ground_(ground),
        layout_(layout),
        space_(*ground.spaces.at(layout.recompute)),
        problem_(ground.context.problem),
        units_(problem_.model.unit_count()),
        stages_(ground, layout, space_),
        bounds_(layout, space_, stages_, ground.work, ground.stop),
        plans_(layout, ground.layouts.base_schedule(layout.stages), space_, stages_),
        is_plain_(layout.schedule == ground.layouts.base_schedule(layout.stages)) {}

  Evaluated run(Seconds limit, Shortlist& found) {
    limit_ = limit;
    const auto [orders, are_all] = orders_of(ground_, layout_);
    orders_ = static_cast<double>(orders.size());
    std::optional<AllOrders> all;
    if (!are_all || orders.size() > kFewOrders) {
      const Seconds wanted = std::min(limit, found.best());
      const bool is_closed = all.emplace(ground_, layout_, space_, kUsualOrderWork).closes(wanted);
      lacks_memory_ = all->lacks_memory();
      if (is_closed) return {wanted, lacks_memory_, !are_all, Seconds(0), kOrdersOfAClosing, {}};
    }
    Seconds least(HUGE_VAL);
    std::vector<OpenOrder> open = open_orders(orders, std::min(limit, found.best()), least);
    std::size_t tried = 0;
    for (const OpenOrder& own : open) {
      if (ground_.stop() && !found.empty())
        return {layout_.bound, lacks_memory_, false, Seconds(0), tried, nears_};
      const Seconds wanted = std::min(limit, found.best());
      Seconds bound = own.bound;
      if (bound < wanted && tried < ground_.most_orders) {
        keep_near();
        if (placed_ != own.order) {
          stages_.place(*own.order);
          bound = order_bound(wanted);
          placed_ = own.order;
        }
        ++tried;
        if (bound < wanted) bound = std::max(bound, look_at_cuts(wanted, found));
      }
      least = std::min(least, bound);
    }
    keep_near();
    // Of orders that were not looked at no more is known than before.
    const bool is_settled = !are_all && all->is_known() && least >= std::min(limit, found.best());
    const Seconds listed = are_all ? Seconds(0) : least;
    if (!are_all) least = std::min(least, all->bound());
    return {least, lacks_memory_, is_settled, listed, tried, nears_};
  }

 private:
  // The orders with bounds below what is wanted, lowest first, then those with kinds in a row.
  std::vector<OpenOrder> open_orders(const std::vector<std::vector<int>>& orders, Seconds wanted,
                                     Seconds& least) {
    std::vector<OpenOrder> open;
    for (const std::vector<int>& order : orders) {
      placed_ = stages_.place(order) ? &order : nullptr;
      if (placed_ == nullptr) continue;
      const Seconds bound = order_bound(wanted);
      if (bound < wanted)
        open.push_back({&order, bound});
      else
        least = std::min(least, bound);
    }
    sort_orders(open);
    return open;
  }

  // Offers the best cuts with the hosts in this order; what none undercuts.
  Seconds look_at_cuts(Seconds wanted, Shortlist& found) {
    if (layout_.schedule == Schedule::zb_v) return look_at_v(found);
    if (layout_.recomputes_some)
      return is_plain_ ? recompute_some(wanted, found) : recompute_chunks(wanted, found);
    const int first = space_.pins().recompute_layers.value_or(0);
    Seconds bound;
    if (layout_.schedule == Schedule::interleaved && bounds_.layers()) {
      bound = divide(pipeline_, first, wanted, found);
      if (bound >= wanted || bounds_.layers()->equal) return bound;
    }
    if (is_plain_ && may_divide()) {
      bound = divide_plain(first, wanted, found);
      wanted = std::min(wanted, found.best());
      if (bound >= wanted) return bound;
    }
    const CutResult cuts = cut(is_plain_ ? wanted : kPlainLimit * wanted, &LayoutStages::runs);
    lacks_memory_ = lacks_memory_ || cuts.lacks_memory;
    if (!is_plain_) {
      for (const Plan& plan : plans_.under_own_schedule(cuts, layers_)) offer_if_low(plan, found);
      return bound;
    }
    for (const Cut& own : cuts.cuts) {
      const Plan plan = plans_.of(own.begins);
      note(plan, own.length);
      found.offer(plan);
    }
    return std::max(bound, cuts.lower_bound);
  }

  // By the paths of the step, which know more than the closed form of the best cuts does, and take
  // less time.
  Seconds divide_plain(int recomputed, Seconds wanted, Shortlist& found) {
    pipeline_ = bounds_.fitting_pipeline();
    note_memory(wanted);
    return divide(pipeline_, recomputed, wanted, found);
  }

  // Whether some stage could have more layers within that time if it had more memory.
  void note_memory(Seconds enough) {
    for (const InterleavedStage& stage : pipeline_.stages)
      lacks_memory_ =
          lacks_memory_ ||
          layout_.settings.micro_batches * stage.most_layers * Seconds(stage.layer) < enough;
  }

  // Stages that are equally busy, with their layers in two chunks, the first or the second of which
  // is larger, changed layer by layer.
  Seconds look_at_v(Shortlist& found) {
    const int count = whole_layer_count(problem_.model);
    const std::vector<int> layers =
        layers_.empty() ? layers_by_speed(count, stages_.times_alone()) : layers_;
    const double tasks = 6.0 * layout_.stages * layout_.settings.micro_batches;
    ChunkDescent descent{
        ground_.engine,
        [this](const std::vector<int>& begins) {
          Plan plan = recut(stages_.plan(), layout_.schedule, begins, units_);
          if (const auto pinned = space_.pins().recompute_layers)
            recompute_first(problem_.model, *pinned, plan);
          return std::optional(std::move(plan));
        },
        static_cast<int>(ground_.work * std::min(kMostSimulations, kMostTasks / tasks) / orders_) +
            4};
    for (std::vector<int>& chunks : halves_of_stages(layers))
      descend(descent, std::move(chunks), found);
    return Seconds(0);
  }

  // Whether layers may be divided among the stages of a plain pipeline in more than one way.
  bool may_divide() const {
    return bounds_.layers() && layout_.stages > 1 && space_.pins().stages.empty() &&
           space_.target().cuts != CutRule::equal_layers;
  }

  using Runs = RunCosts* (LayoutStages::*)(int stage);
  CutResult cut(Seconds limit, Runs runs) {
    std::vector<CutSearch::Slot> slots;
    for (int s = 0; s < layout_.stages; ++s) {
      CutSearch::Slot slot{(stages_.*runs)(s), {}};
      if (s + 1 < layout_.stages)
        slot.send = [this, s](int unit) { return stages_.over(s, unit).time; };
      slots.push_back(std::move(slot));
    }
    return CutSearch(space_, stages_.rhythm(), plans_.limits(), ground_.work)
        .run(slots, limit, bounds_.tied(), ground_.stop);
  }

  // Numbers of first layers that are recomputed, with what no plan of them undercuts.
  struct Range {
    RunCosts::FirstLayers layers;
    Seconds bound;
    InterleavedPipeline pipeline{};  // of a single number
  };

  // The best plans that recompute some layers of every stage. Where layers are alike, each number
  // has a bound, and those that may help are looked at lowest bound first. Else ranges of numbers,
  // with the time of the least and the memory of the most, are halved as long as they promise
  // anything.
  Seconds recompute_some(Seconds limit, Shortlist& found) {
    std::vector<Range> open;  // the last is looked at first
    if (bounds_.has_equal_layers())
      for (const OrderBounds::Number& own : bounds_.numbers(limit, most_layers_of_a_stage()))
        open.insert(open.begin(), {{own.first, own.first}, own.bound, own.pipeline});
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
      const auto [fewest, most] = range.layers;
      Seconds divided = range.bound;
      if (!range.pipeline.stages.empty() && may_divide())
        divided = std::max(divided, divide(range.pipeline, fewest, wanted, found));
      if (divided >= std::min(wanted, found.best())) {
        least = std::min(least, divided);
        continue;
      }
      stages_.recompute_first(range.layers);
      const CutResult cuts = cut(std::min(wanted, found.best()), &LayoutStages::recomputing_runs);
      if (cuts.cuts.empty() || fewest == most || searches >= ground_.work * kMostRanges) {
        if (!cuts.cuts.empty()) offer_recomputing(cuts.cuts.front(), range.layers, found);
        least = std::min(least, std::max(divided, cuts.lower_bound));
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
      if (own.bound >= std::min(limit, found.best())) {
        least = std::min(least, own.bound);
        continue;
      }
      Seconds bound = own.bound;
      if (!own.pipeline.stages.empty())
        bound =
            std::max(bound, divide(own.pipeline, own.first, std::min(limit, found.best()), found));
      least = std::min(least, bound);
      if (bound >= std::min(limit, found.best()) || bounds_.has_equal_layers()) continue;
      stages_.recompute_first({layout_.chunks * own.first, layout_.chunks * own.first});
      const CutResult cuts = cut(kPlainLimit * limit, &LayoutStages::recomputing_runs);
      for (Plan& plan : plans_.under_own_schedule(cuts, {})) {
        recompute_first(problem_.model, own.first, plan);
        offer_fitting(plan, found);
      }
    }
    return least;
  }

  // Layers divided among stages and chunks so that the paths of the step are short; the bound of
  // all ways to do so.
  Seconds divide(const InterleavedPipeline& pipeline, int recomputed, Seconds limit,
                 Shortlist& found) {
    const LayerBound divided =
        bounds_.divide(pipeline, recomputed, limit, is_plain_ ? plans_.limits() : CutLimits{});
    if (Seconds(divided.step) >= limit) return Seconds(divided.step);
    const auto offer = [&](Plan plan) {
      if (recomputed > 0) recompute_first(problem_.model, recomputed, plan);
      offer_fitting(plan, found);
    };
    if (plans_.may_differ() || is_plain_)
      for (const DividedLayers& own : divided.found) {
        const bool is_exact = bounds_.layers()->equal;
        const bool is_slower = is_exact && Seconds(own.step) >= std::min(limit, found.best());
        // A chunk without layers may be one of another unit, and it is not said which.
        const std::vector<int> begins = plans_.begins_of(own);
        // One of its neighbours may be faster.
        if (is_slower && !begins.empty() && recomputed == 0)
          note(recut(stages_.plan(), layout_.schedule, begins, units_), Seconds(own.step));
        if (is_slower) break;
        if (!begins.empty()) offer(recut(stages_.plan(), layout_.schedule, begins, units_));
      }
    if (const auto even = plans_.even_chunks()) offer(*even);
    return Seconds(divided.step);
  }

  std::vector<OrderBounds::Number> numbers_in_chunks(Seconds limit) {
    if (bounds_.has_equal_layers() && layout_.schedule == Schedule::interleaved)
      return bounds_.numbers_in_chunks(limit);
    std::vector<OrderBounds::Number> numbers;
    const int chunks = layout_.stages * layout_.chunks;
    const int most = (whole_layer_count(problem_.model) + chunks - 1) / chunks;
    for (int first = 1; first <= most; ++first)
      numbers.push_back({first, layout_.bound, pipeline_});
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
    Plan plan = plans_.of(own.begins);
    recompute_first(problem_.model, good, plan);
    offer_fitting(plan, found);
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
    const CutLimits own = plans_.limits();
    return std::max(1, own.most_layers > 0 ? own.most_layers : whole_layer_count(problem_.model));
  }

  // Of any cut with the hosts in this order; no more is asked for than `enough`.
  Seconds order_bound(Seconds enough) {
    OrderBounds::OfCuts own = bounds_.of_any_cut(enough);
    pipeline_ = std::move(own.pipeline);
    layers_ = std::move(own.layers);
    if (layout_.schedule == Schedule::interleaved) note_memory(enough);
    return own.bound;
  }

  // While nothing is known plans that do not fit, too: one of them may be the nearest to fitting.
  void offer_if_low(Plan plan, Shortlist& found) {
    if (const auto pinned = space_.pins().recompute_layers)
      recompute_first(problem_.model, *pinned, plan);
    if (plans_.outline(ground_.engine, plan).fits)
      offer_fitting(plan, found);
    else if (!std::isfinite(limit_.value))
      found.offer(plan);
  }

  void offer_fitting(const Plan& plan, Shortlist& found) {
    const Estimate outline = plans_.outline(ground_.engine, plan);
    if (!outline.fits) return;
    note(plan, outline.step);
    if (outline.step < std::min(limit_, found.best())) found.offer(plan);
  }

  void keep_near() {
    if (near_) nears_.push_back(*std::exchange(near_, std::nullopt));
    std::ranges::stable_sort(nears_, {}, &NearPlan::promise);
    if (nears_.size() > kNearOrders) nears_.resize(kNearOrders);
  }

  void note(const Plan& plan, Seconds step) {
    if (step < kNear * limit_ && (!near_ || step < near_->promise)) near_ = {step, plan};
  }

  const UniformGround& ground_;
  const UniformLayout& layout_;
  const Space& space_;
  const Problem& problem_;
  int units_;
  LayoutStages stages_;
  OrderBounds bounds_;
  LayoutPlans plans_;
  bool is_plain_;  // its schedule is that which the others begin with
  Seconds limit_ = Seconds(HUGE_VAL);
  std::optional<NearPlan> near_;  // of the order of hosts that is looked at
  std::vector<NearPlan> nears_;
  const std::vector<int>* placed_ = nullptr;  // the order that is looked at
  double orders_ = 1;                         // of hosts
  bool lacks_memory_ = false;                 // more of it might allow other plans
  InterleavedPipeline pipeline_;              // of the order of hosts that is looked at
  std::vector<int> layers_;  // by stage, with which the bound of an interleaved order is reached
};

}  // namespace

Evaluated evaluate(const UniformGround& ground, const UniformLayout& layout, Seconds limit,
                   Shortlist& found) {
  return Evaluation(ground, layout).run(limit, found);
}

}  // namespace plait
