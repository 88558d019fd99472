#include "monotone/pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "plan/names.h"
#include "second_opinion/mixed_problem.h"

namespace plait::monotone {
namespace {

using Random = std::mt19937_64;

// A copy of a node, with its devices, at the end.
void add_node(Cluster& cluster, int node) {
  const int added = static_cast<int>(cluster.nodes.size());
  cluster.nodes.push_back(cluster.nodes[node]);
  cluster.nodes.back().name += "-more";
  const std::vector<Device> devices = cluster.devices;
  for (const Device& device : devices)
    if (device.node == node) cluster.devices.push_back({device.type, added});
}

std::string random_pin(Random& random, int batch, Pins& pins) {
  switch (random() % 5) {
    case 0: {
      const int tensor = 1 << random() % 4;
      pins.tensor = tensor;
      return fmt::format("--tp {}", tensor);
    }
    case 1: {
      const int stages = 1 + static_cast<int>(random() % 16);
      pins.pipeline = stages;
      return fmt::format("--pp {}", stages);
    }
    case 2: {
      int micro_batches = 1 << random() % 8;
      while (batch % micro_batches != 0) micro_batches /= 2;
      pins.micro_batches = micro_batches;
      return fmt::format("--micro-batches {}", micro_batches);
    }
    case 3: {
      const auto schedule = static_cast<Schedule>(1 + random() % 5);
      pins.schedule = schedule;
      return fmt::format("--schedule {}", name_of(schedule));
    }
    default: {
      const auto zero = static_cast<ZeroStage>(random() % 2);
      pins.zero = zero;
      return fmt::format("--zero {}", name_of(zero));
    }
  }
}

}  // namespace

std::vector<Pair> pairs_of(std::uint64_t seed, int most_devices, const Target& target) {
  Random random(seed);
  const second_opinion::MixedProblem mixed = second_opinion::mixed_problem(seed, most_devices);
  const Problem& problem = mixed.problem;
  std::vector<Pair> pairs;
  // The side that is to be changed.
  const auto add = [&](const char* kind, const std::string& change, Side Pair::*changed) -> Side& {
    const Side side{.problem = problem, .target = target};
    pairs.push_back({kind, mixed.arguments + "; " + change, side, side});
    Side& own = pairs.back().*changed;
    own.as_drawn = false;
    return own;
  };
  const Cluster& cluster = problem.cluster;
  const auto node = static_cast<int>(random() % cluster.nodes.size());
  add_node(add("one more node", fmt::format("node {} twice", node), &Pair::better).problem.cluster,
           node);

  const auto type = random() % cluster.device_types.size();
  DeviceType& larger =
      add("more memory", cluster.device_types[type].name + " with half as much again",
          &Pair::better)
          .problem.cluster.device_types[type];
  larger.memory = 1.5 * larger.memory;

  for (Node& own :
       add("faster network", "twice as fast between nodes", &Pair::better).problem.cluster.nodes)
    own.uplink.bandwidth = 2 * own.uplink.bandwidth;
  for (Node& own :
       add("faster links", "twice as fast inside nodes", &Pair::better).problem.cluster.nodes)
    own.intra.bandwidth = 2 * own.intra.bandwidth;

  add("larger batch", "twice the batch", &Pair::better).problem.job.global_batch *= 2;
  pairs.back().scale = 2;

  Pins pins;
  const std::string pin = random_pin(random, problem.job.global_batch, pins);
  if (!violation_of(problem, pins, target)) add("one pin fewer", pin, &Pair::worse).pins = pins;

  add("more effort", "normal after quick", &Pair::worse).effort = Effort::quick;
  add("more effort", "thorough after normal", &Pair::better).effort = Effort::thorough;
  return pairs;
}

Pair recompute_pair(std::uint64_t seed, int most_devices, const Target& target) {
  second_opinion::MixedProblem mixed = second_opinion::mixed_problem(seed, most_devices);
  Random random(seed);
  // What a device must hold of the model's state if all is cut over all devices, and as much again
  // for the rest, or a little more.
  const double state = 18 * mixed.problem.model.parameters() / mixed.problem.cluster.device_count();
  const double part = 1.5 + static_cast<double>(random() % 100) / 50;
  mixed.problem.job.memory_limit = Bytes(part * state + 3e9);
  const Side side{.problem = mixed.problem, .target = target};
  Pair pair{"recompute by layer",
            fmt::format("{} --memory-limit {:.0f}MB", mixed.arguments,
                        mixed.problem.job.memory_limit.value / 1e6),
            side, side};
  pair.worse.target.recompute_layers = RecomputeLayers::same;
  return pair;
}

std::optional<RankedPlan> best_plan(const Side& side) {
  SearchContext context{side.problem, {.keep = 1}, {}, {}, {}};
  context.options.pins = side.pins;
  context.options.effort = side.effort;
  context.options.target = side.target;
  context.options.time_limit = Seconds(HUGE_VAL);  // on a busy machine, too
  const SearchResult result = run_search(planners().front(), context);
  if (result.plans.empty()) return std::nullopt;
  return result.plans.front();
}

Seconds best_step(const Side& side) {
  const std::optional<RankedPlan> plan = best_plan(side);
  return plan ? plan->cost.step : Seconds(HUGE_VAL);
}

double excess(Seconds worse, Seconds better, double scale) {
  if (!std::isfinite(worse.value)) return 0;
  return better / (scale * worse) - 1;
}

}  // namespace plait::monotone
