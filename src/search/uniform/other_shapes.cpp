#include "search/uniform/other_shapes.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include "base/parallel.h"

namespace plait {
namespace {

constexpr std::size_t kShapesAtOnce = 4;  // all know the same of the others
constexpr std::size_t kShapesTried = 40;  // for each that is wanted ..
constexpr std::size_t kInVain = 8;        // .. in a row that are not among the best, at most ..
constexpr std::size_t kShapesAgain = 3;   // .. and of these, again with
constexpr double kLayoutsOfShape = 24;    // so many layouts whose plans are costed
constexpr double kFarAway = 3;            // times the best step: nobody compares with more

Shape shape_of(const UniformLayout& layout) {
  return {layout.tensor, layout.stages, layout.settings.context, layout.settings.expert};
}

// Whether plans of the second layout need as much memory as those of the first, or more: no fewer
// samples at a time, and states that are cut over no more replicas.
bool needs_as_much(const UniformLayout& one, const UniformLayout& other) {
  return other.recompute == one.recompute && other.recomputes_some == one.recomputes_some &&
         other.settings.zero <= one.settings.zero && other.chunks >= one.chunks &&
         other.data <= one.data &&
         other.data * other.settings.micro_batches <= one.data * one.settings.micro_batches;
}

// The search for the best plans of one shape.
class ShapeSearch {
 public:
  ShapeSearch(const UniformGround& ground, Shape shape, std::vector<UniformLayout> layouts,
              Seconds fastest)
      : ground_(&ground),
        shape_(std::move(shape)),
        layouts_(std::move(layouts)),
        farthest_(kFarAway * fastest) {
    std::ranges::stable_sort(layouts_, {}, &UniformLayout::bound);
  }

  const Shape& shape() const { return shape_; }
  const std::optional<RankedPlan>& best() const { return best_; }
  Seconds step() const { return best_ ? best_->cost.step : Seconds(HUGE_VAL); }
  std::int64_t evaluations() const { return evaluations_; }
  Seconds bound() const { return layouts_.front().bound; }
  // Whether nothing fits, as far as is known.
  bool is_hopeless() const { return !best_ && !misfits_.empty() && !has_fitted_; }

  void start_from(const RankedPlan& plan) { best_ = plan; }

  // Of layouts with the lowest bounds many do not fit: of each kind of recompute and ZeRO the one
  // that needs the least memory.
  void look_at_least_memory(Seconds limit) {
    std::map<std::pair<Recompute, ZeroStage>, const UniformLayout*> least;
    for (const UniformLayout& layout : layouts_) {
      const UniformLayout*& own = least[{layout.recompute, layout.settings.zero}];
      if (own == nullptr || needs_as_much(layout, *own)) own = &layout;
    }
    for (const auto& [kind, layout] : least) look_at(*layout, limit);
  }

  // Nothing slower than the limit is of use.
  void look_at_all(Seconds limit) {
    for (const UniformLayout& layout : layouts_) look_at(layout, limit);
    for (const UniformLayout& layout : std::exchange(short_of_memory_, {})) look_at(layout, limit);
  }

 private:
  void look_at(const UniformLayout& layout, Seconds limit) {
    limit = std::min(limit, step());
    if (costed_ >= kLayoutsOfShape || ground_->stop()) return;
    if (layout.bound >= limit) {
      has_fitted_ = true;
      return;
    }
    const auto is_less = [&](const UniformLayout& tried) { return needs_as_much(tried, layout); };
    if (std::ranges::any_of(misfits_, is_less)) return;
    Shortlist own(ground_->engine, 1, ground_->context.options.target);
    // What is slower than the limit is not found, which must not look like what does not fit. How
    // many layers to recompute is a search that takes long without a limit.
    const bool is_limited = best_ || layout.recomputes_some;
    const Seconds slowest = is_limited ? std::min(limit, farthest_) : Seconds(HUGE_VAL);
    const bool lacks_memory = evaluate(*ground_, layout, slowest, own).lacks_memory;
    costed_ += own.empty() ? kOfAMisfit : 1;
    evaluations_ += own.evaluations();
    if (own.best() < step()) best_ = own.plans().front();
    const bool is_misfit = !is_limited && !best_ && lacks_memory;
    has_fitted_ = has_fitted_ || !is_misfit;
    if (is_misfit) misfits_.push_back(layout);
    if (!lacks_memory) return;
    if (!may_recompute_some(*ground_->context.space, layout)) return;
    short_of_memory_.push_back(layout);
    short_of_memory_.back().recomputes_some = true;
  }

  const UniformGround* ground_;
  Shape shape_;
  std::vector<UniformLayout> layouts_;  // lowest bound first
  Seconds farthest_;
  std::optional<RankedPlan> best_;
  std::int64_t evaluations_ = 0;
  std::vector<UniformLayout> misfits_;
  std::vector<UniformLayout> short_of_memory_;
  bool has_fitted_ = false;  // or was not looked at
  double costed_ = 0;
};

// All shapes but that of the best plan, of which no better plan was found; lowest bound first.
std::vector<ShapeSearch> other_shapes(const UniformGround& ground,
                                      const std::vector<UniformLayout>& layouts,
                                      const BestByShape& best) {
  const auto fastest =
      std::ranges::min_element(best, {}, [](const auto& one) { return one.second.cost.step; });
  std::map<Shape, std::vector<UniformLayout>> by_shape;
  for (const UniformLayout& layout : layouts)
    if (shape_of(layout) != fastest->first) by_shape[shape_of(layout)].push_back(layout);
  std::vector<ShapeSearch> all;
  for (auto& [shape, own] : by_shape)
    all.emplace_back(ground, shape, std::move(own), fastest->second.cost.step);
  std::ranges::stable_sort(all, {}, &ShapeSearch::bound);
  return all;
}

// The step of the last of the wanted ones; infinite while there are fewer.
Seconds worst_wanted(const BestByShape& best, std::size_t wanted) {
  if (best.size() < wanted) return Seconds(HUGE_VAL);
  std::vector<Seconds> steps;
  for (const auto& [shape, ranked] : best) steps.push_back(ranked.cost.step);
  std::ranges::nth_element(steps, steps.begin() + static_cast<long>(wanted) - 1);
  return steps[wanted - 1];
}

// In those that may be among the wanted ones.
void look_at(std::span<ShapeSearch> searches, std::size_t wanted, int threads, auto how,
             BestByShape& best) {
  std::size_t in_vain = 0;
  for (Seconds before(HUGE_VAL); !searches.empty() && in_vain < kInVain * wanted;) {
    const std::span<ShapeSearch> round = searches.first(std::min(kShapesAtOnce, searches.size()));
    searches = searches.subspan(round.size());
    const Seconds limit = worst_wanted(best, wanted);
    parallel_for(static_cast<int>(round.size()), threads, [&](int i) {
      if (round[i].bound() < limit) (round[i].*how)(limit);
    });
    for (const ShapeSearch& search : round)
      if (search.best()) best.insert_or_assign(search.shape(), *search.best());
    const Seconds now = worst_wanted(best, wanted);
    in_vain = now < before || std::isinf(now.value) ? 0 : in_vain + round.size();
    before = now;
  }
}

}  // namespace

bool may_recompute_some(const Space& space, const UniformLayout& layout) {
  const Pins& pins = space.pins();
  return layout.recompute == Recompute::none && !layout.recomputes_some &&
         space.target().recompute_layers != RecomputeLayers::same && !pins.recompute &&
         !pins.recompute_layers &&
         std::ranges::find(space.recomputes(), Recompute::full) != space.recomputes().end();
}

std::int64_t find_other_shapes(const UniformGround& ground,
                               const std::vector<UniformLayout>& layouts, std::size_t wanted,
                               BestByShape& best) {
  if (best.empty() || wanted < 2) return 0;
  std::vector<ShapeSearch> searches = other_shapes(ground, layouts, best);
  for (ShapeSearch& search : searches)
    if (const auto known = best.find(search.shape()); known != best.end())
      search.start_from(known->second);
  const int threads = ground.context.options.threads;
  const auto first = [&](std::size_t most) {
    return std::span(searches).first(std::min(searches.size(), most * wanted));
  };
  look_at(first(kShapesTried), wanted, threads, &ShapeSearch::look_at_least_memory, best);
  // Then those that promise most: a good plan so far, and a bound that is lower.
  std::int64_t evaluations = 0;
  std::erase_if(searches, [&](const ShapeSearch& search) {
    if (search.is_hopeless()) evaluations += search.evaluations();
    return search.is_hopeless();
  });
  const Seconds limit = worst_wanted(best, wanted);
  std::ranges::stable_sort(searches, {}, [&](const ShapeSearch& search) {
    return std::min(limit, search.step()) + search.bound();
  });
  look_at(first(kShapesAgain), wanted, threads, &ShapeSearch::look_at_all, best);
  for (const ShapeSearch& search : searches) evaluations += search.evaluations();
  return evaluations;
}

void drop_idle_zero(const CostEngine& engine, BestByShape& plans) {
  for (auto& [shape, ranked] : plans) {
    if (ranked.plan.zero != ZeroStage::optimizer) continue;
    Plan plain = ranked.plan;
    plain.zero = ZeroStage::off;
    const Estimate cost = engine.simulate(plain);
    if (cost.fits && cost.step <= ranked.cost.step) ranked = {plain, cost};
  }
}

std::vector<RankedPlan> best_of(const BestByShape& plans, std::size_t most) {
  std::vector<RankedPlan> out;
  for (const auto& [shape, ranked] : plans) out.push_back(ranked);
  std::ranges::stable_sort(out, [](const RankedPlan& a, const RankedPlan& b) {
    return a.cost.step != b.cost.step ? a.cost.step < b.cost.step : a.plan < b.plan;
  });
  if (out.size() > most) out.resize(most);
  return out;
}

}  // namespace plait
