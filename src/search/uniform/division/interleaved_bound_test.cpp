#include "search/uniform/division/interleaved_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "cost/pipeline/simulator.h"

namespace plait {
namespace {

struct Drawn {
  InterleavedPipeline pipeline;
  double forward = 0.4;  // of a layer's time
};

Drawn drawn(std::mt19937_64& random) {
  std::uniform_real_distribution<double> any(0, 1);
  Drawn out;
  const int stages = 2 + static_cast<int>(random() % 2);
  InterleavedPipeline& p = out.pipeline;
  p.chunks = 2 + static_cast<int>(random() % 2);
  p.micro_batches = stages * (1 + static_cast<int>(random() % 3));
  p.layers = stages * p.chunks + static_cast<int>(random() % 5);
  out.forward = p.forward_share = 0.2 + 0.3 * any(random);
  p.wrap = 0.3 * any(random);
  for (int s = 0; s < stages; ++s)
    p.stages.push_back({.layer = 0.5 + any(random),
                        .finish = 2 * any(random),
                        .send = s + 1 < stages ? 0.3 * any(random) : 0,
                        .most_layers = p.layers});
  return out;
}

// The step with so many layers on each stage, event by event.
double simulated(const Drawn& drawn, const std::vector<int>& layers) {
  const InterleavedPipeline& p = drawn.pipeline;
  const int stages = static_cast<int>(p.stages.size());
  Pipeline pipeline{.schedule = Schedule::interleaved,
                    .stages = stages,
                    .chunks = p.chunks,
                    .micro_batches = p.micro_batches};
  for (int s = 0; s < stages; ++s)
    for (int c = 0; c < p.chunks; ++c) {
      const int own = layers[s] / p.chunks + (c < layers[s] % p.chunks ? 1 : 0);
      const double time = own * p.stages[s].layer;
      pipeline.time.push_back(
          {Seconds(drawn.forward * time), Seconds((1 - drawn.forward) * time), {}});
    }
  for (int k = 0; k + 1 < stages * p.chunks; ++k)
    pipeline.send.emplace_back(k % stages + 1 < stages ? p.stages[k % stages].send : p.wrap);
  const Trace trace = simulate(pipeline);
  double step = trace.makespan.value;
  for (int s = 0; s < stages; ++s)
    step = std::max(step, trace.stage_end[s].value + layers[s] * p.stages[s].finish);
  return step;
}

double least_step(const Drawn& drawn, std::vector<int>& layers, int left) {
  const InterleavedPipeline& p = drawn.pipeline;
  const std::size_t after = p.stages.size() - layers.size() - 1;
  if (after == 0) {
    if (left < p.chunks) return HUGE_VAL;
    layers.push_back(left);
    const double step = simulated(drawn, layers);
    layers.pop_back();
    return step;
  }
  double best = HUGE_VAL;
  for (int own = p.chunks; own < left; ++own) {
    layers.push_back(own);
    best = std::min(best, least_step(drawn, layers, left - own));
    layers.pop_back();
  }
  return best;
}

// All ways to share out the layers are simulated. The bound is above none, and says something.
TEST(InterleavedBound, IsAboveNoWayToShareOutTheLayers) {
  std::mt19937_64 random(5);
  double mean = 0;
  constexpr int kProblems = 200;
  for (int i = 0; i < kProblems; ++i) {
    const Drawn problem = drawn(random);
    std::vector<int> layers;
    const double best = least_step(problem, layers, problem.pipeline.layers);
    const double bound = interleaved_bound(problem.pipeline, 0).step;
    EXPECT_LE(bound, (1 + 1e-6) * best) << i;
    mean += bound / best / kProblems;
  }
  EXPECT_GT(mean, 0.7);
}

// Whenever it is told to stop.
TEST(InterleavedBound, HoldsWhereverItIsCutShort) {
  std::mt19937_64 random(6);
  for (int i = 0; i < 40; ++i) {
    const Drawn problem = drawn(random);
    std::vector<int> layers;
    const double best = least_step(problem, layers, problem.pipeline.layers);
    for (const int most : {0, 1, 2, 3, 5, 8, 13, 40}) {
      int asked = 0;
      const auto stop = [&] { return ++asked > most; };
      EXPECT_LE(interleaved_bound(problem.pipeline, 0, HUGE_VAL, stop).step, (1 + 1e-6) * best)
          << i << ", " << most;
      EXPECT_LE(asked, most + 1) << i << ", " << most;
    }
  }
}

// A network that is busy for longer than all compute: 3 s for a layer and 1 s beside. Seven of
// eight layers fit on the other stage, so that one is left: 1 + 3 * 1 = 4 s.
TEST(InterleavedBound, IsNoShorterThanTheNetworkIsBusy) {
  InterleavedPipeline pipeline{.layers = 8, .chunks = 2, .micro_batches = 2, .forward_share = 0.5};
  pipeline.stages = {
      {.layer = 0.01, .wire = 3, .wire_of_ends = 1, .most_layers = 8},
      {.layer = 0.01, .most_layers = 7},
  };
  EXPECT_NEAR(interleaved_bound(pipeline, 1).step, 4, 1e-4);
  // What follows the last stage gives it time.
  pipeline.tied = 1.5;
  EXPECT_NEAR(interleaved_bound(pipeline, 1).step, 2.5, 1e-4);
}

}  // namespace
}  // namespace plait
