#include "search/space/least_recompute.h"

#include <gtest/gtest.h>

#include "cost/engine.h"
#include "plan/sample_problems.h"

namespace plait {
namespace {

// A GPT of six layers with plain attention on one A100 with so much memory, eight micro-batches.
struct ShortOfMemory {
  explicit ShortOfMemory(double gibibytes)
      : problem(samples::problem_of(samples::gpt(6, 1024, 16, 1024),
                                    samples::cluster_of(device_with(gibibytes), 1, 1), job())),
        engine(problem),
        space(problem, {}),
        tables(
            [this](const ReplicaShape& shape) -> const UnitTable& { return engine.table(shape); }),
        frame(problem, settings(), devices, 1, 1, {}, tables) {}

  static DeviceType device_with(double gibibytes) {
    DeviceType device = samples::a100();
    device.memory = Bytes(gibibytes * 0x1p30);
    return device;
  }
  static Job job() {
    Job job;
    job.global_batch = 64;
    job.attention = AttentionKernel::plain;
    return job;
  }
  static PlanSettings settings() {
    PlanSettings settings;
    settings.micro_batches = 8;
    return settings;
  }

  // The least time over all pairs of numbers, one by one.
  Seconds least_time(const RunInFlight& run) const {
    Seconds least(HUGE_VAL);
    for (int full = 0; full <= run.units.size(); ++full)
      for (int selective = 0; full + selective <= run.units.size(); ++selective) {
        const UnitsRecomputed recompute{full, selective};
        if (fits(space, frame, run, recompute)) least = std::min(least, time(run, recompute));
      }
    return least;
  }
  Seconds time(const RunInFlight& run, const UnitsRecomputed& recompute) const {
    return frame.time(recompute.of(run.units)).total();
  }

  const std::vector<DeviceId> devices{DeviceId{0}};
  Problem problem;
  CostEngine engine;
  Space space;
  TableSource tables;
  SpanFrame frame;
};

TEST(LeastRecompute, TakesTheLeastTimeThatFits) {
  int mixed = 0;
  int impossible = 0;
  for (double gibibytes = 2; gibibytes <= 40; gibibytes += 0.5) {
    const ShortOfMemory ground(gibibytes);
    ASSERT_EQ(ground.space.recomputes().size(), 3u);
    for (const UnitRange& units : {UnitRange{0, 8}, UnitRange{0, 4}, UnitRange{2, 6}}) {
      const RunInFlight run{units, 2};
      const auto chosen = least_recompute(ground.space, ground.frame, run);
      const Seconds least = ground.least_time(run);
      ASSERT_EQ(chosen.has_value(), std::isfinite(least.value)) << gibibytes;
      if (!chosen) {
        ++impossible;
        continue;
      }
      EXPECT_TRUE(fits(ground.space, ground.frame, run, *chosen));
      EXPECT_LE(ground.time(run, *chosen).value, least.value * (1 + 1e-12)) << gibibytes;
      mixed += chosen->of(units).count > 1 ? 1 : 0;
    }
  }
  EXPECT_GT(mixed, 10);
  EXPECT_GT(impossible, 0);
}

TEST(LeastRecompute, RecomputesNothingWhereAllFits) {
  const ShortOfMemory ground(80);
  const auto chosen = least_recompute(ground.space, ground.frame, {{0, 8}, 1});
  EXPECT_EQ(chosen, UnitsRecomputed{});
}

TEST(LeastRecompute, SaysThatAllIsRecomputedWhereOnlyTheHeadIsLeft) {
  // Seven units are the embedding and all layers.
  for (double gibibytes = 2; gibibytes <= 40; gibibytes += 0.25) {
    const ShortOfMemory ground(gibibytes);
    const auto chosen = least_recompute(ground.space, ground.frame, {{0, 8}, 2});
    if (!chosen) continue;
    const UnitsRecomputed::Runs runs = chosen->of({0, 8});
    EXPECT_NE(runs.list[runs.count - 1].units, (UnitRange{7, 8})) << gibibytes;
  }
}

TEST(UnitsRecomputed, FirstLayersAreCountedFromTheFirstLayer) {
  const ShortOfMemory ground(80);
  const Model& model = ground.problem.model;
  // The embedding is recomputed with the layers after it; it costs nothing.
  EXPECT_EQ(first_layers(model, {0, 8}, 2), (UnitsRecomputed{3, 0}));
  EXPECT_EQ(first_layers(model, {1, 8}, 2), (UnitsRecomputed{2, 0}));
  EXPECT_EQ(first_layers(model, {0, 8}, 0), (UnitsRecomputed{}));
  EXPECT_EQ(first_layers(model, {0, 8}, 6), UnitsRecomputed::all(Recompute::full));
  EXPECT_EQ(first_layers(model, {7, 8}, 6), (UnitsRecomputed{}));
}

}  // namespace
}  // namespace plait
