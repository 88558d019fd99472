#include "cost/resharding.h"

#include <gtest/gtest.h>

#include "cost/comm/collectives.h"
#include "model/op_cuts.h"
#include "plan/sample_problems.h"

namespace plait {
namespace {

constexpr double kHidden = 512;
constexpr double kTokens = 256;
constexpr double kSamples = 4;  // of a micro-batch
constexpr double kBytes = 2;    // bf16

class SplitChanges : public testing::Test {
 protected:
  SplitChanges() {
    Job job;
    job.global_batch = 8;
    problem_ = samples::problem_of(samples::gpt(1, 512, 8, 256),
                                   samples::cluster_of(samples::a100(), 1, 4), job);
    problem_.model = at_op_granularity(problem_.model);
    for (int d = 0; d < 4; ++d) devices_.push_back(DeviceId(d));
    group_ = group_of(problem_.cluster, devices_);
  }
  int unit(const std::string& name) const {
    for (int u = 0; u < problem_.model.unit_count(); ++u)
      if (problem_.model.unit(u).name.ends_with(name)) return u;
    return -1;
  }
  Span span(int unit, int split, Recompute recompute = Recompute::none) const {
    return {
        .units = {unit, unit + 1}, .tensor = 4, .data = 1, .split = split, .recompute = recompute};
  }
  // From the op of this name to the next one.
  Resharding after(const std::string& name, int split, int next_split,
                   Recompute recompute = Recompute::none) const {
    const int u = unit(name);
    const PlanSettings settings{.micro_batches = 2};
    return resharding(problem_, settings, devices_, span(u, split, recompute),
                      span(u + 1, next_split, recompute));
  }
  Bytes tensor(double features) const { return Bytes(kBytes * kSamples * kTokens * features); }

  Problem problem_;
  std::vector<DeviceId> devices_;
  Group group_;
};

TEST_F(SplitChanges, UsualCutsMeetForNothing) {
  for (int u = 0; u + 1 < problem_.model.unit_count(); ++u) {
    const Resharding time =
        resharding(problem_, {.micro_batches = 2}, devices_, span(u, 0), span(u + 1, 0));
    EXPECT_EQ(time.forward, Seconds(0)) << u;
    EXPECT_EQ(time.backward, Seconds(0)) << u;
  }
}

// Cut by input, the first product of the MLP takes its part of the norm's result for nothing; its
// partial sums become features by a reduce-scatter. Both gradients are gathered.
TEST_F(SplitChanges, AProductCutByInputScattersItsSums) {
  const Resharding in = after("mlp.norm", 0, 1);
  EXPECT_EQ(in.forward, Seconds(0));
  EXPECT_DOUBLE_EQ(in.backward.value, all_gather(group_, tensor(kHidden)).value);
  const Resharding out = after("mlp.up", 1, 0);
  EXPECT_DOUBLE_EQ(out.forward.value, reduce_scatter(group_, tensor(4 * kHidden)).value);
  EXPECT_DOUBLE_EQ(out.backward.value, all_gather(group_, tensor(4 * kHidden)).value);
}

// Cut by output, the second product gathers its input, whose gradients are added up and cut; what
// it leaves is gathered, and of its gradient each device takes its part for nothing.
TEST_F(SplitChanges, AProductCutByOutputGathers) {
  const Resharding in = after("mlp.activation", 0, 1);
  EXPECT_DOUBLE_EQ(in.forward.value, all_gather(group_, tensor(4 * kHidden)).value);
  EXPECT_DOUBLE_EQ(in.backward.value, reduce_scatter(group_, tensor(4 * kHidden)).value);
  const Resharding out = after("mlp.down", 1, 0);
  EXPECT_DOUBLE_EQ(out.forward.value, all_gather(group_, tensor(kHidden)).value);
  EXPECT_EQ(out.backward, Seconds(0));
}

TEST_F(SplitChanges, RecomputeRepeatsTheForwardChange) {
  const Resharding once = after("mlp.up", 1, 0);
  const Resharding again = after("mlp.up", 1, 0, Recompute::full);
  EXPECT_EQ(again.forward, once.forward);
  EXPECT_DOUBLE_EQ(again.backward.value, (once.backward + once.forward).value);
}

// With sequence parallelism the stream is cut by position: what was free is an exchange.
TEST_F(SplitChanges, PositionsAreExchangedForFeatures) {
  const int u = unit("mlp.norm");
  const PlanSettings settings{.micro_batches = 2, .sequence_parallel = true};
  const Resharding in = resharding(problem_, settings, devices_, span(u, 0), span(u + 1, 1));
  EXPECT_DOUBLE_EQ(in.forward.value, all_to_all(group_, tensor(kHidden) / 4, {}).value);
  EXPECT_DOUBLE_EQ(in.backward.value, in.forward.value);
}

TEST_F(SplitChanges, MeasuredCurvesComeFirst) {
  const Bytes size = tensor(4 * kHidden);
  problem_.profile.collectives[{.collective = "reduce_scatter",
                                .device_type = problem_.cluster.device_types[0].name,
                                .nodes = 1,
                                .devices_per_node = 4}] = {{.size = size, .time = Seconds(0.25)}};
  EXPECT_DOUBLE_EQ(after("mlp.up", 1, 0).forward.value, 0.25);
}

}  // namespace
}  // namespace plait
