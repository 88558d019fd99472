#include "cost/layer/synchronised.h"

#include <gtest/gtest.h>

#include <cmath>

namespace plait {
namespace {

// Forward of a millisecond a sample on one device, collectives of 0.5 ms, `host` forward and
// backward.
AnalyticSides sides(double host) {
  return [host](const LayerKind&, const Sharding& s) {
    UnitCost unit;
    unit.forward = Seconds(1e-3 * s.samples / s.tensor);
    unit.forward_comm = Seconds(s.tensor > 1 ? 0.5e-3 : 0);
    return LaunchedCost{unit, Seconds(host)};
  };
}

struct Case {
  Profile profile;
  Model model;
  LayerKind kind{.name = "decoder", .ops = {}, .output = 1};
  Sharding sharding;

  void measure(int tensor, double forward) {
    ComputeSample sample;
    sample.forward = Seconds(forward);
    sample.synchronised = sample.communication_inside = true;
    profile.compute[{"decoder", "T4", tensor, 1, 0, 0}] = sample;
  }
  std::optional<Adjustment> explained(double host, int tensor = 1) {
    sharding = {.samples = 1, .tensor = tensor};
    return explain_synchronised({.profile = profile,
                                 .model = model,
                                 .device_type = "T4",
                                 .kind = kind,
                                 .usual = kind,
                                 .sharding = sharding},
                                sides(host));
  }
};

TEST(Synchronised, WhatTheModelExpectsIsLeftAsItIs) {
  Case c;
  // Launch of 1 ms and device of 1 ms: sqrt(2) ms together.
  c.measure(1, std::sqrt(2.0) * 1e-3);
  const auto found = c.explained(2e-3);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->device, 1, 1e-9);
  EXPECT_NEAR(found->host, 1, 1e-9);
  EXPECT_EQ(found->origin.time, Source::interpolated);
}

TEST(Synchronised, ABusyDeviceTakesTheExcess) {
  Case c;
  c.measure(1, 1.5e-3);
  const auto found = c.explained(0.1e-3);  // launch of 0.05 ms is hidden
  EXPECT_NEAR(found->device, 1.5, 1e-2);
}

TEST(Synchronised, AnIdleDeviceLeavesTheExcessToTheHost) {
  Case c;
  c.measure(1, 8e-3);
  const auto found = c.explained(8e-3);  // launch of 4 ms, device of 1 ms
  EXPECT_NEAR(found->host, 2, 0.05);
  // 64 = 16 + 1 + 47, of which the device takes 1 / (1 + 32^2), as its square is so much surer.
  EXPECT_NEAR(found->device, std::sqrt(1 + 47.0 / 1025), 1e-9);
}

TEST(Synchronised, WhatIsLeftWithMoreDevicesIsWaiting) {
  Case c;
  c.measure(1, std::sqrt(2.0) * 1e-3);
  c.measure(2, 3e-3);
  // Launch 1 ms beside device 0.5 ms, collectives 0.5 ms.
  const double explained = std::hypot(1e-3, 0.5e-3) + 0.5e-3;
  EXPECT_NEAR(c.explained(2e-3, 2)->wait.value, 3e-3 - explained, 1e-12);
  EXPECT_EQ(c.explained(2e-3, 1)->wait, Seconds(0));
  // Not measured: as the nearest.
  EXPECT_NEAR(c.explained(2e-3, 4)->wait.value, 3e-3 - explained, 1e-12);
}

TEST(Synchronised, OtherMeasurementsAreNotExplained) {
  Case c;
  EXPECT_FALSE(c.explained(1e-3));
  c.measure(1, 1e-3);
  c.profile.compute.begin()->second.synchronised = false;
  EXPECT_FALSE(c.explained(1e-3));
}

}  // namespace
}  // namespace plait
