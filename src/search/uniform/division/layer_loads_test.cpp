#include "search/uniform/division/layer_loads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cost/engine.h"
#include "plan/sample_problems.h"
#include "search/space/units/units_recomputed.h"

namespace plait {
namespace {

constexpr int kLoadLayers = 9;
constexpr int kLoadStages = 3;

// A GPT of nine layers, whose head is tied to its embedding, over three devices of so much memory.
struct TightPipeline {
  explicit TightPipeline(double gibibytes)
      : problem(samples::problem_of(small_vocabulary(),
                                    samples::cluster_of(device_with(gibibytes), 1, kLoadStages),
                                    Job{.global_batch = 64})),
        engine(problem),
        tied(problem.model),
        tables(
            [this](const ReplicaShape& shape) -> const UnitTable& { return engine.table(shape); }),
        frame(problem, {.micro_batches = 8}, devices, 1, 1, {}, tables) {}

  // With a large one the head alone would be the busiest stage.
  static TransformerConfig small_vocabulary() {
    TransformerConfig config = samples::gpt(kLoadLayers, 1024, 16, 1024);
    config.vocabulary = 2048;
    return config;
  }
  static DeviceType device_with(double gibibytes) {
    DeviceType device = samples::a100();
    device.memory = Bytes(gibibytes * 0x1p30);
    return device;
  }

  std::vector<LayerLoad> loads() const {
    std::vector<LayerLoad> all;
    for (int s = 0; s < kLoadStages; ++s)
      all.push_back(layer_load({.frame = frame,
                                .tied = tied,
                                .live = 1.0 * (kLoadStages - s),
                                .has_first = s == 0,
                                .has_last = s + 1 == kLoadStages,
                                .units = kLoadLayers + 2,
                                .most_time = HUGE_VAL}));
    return all;
  }

  // What a stage of these units takes, or infinity where it does not fit.
  double time(const UnitRange& units, int stage, int first) const {
    const UnitsRecomputed::Runs runs = first_layers(problem.model, units, first).of(units);
    const bool is_full =
        frame.memory(0, runs, tied.of(units)).spare(kLoadStages - stage) < Bytes(0);
    return is_full ? HUGE_VAL : frame.time(runs).total().value;
  }

  // The least over all cuts, one by one.
  double busiest(int first) const {
    double least = HUGE_VAL;
    const int units = kLoadLayers + 2;
    for (int a = 1; a < units - 1; ++a)
      for (int b = a + 1; b < units; ++b)
        least = std::min(least, std::max({time({0, a}, 0, first), time({a, b}, 1, first),
                                          time({b, units}, 2, first)}));
    return least;
  }

  const std::vector<DeviceId> devices{DeviceId{0}};
  Problem problem;
  CostEngine engine;
  TiedCopies tied;
  TableSource tables;
  SpanFrame frame;
};

TEST(LayerLoads, BoundTheBusiestStageOfEveryCut) {
  int tight = 0;
  int impossible = 0;
  for (double gibibytes = 1; gibibytes <= 8; gibibytes += 0.125) {
    const TightPipeline pipeline(gibibytes);
    const std::vector<LayerLoad> loads = pipeline.loads();
    for (int first = 0; first <= kLoadLayers; ++first) {
      const double least = pipeline.busiest(first);
      const double bound = least_busiest(loads, kLoadLayers, first, HUGE_VAL);
      EXPECT_LE(bound, least * (1 + 1e-9)) << gibibytes << " GiB, " << first;
      if (!std::isfinite(least)) ++impossible;
      if (std::isfinite(least) && first > 0 && !std::isfinite(pipeline.busiest(first - 1))) {
        EXPECT_GE(bound, 0.99 * least) << gibibytes << " GiB, " << first;
        ++tight;
      }
    }
  }
  EXPECT_GE(tight, 3);
  EXPECT_GE(impossible, 3);
}

TEST(LayerLoads, AreInfiniteWhereNothingIsFastEnough) {
  const TightPipeline pipeline(80);
  const double least = pipeline.busiest(0);
  EXPECT_LE(least_busiest(pipeline.loads(), kLoadLayers, 0, 1.01 * least), least * (1 + 1e-9));
  EXPECT_EQ(least_busiest(pipeline.loads(), kLoadLayers, 0, 0.9 * least), HUGE_VAL);
}

}  // namespace
}  // namespace plait
