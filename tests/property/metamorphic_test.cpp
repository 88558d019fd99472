// Problems drawn with a seed that changes every day: what must hold for any of them. The seed is
// printed, and PLAIT_TEST_SEED draws the same problems again.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <sstream>

#include "app/plan/plan.h"
#include "base/error.h"
#include "io/format/json_reader.h"
#include "second_opinion/mixed_problem.h"

namespace plait {
namespace {

constexpr double kSame = 1e-9;
constexpr double kTolerance = 0.005;
// However busy the machine is, no clock ends a search: what it may do is counted.
constexpr Seconds kNoLimit(1e6);

std::uint64_t changing_seed() {
  static const std::uint64_t kSeed = [] {
    const char* wanted = std::getenv("PLAIT_TEST_SEED");
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const std::uint64_t seed = wanted != nullptr
                                   ? std::stoull(wanted)
                                   : std::chrono::duration_cast<std::chrono::days>(now).count();
    std::printf("PLAIT_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
    return seed;
  }();
  return kSeed;
}

using Drawn = second_opinion::MixedProblem;

Drawn drawn(std::uint64_t part, int i, int most_devices = 64) {
  const std::uint64_t seed = 1'000'000 * changing_seed() + 1'000 * part + static_cast<unsigned>(i);
  return second_opinion::mixed_problem(seed, most_devices, second_opinion::Sequences::up_to_64k);
}

// What `plait plan` is asked. The default number format follows from the devices.
PlanRequest request_of(const Drawn& drawn) {
  PlanRequest request;
  request.source.model = drawn.model;
  request.source.cluster = drawn.cluster;
  request.source.sequence = drawn.sequence;
  request.source.job.global_batch = drawn.problem.job.global_batch;
  request.search.time_limit = kNoLimit;
  return request;
}

// Of a search that has spent what it counts, not its time.
double step_of(const PlanAnswer& answer) {
  EXPECT_FALSE(answer.result.cut_short);
  return answer.found() ? answer.result.plans.front().cost.step.value : HUGE_VAL;
}

// A cluster whose parts are listed in another order.
std::string in_other_order(const std::string& cluster, std::mt19937_64& random) {
  std::vector<std::string> parts;
  std::istringstream words(cluster);
  for (std::string part; std::getline(words, part, '+');) parts.push_back(part);
  std::ranges::shuffle(parts, random);
  return fmt::format("{}", fmt::join(parts, "+"));
}

TEST(SlowMetamorphic, TheOrderOfHostsChangesNothing) {
  std::mt19937_64 random(changing_seed());
  for (int i = 0; i < 100; ++i) {
    const Drawn problem = drawn(1, i);
    PlanRequest request = request_of(problem);
    const double step = step_of(answer(request, {}));
    request.source.cluster = in_other_order(problem.cluster, random);
    const double other = step_of(answer(request, {}));
    if (step != other) {
      EXPECT_NEAR(other / step, 1, kSame) << problem.arguments << " and " << request.source.cluster;
    }
  }
}

// Types, nodes and zones are called otherwise, and types are numbered in another order.
Cluster renamed(Cluster cluster, std::mt19937_64& random) {
  std::vector<int> places(cluster.device_types.size());
  std::iota(places.begin(), places.end(), 0);
  std::ranges::shuffle(places, random);
  const std::vector<DeviceType> types = cluster.device_types;
  for (std::size_t i = 0; i < types.size(); ++i) {
    cluster.device_types[places[i]] = types[i];
    cluster.device_types[places[i]].name = fmt::format("type{}", random() % 1000 * 10 + i);
  }
  for (Device& device : cluster.devices) device.type = places[device.type];
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i)
    cluster.nodes[i].name = fmt::format("node{}", cluster.nodes.size() - i);
  return cluster;
}

TEST(SlowMetamorphic, NamesAndTheOrderOfTypesChangeNothing) {
  std::mt19937_64 random(changing_seed());
  for (int i = 0; i < 60; ++i) {
    const Drawn drawn_problem = drawn(6, i);
    Problem problem = drawn_problem.problem;
    const auto step = [&] {
      SearchContext context{problem, {}, {}, {}, {}};
      context.options.time_limit = kNoLimit;
      const SearchResult result = run_search(planners().front(), context);
      EXPECT_FALSE(result.cut_short);
      return result.plans.empty() ? HUGE_VAL : result.plans.front().cost.step.value;
    };
    const double before = step();
    problem.cluster = renamed(problem.cluster, random);
    const double after = step();
    if (before != after) {
      EXPECT_NEAR(after / before, 1, kSame) << drawn_problem.arguments;
    }
  }
}

// Where a cluster has many kinds of nodes, not every mix of them is looked at: one pin in a hundred
// may find a better one.
TEST(SlowMetamorphic, PinsHardlyEverBeatTheFreeSearch) {
  int pins = 0;
  std::vector<std::string> better;
  std::mt19937_64 random(changing_seed());
  for (int i = 0; i < 60; ++i) {
    const Drawn problem = drawn(2, i);
    PlanRequest request = request_of(problem);
    const double free = step_of(answer(request, {}));
    for (int pin = 0; pin < 4; ++pin) {
      PlanRequest pinned = request;
      if (pin == 0) pinned.search.pins.tensor = 1 << random() % 4;
      if (pin == 1) pinned.search.pins.pipeline = 1 + static_cast<int>(random() % 8);
      if (pin == 2) pinned.search.pins.micro_batch = 1 << random() % 4;
      if (pin == 3)
        pinned.search.pins.recompute = random() % 2 == 0 ? Recompute::none : Recompute::full;
      double step = HUGE_VAL;
      try {
        step = step_of(answer(pinned, {}));
      } catch (const InputError&) {  // a pin that nothing can obey is refused
      }
      ++pins;
      if (step < (1 - kTolerance) * free)
        better.push_back(
            fmt::format("{}, pin {}: {} s instead of {} s", problem.arguments, pin, step, free));
    }
  }
  EXPECT_LE(100 * better.size(), static_cast<std::size_t>(pins))
      << fmt::format("{}", fmt::join(better, "\n"));
}

// Of nodes that it has already; as with pins, not every mix is looked at.
TEST(SlowMetamorphic, OneNodeMoreIsHardlyEverSlower) {
  constexpr int kProblems = 60;
  std::vector<std::string> slower;
  for (int i = 0; i < kProblems; ++i) {
    const Drawn problem = drawn(5, i);
    PlanRequest request = request_of(problem);
    const double step = step_of(answer(request, {}));
    const std::string first = problem.cluster.substr(0, problem.cluster.find('+'));
    request.source.cluster = problem.cluster + "+1x" + first.substr(first.find('x') + 1);
    const double after = step_of(answer(request, {}));
    if (after > (1 + kTolerance) * step)
      slower.push_back(fmt::format("{}: {} s instead of {} s with {}", problem.arguments, after,
                                   step, request.source.cluster));
  }
  EXPECT_LE(50 * slower.size(), static_cast<std::size_t>(kProblems))
      << fmt::format("{}", fmt::join(slower, "\n"));
}

TEST(SlowMetamorphic, OddSequencesAreAnswered) {
  std::mt19937_64 random(changing_seed());
  for (int i = 0; i < 150; ++i) {
    PlanRequest request = request_of(drawn(3, i));
    request.source.sequence = 1000 + static_cast<int>(random() % 60'000);
    request.source.job.global_batch = 1 + static_cast<int>(random() % 48);
    if (i % 3 == 1) request.search.pins.context = 1 << random() % 4;
    if (i % 3 == 2) request.search.pins.tensor = 1 << random() % 4;
    SCOPED_TRACE(fmt::format("{} x{} on {}", request.source.model, *request.source.sequence,
                             request.source.cluster));
    try {
      const PlanAnswer found = answer(request, {});
      EXPECT_EQ(found.found(), reason(found).empty());
      EXPECT_NO_THROW(parse_json("answer", to_json(found)));
    } catch (const InputError&) {  // a pin that nothing can obey
    }
  }
}

TEST(SlowMetamorphic, AnAnswerThatIsStoppedAtAnyMomentIsWhole) {
  std::mt19937_64 random(changing_seed());
  for (int i = 0; i < 100; ++i) {
    const Drawn problem = drawn(4, i);
    std::stop_source stop;
    std::atomic<int> left = static_cast<int>(random() % 40);
    Session session;
    session.stop = stop.get_token();
    const auto sign_of_life = [&] {
      if (left-- <= 0) stop.request_stop();
    };
    session.on_improvement = [&](Seconds) { sign_of_life(); };
    session.on_progress = [&](double) { sign_of_life(); };
    PlanRequest request = request_of(problem);
    if (i % 2) request.source.runs_on = "any";
    SCOPED_TRACE(problem.arguments);
    const PlanAnswer found = answer(request, session);
    EXPECT_NO_THROW(parse_json("answer", to_json(found)));
    if (found.found()) {
      EXPECT_FALSE(as_text(found, {}).empty());
    }
  }
}

}  // namespace
}  // namespace plait
