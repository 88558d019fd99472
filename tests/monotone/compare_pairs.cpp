// Compares plans of pairs of problems of which one is better off, and prints where it is slower.
//
//   compare_pairs [--seed 1] [--count 50] [--most-devices 256] [--threads 1] [--target any]
//                 [--kind "more memory"] [--effort 1] [--plans 0]
//
// --kind looks at pairs of this kind alone, --effort 0 leaves out those of more effort, which take
// most of the time, --plans 1 prints the plans of those that are slower.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/parallel.h"
#include "monotone/pairs.h"
#include "plan/describe.h"

namespace {

using namespace plait;
using namespace plait::monotone;

struct Tally {
  int pairs = 0;
  int failures = 0;
  double worst = 0;
};

Seconds step_of(const std::optional<RankedPlan>& plan) {
  return plan ? plan->cost.step : Seconds(HUGE_VAL);
}

std::string text_of(const std::optional<RankedPlan>& plan) {
  return plan ? describe(plan->plan) : "-";
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, int> numbers{{"--seed", 1},    {"--count", 50}, {"--most-devices", 256},
                                     {"--threads", 1}, {"--plans", 0},  {"--effort", 1}};
  Target target;
  std::string only;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string_view(argv[i]) == "--target" && target_named(argv[i + 1]) != nullptr) {
      target = *target_named(argv[i + 1]);
      continue;
    }
    if (std::string_view(argv[i]) == "--kind") {
      only = argv[i + 1];
      continue;
    }
    if (!numbers.contains(argv[i])) {
      std::fprintf(stderr, "unknown flag %s\n", argv[i]);
      return 2;
    }
    numbers[argv[i]] = std::atoi(argv[i + 1]);
  }
  std::map<std::string, Tally> tallies;
  std::mutex writing;
  parallel_for(numbers["--count"], numbers["--threads"], [&](int i) {
    const auto seed = static_cast<std::uint64_t>(numbers.at("--seed") + i);
    std::optional<std::optional<RankedPlan>> as_drawn;
    const auto searched = [&](const Side& side) {
      if (!side.as_drawn) return best_plan(side);
      if (!as_drawn) as_drawn = best_plan(side);
      return *as_drawn;
    };
    for (const Pair& pair : pairs_of(seed, numbers.at("--most-devices"), target)) {
      if (!only.empty() && pair.kind != only) continue;
      if (numbers.at("--effort") == 0 && pair.kind == "more effort") continue;
      const std::optional<RankedPlan> of_worse = searched(pair.worse);
      const std::optional<RankedPlan> of_better = searched(pair.better);
      const Seconds worse = step_of(of_worse);
      const Seconds better = step_of(of_better);
      const double over = excess(worse, better, pair.scale);
      const std::lock_guard lock(writing);
      Tally& tally = tallies[pair.kind];
      ++tally.pairs;
      tally.worst = std::max(tally.worst, over);
      if (over <= kTolerance) continue;
      ++tally.failures;
      std::puts(fmt::format("{:<14} {:<6} {:6.2f} %  {:.5g} s, then {:.5g} s: {}", pair.kind, seed,
                            100 * over, worse.value, better.value, pair.words)
                    .c_str());
      if (numbers.at("--plans") != 0)
        std::puts(fmt::format("    {}\n    {}", text_of(of_worse), text_of(of_better)).c_str());
      std::fflush(stdout);
    }
  });
  for (const auto& [kind, tally] : tallies)
    std::puts(fmt::format("{:<14} {:>5} pairs, {:>4} slower by more than 0.5 %, worst {:.2f} %",
                          kind, tally.pairs, tally.failures, 100 * tally.worst)
                  .c_str());
}
