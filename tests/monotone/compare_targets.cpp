// Asks of programs with one layout for all stages whether a pin, an independent local search or
// another order of hosts finds a better plan than the free search, and whether any plan that is
// found is below a bound.
//
//   compare_targets [--seed 1] [--count 20] [--most-devices 256] [--threads 1]
//                   [--target megatron] [--evaluations 2000] [--pins 1] [--long 0] [--fewest 1]

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

#include "base/parallel.h"
#include "monotone/every_pin.h"
#include "monotone/pairs.h"
#include "plan/describe.h"
#include "second_opinion/mixed_problem.h"
#include "second_opinion/one_layout.h"

namespace {

using namespace plait;
using namespace plait::monotone;
using Clock = std::chrono::steady_clock;

constexpr double kRounding = 1e-9;

struct Tally {
  int asked = 0;
  int better = 0;   // by more than half a per cent
  int better1 = 0;  // by more than one
  double worst = 0;
};

struct Totals {
  std::mutex writing;
  std::map<std::string, Tally> tallies;
  std::vector<double> gaps;
  std::vector<double> seconds;
  int false_bounds = 0;
};

SearchResult searched(const Problem& problem, const Target& target, const Pins& pins) {
  SearchContext context{problem, {.keep = 3}, {}, {}, {}};
  context.options.pins = pins;
  context.options.target = target;
  return run_search(planners().front(), context);
}

void say(Totals& totals, const std::string& line) {
  const std::lock_guard lock(totals.writing);
  std::puts(line.c_str());
  std::fflush(stdout);
}

class Questions {
 public:
  Questions(std::uint64_t seed, std::map<std::string, int>& numbers, const Target& target,
            Totals& totals)
      : seed_(seed),
        numbers_(numbers),
        target_(target),
        totals_(totals),
        mixed_(second_opinion::mixed_problem(seed, numbers["--most-devices"],
                                             numbers["--long"] != 0
                                                 ? second_opinion::Sequences::up_to_64k
                                                 : second_opinion::Sequences::usual)) {
    adapt(mixed_.problem, target);
  }

  void ask() {
    if (mixed_.problem.cluster.device_count() < numbers_["--fewest"]) return;
    const auto begin = Clock::now();
    free_ = searched(mixed_.problem, target_, {});
    const std::chrono::duration<double> spent = Clock::now() - begin;
    if (!free_.plans.empty()) {
      const std::lock_guard lock(totals_.writing);
      totals_.seconds.push_back(spent.count());
      totals_.gaps.push_back(step() / bound() - 1);
      std::puts(fmt::format("{} n={} step {:.5g} gap {:.4f} in {:.2f} s  {}", seed_,
                            mixed_.problem.cluster.device_count(), step().value,
                            step() / bound() - 1, spent.count(), mixed_.arguments)
                    .c_str());
      std::fflush(stdout);
    }
    ask_another_order();
    if (numbers_["--pins"] != 0)
      for (const Pinned& own : every_pin(mixed_.problem, target_)) ask_pinned("pin", own);
    if (!free_.plans.empty())
      ask_pinned("its own pins", pins_like(mixed_.problem, free_.plans.front().plan));
    if (numbers_["--evaluations"] > 0) ask_opinion();
  }

 private:
  Seconds step() const {
    return free_.plans.empty() ? Seconds(HUGE_VAL) : free_.plans.front().cost.step;
  }
  Seconds bound() const { return free_.lower_bound.value_or(Seconds(0)); }

  void compare(const std::string& kind, const std::string& words, Seconds other,
               const std::string& plan) {
    if (!std::isfinite(other.value)) return;
    const double better = step() / other - 1;
    {
      const std::lock_guard lock(totals_.writing);
      Tally& tally = totals_.tallies[kind];
      ++tally.asked;
      tally.better += better > kTolerance ? 1 : 0;
      tally.better1 += better > 0.01 ? 1 : 0;
      tally.worst = std::max(tally.worst, better);
      if (bound() > (1 + kRounding) * other) ++totals_.false_bounds;
    }
    if (bound() > (1 + kRounding) * other)
      say(totals_, fmt::format("  FALSE BOUND {} {:.6g} above {:.6g}: {} {}\n    {}\n    {}", seed_,
                               bound().value, other.value, kind, words, mixed_.arguments, plan));
    if (better > kTolerance)
      say(totals_,
          fmt::format("  BETTER {} {:.2f} % {} {}\n    free {}\n    this {}", seed_, 100 * better,
                      kind, words, free_.plans.empty() ? "-" : describe(free_.plans.front().plan),
                      plan));
  }

  void ask_another_order() {
    Problem other = mixed_.problem;
    other.cluster = with_hosts_in_another_order(other.cluster, seed_);
    const SearchResult found = searched(other, target_, {});
    const bool same =
        found.plans.empty() == free_.plans.empty() && found.lower_bound == free_.lower_bound &&
        (found.plans.empty() || found.plans.front().cost.step == free_.plans.front().cost.step);
    if (!same) say(totals_, fmt::format("  ANOTHER ORDER {}: not the same answer", seed_));
    const std::lock_guard lock(totals_.writing);
    Tally& tally = totals_.tallies["another order"];
    ++tally.asked;
    tally.better += same ? 0 : 1;
  }

  void ask_pinned(const char* kind, const Pinned& own) {
    const SearchResult found = searched(mixed_.problem, target_, own.pins);
    if (found.plans.empty()) {
      if (std::string_view(kind) == "its own pins")
        say(totals_, fmt::format("  LOST {} under its own pins", seed_));
      return;
    }
    const RankedPlan& best = found.plans.front();
    compare(kind, own.words, best.cost.step, describe(best.plan));
    if (std::string_view(kind) == "pin") return;
    if (best.cost.step > (1 + kRounding) * step() ||
        found.lower_bound.value_or(Seconds(0)) > (1 + kRounding) * step())
      say(totals_, fmt::format("  OWN PINS {}: {:.6g}, bound {:.6g}, free {:.6g}: {}", seed_,
                               best.cost.step.value, found.lower_bound.value_or(Seconds(0)).value,
                               step().value, own.words));
  }

  void ask_opinion() {
    const CostEngine engine(mixed_.problem);
    std::vector<Plan> given;
    for (const RankedPlan& ranked : free_.plans) given.push_back(ranked.plan);
    const auto opinion = second_opinion::one_layout_opinion(
        engine, target_, given, {.seed = seed_, .evaluations = numbers_["--evaluations"]});
    if (!opinion) return;
    compare("second opinion", opinion->start, opinion->step, describe(opinion->plan));
    const Pinned own = pins_like(mixed_.problem, opinion->plan);
    const SearchResult found = searched(mixed_.problem, target_, own.pins);
    const Seconds least = found.lower_bound.value_or(Seconds(0));
    if (found.plans.empty() || least > (1 + kRounding) * opinion->step) {
      const std::lock_guard lock(totals_.writing);
      ++totals_.false_bounds;
      std::puts(fmt::format("  FALSE BOUND {} {:.6g} above {:.6g}: {}\n    {}\n    {}", seed_,
                            least.value, opinion->step.value, own.words, mixed_.arguments,
                            describe(opinion->plan))
                    .c_str());
    }
  }

  std::uint64_t seed_;
  std::map<std::string, int>& numbers_;
  const Target& target_;
  Totals& totals_;
  second_opinion::MixedProblem mixed_;
  SearchResult free_;
};

double quantile(std::vector<double> values, double part) {
  if (values.empty()) return NAN;
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, int> numbers{{"--seed", 1},           {"--count", 20},  {"--fewest", 1},
                                     {"--most-devices", 256}, {"--threads", 1}, {"--pins", 1},
                                     {"--evaluations", 2000}, {"--long", 0}};
  const Target* target = target_named("megatron");
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string_view(argv[i]) == "--target" && target_named(argv[i + 1]) != nullptr) {
      target = target_named(argv[i + 1]);
    } else if (numbers.contains(argv[i])) {
      numbers[argv[i]] = std::atoi(argv[i + 1]);
    } else {
      std::fprintf(stderr, "unknown flag %s\n", argv[i]);
      return 2;
    }
  }
  Totals totals;
  parallel_for(numbers["--count"], numbers["--threads"], [&](int i) {
    Questions(static_cast<std::uint64_t>(numbers["--seed"] + i), numbers, *target, totals).ask();
  });
  std::puts(fmt::format("{} problems for {}: gap median {:.2f} %, ninth decile {:.2f} %, largest "
                        "{:.1f} %; seconds median {:.3f}, ninth decile {:.3f}, most {:.2f}",
                        totals.gaps.size(), target->name, 100 * quantile(totals.gaps, 0.5),
                        100 * quantile(totals.gaps, 0.9), 100 * quantile(totals.gaps, 1),
                        quantile(totals.seconds, 0.5), quantile(totals.seconds, 0.9),
                        quantile(totals.seconds, 1))
                .c_str());
  for (const auto& [kind, tally] : totals.tallies)
    std::puts(fmt::format("{:<15} {:>5} asked, {:>4} better by more than 0.5 %, {:>4} by more than "
                          "1 %, most {:.2f} %",
                          kind, tally.asked, tally.better, tally.better1, 100 * tally.worst)
                  .c_str());
  std::puts(fmt::format("bounds above a plan: {}", totals.false_bounds).c_str());
}
