#include "second_opinion/local_search.h"

#include <algorithm>
#include <cmath>

#include "plan/check.h"
#include "second_opinion/starts.h"

namespace plait::second_opinion {
namespace {

constexpr int kRuns = 6;               // starts that are followed
constexpr int kRandomStarts = 10;      //
constexpr double kHot = 0.03;          // first temperature, as a part of the step
constexpr double kCold = 0.0005;       // last
constexpr int kProposalsPerPlan = 30;  // proposals that are not sound count a little, too

// A sketch and what it costs; those that do not fit are longer the more they miss.
struct State {
  Sketch sketch;
  Estimate cost;
  double length = HUGE_VAL;
  const char* start = "";
};

double length_of(const Estimate& cost) {
  if (cost.fits) return cost.step.value;
  double excess = 0;
  for (const StageCost& stage : cost.stages)
    excess = std::max(excess, -(stage.spare() / stage.capacity));
  return 1e6 * (1 + excess) + cost.step.value;
}

class Annealing {
 public:
  Annealing(const CostEngine& engine, const Options& options)
      : engine_(engine), options_(options), random_(options.seed) {
    for (const Change& change : changes())
      for (int w = 0; w < change.weight; ++w) drawn_.push_back(&change);
  }

  std::optional<Opinion> run(const std::vector<Plan>& given) {
    std::vector<State> starts = all_starts(given);
    std::ranges::stable_sort(starts, {}, &State::length);
    if (starts.size() > kRuns) starts.resize(kRuns);
    const std::int64_t for_starts = (options_.evaluations - used_) * 2 / 3;
    for (const State& start : starts)
      anneal(start, for_starts / static_cast<std::int64_t>(starts.size()), kHot);
    while (!is_over()) anneal(best_, options_.evaluations / 8 + 1, kHot / 3);
    if (best_.length >= 1e6) return std::nullopt;
    return Opinion{plan_of(best_.sketch), best_.cost.step, used_, best_.start};
  }

 private:
  const Problem& problem() const { return engine_.problem(); }
  bool is_over() const { return used_ >= options_.evaluations || options_.stop(); }

  // Costs the sketch; false when it is not sound.
  bool see(State& state) {
    if (++proposals_ % kProposalsPerPlan == 0) ++used_;
    const Plan plan = plan_of(state.sketch);
    if (!check_plan(problem(), plan).empty()) return false;
    ++used_;
    state.cost = engine_.simulate(plan);
    state.length = length_of(state.cost);
    if (state.length < best_.length) best_ = state;
    return true;
  }

  // Units by speed, then recompute where memory is short.
  void settle(State& state) {
    State balanced = state;
    balance(balanced.sketch, state.cost);
    if (see(balanced) && balanced.length < state.length) state = balanced;
    if (state.cost.fits) return;
    State smaller = state;
    for (int s = 0; s < smaller.sketch.part_count(); ++s)
      if (state.cost.stages[s].spare() < Bytes(0))
        smaller.sketch.parts[s].recompute = Recompute::full, smaller.sketch.parts[s].kept = 0;
    if (see(smaller) && smaller.length < state.length) state = smaller;
  }

  std::vector<State> all_starts(const std::vector<Plan>& given) {
    std::vector<State> starts;
    const auto add = [&](Sketch sketch, const char* name) {
      if (is_over()) return;
      State state{std::move(sketch), {}, HUGE_VAL, name};
      if (!see(state)) return;
      settle(state);
      starts.push_back(std::move(state));
    };
    for (const Plan& plan : given) add(sketch_of(problem(), plan), "given");
    std::vector<Sketch> uniform = uniform_sketches(problem(), random_);
    std::ranges::shuffle(uniform, random_);
    const auto most = static_cast<std::size_t>(options_.evaluations / 12 + 1);
    if (uniform.size() > most) uniform.resize(most);
    for (Sketch& sketch : uniform) add(std::move(sketch), "uniform");
    for (int i = 0; i < kRandomStarts; ++i) add(random_sketch(problem(), random_), "random");
    return starts;
  }

  void anneal(const State& start, std::int64_t evaluations, double hot) {
    State now = start;
    const std::int64_t begin = used_;
    while (used_ - begin < evaluations && !is_over()) {
      const double way = static_cast<double>(used_ - begin) / static_cast<double>(evaluations);
      const double temperature = hot * std::pow(kCold / hot, way);
      State next{now.sketch, {}, HUGE_VAL, start.start};
      const Change& change = *drawn_[random_() % drawn_.size()];
      if (!change.apply(problem(), next.sketch, random_) || !see(next)) {
        ++proposals_;
        continue;
      }
      if (change.is_large && next.length > now.length) settle(next);
      const double worse = next.length / now.length - 1;
      const double draw = static_cast<double>(random_() % 1'000'000) / 1e6;
      if (worse <= 0 || draw < std::exp(-worse / temperature)) now = next;
    }
  }

  const CostEngine& engine_;
  const Options& options_;
  Random random_;
  std::vector<const Change*> drawn_;  // by weight
  State best_;
  std::int64_t used_ = 0;
  std::int64_t proposals_ = 0;
};

}  // namespace

std::optional<Opinion> second_opinion(const CostEngine& engine, const std::vector<Plan>& given,
                                      const Options& options) {
  return Annealing(engine, options).run(given);
}

}  // namespace plait::second_opinion
