// Searches random problems that are short of memory twice, with all layers of a stage recomputed
// alike and with each by itself, and prints what that gains.
//
//   compare_recompute [--seed 1] [--count 200] [--most-devices 64] [--target any]

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "monotone/pairs.h"
#include "plan/describe.h"

namespace {

using namespace plait;
using namespace plait::monotone;

bool recomputes(const Plan& plan) {
  return std::ranges::any_of(plan.stages, [](const Stage& stage) {
    return std::ranges::any_of(stage.spans,
                               [](const Span& span) { return span.recompute != Recompute::none; });
  });
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, int> numbers{{"--seed", 1}, {"--count", 200}, {"--most-devices", 64}};
  Target target;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string_view(argv[i]) == "--target" && target_named(argv[i + 1]) != nullptr) {
      target = *target_named(argv[i + 1]);
      continue;
    }
    if (!numbers.contains(argv[i])) {
      std::fprintf(stderr, "unknown flag %s\n", argv[i]);
      return 2;
    }
    numbers[argv[i]] = std::atoi(argv[i + 1]);
  }
  std::vector<double> gains;
  int drawn = 0;
  for (auto seed = static_cast<std::uint64_t>(numbers["--seed"]);
       static_cast<int>(gains.size()) < numbers["--count"]; ++seed, ++drawn) {
    const Pair pair = recompute_pair(seed, numbers["--most-devices"], target);
    const auto alike = best_plan(pair.worse);
    if (!alike || !recomputes(alike->plan)) continue;  // not short of memory, or too short
    const auto by_layer = best_plan(pair.better);
    const double gain = by_layer ? alike->cost.step / by_layer->cost.step - 1 : -1;
    gains.push_back(gain);
    std::puts(fmt::format("{:<6} {:6.2f} %  {:.5g} s, then {:.5g} s: {}\n  {}\n  {}", seed,
                          100 * gain, alike->cost.step.value,
                          by_layer ? by_layer->cost.step.value : 0, pair.words,
                          describe(alike->plan), by_layer ? describe(by_layer->plan) : "")
                  .c_str());
    std::fflush(stdout);
  }
  std::ranges::sort(gains);
  const auto at = [&](double part) {
    return 100 * gains[static_cast<std::size_t>(part * static_cast<double>(gains.size() - 1))];
  };
  const auto above = std::ranges::count_if(gains, [](double gain) { return gain >= 0.02; });
  std::puts(
      fmt::format("{} problems short of memory of {} drawn: {} gain 2 % or more; least {:.2f}, "
                  "median {:.2f}, p90 {:.2f}, most {:.2f} %",
                  gains.size(), drawn, above, at(0), at(0.5), at(0.9), at(1))
          .c_str());
}
