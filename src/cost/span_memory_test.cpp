#include <gtest/gtest.h>

#include "cost/engine.h"
#include "cost/span_frame.h"
#include "plan/sample_frameworks.h"
#include "plan/sample_problems.h"

namespace plait {
namespace {

constexpr double kMiB = 0x1p20;

Problem problem_of(const char* framework, int devices) {
  Job job;
  job.global_batch = 8;
  job.framework = samples::framework(framework);
  job.attention = AttentionKernel::flash;
  return samples::problem_of(samples::gpt(4, 1024, 16, 1024),
                             samples::cluster_of(samples::a100(), 1, devices), job);
}

SpanFrame::Memory memory_of(const Problem& problem, ZeroStage zero, int data) {
  CostEngine engine(problem);
  PlanSettings settings;
  settings.zero = zero;
  std::vector<DeviceId> ids;
  for (int d = 0; d < data; ++d) ids.push_back(DeviceId(d));
  const SpanFrame frame(
      problem, settings, ids, 1, data, {},
      [&](const ReplicaShape& shape) -> const UnitTable& { return engine.table(shape); });
  return frame.memory(0, {1, 2}, Recompute::none, 0);
}

TEST(SpanMemory, OneDeviceHasNoBuffersForCommunication) {
  EXPECT_EQ(memory_of(problem_of("megatron", 2), ZeroStage::off, 1).fixed.value, 1024 * kMiB);
  EXPECT_EQ(memory_of(problem_of("megatron", 1), ZeroStage::off, 1).fixed.value, 128 * kMiB);
  EXPECT_EQ(memory_of(problem_of("eager", 1), ZeroStage::off, 1).fixed.value, 65 * kMiB);
  // The only device that is rented of several: the plan is one of the whole cluster, too.
  Problem part = problem_of("megatron", 1);
  part.cluster.is_part = true;
  EXPECT_EQ(memory_of(part, ZeroStage::off, 1).fixed.value, 1024 * kMiB);
}

// DDP sums gradients in buckets, which are a second copy of them; ZeRO-1 of other programs has its
// own.
TEST(SpanMemory, BucketsOfReplicasAreACopyOfTheGradients) {
  const double parameters = 12.0 * 1024 * 1024 + 13 * 1024;
  const Problem two = problem_of("eager", 2);
  const double bucket = (memory_of(two, ZeroStage::off, 2).fixed).value - 65 * kMiB;
  EXPECT_DOUBLE_EQ(bucket, 4 * parameters);
  EXPECT_EQ(memory_of(two, ZeroStage::off, 1).fixed.value, 65 * kMiB);
  EXPECT_EQ(memory_of(two, ZeroStage::optimizer, 2).fixed.value, 65 * kMiB);
  EXPECT_EQ(memory_of(problem_of("deepspeed", 2), ZeroStage::off, 2).fixed.value, 1024 * kMiB);
}

// What is kept as it is sent has no gathered copy where nobody sends it.
TEST(SpanMemory, OneDeviceGathersNothing) {
  EXPECT_EQ(memory_of(problem_of("deepspeed", 1), ZeroStage::parameters, 1).workspace.value, 0);
  EXPECT_GT(memory_of(problem_of("deepspeed", 2), ZeroStage::parameters, 2).workspace.value, 0);
  // Of fp32 weights the 16 bits that it computes with are copies, on one device, too.
  EXPECT_GT(memory_of(problem_of("fsdp", 1), ZeroStage::parameters, 1).workspace.value, 0);
}

// A layer's workspace is there while it runs backward: what later layers saved is gone by then.
TEST(SpanMemory, WorkspaceOfAnEarlyLayerIsBesideWhatIsStillSaved) {
  Problem problem = problem_of("megatron", 1);
  const std::string& device = problem.cluster.device_types[0].name;
  problem.profile.compute[{"decoder", device, 1, 1, 0, 0}] = {.forward = Seconds(1),
                                                              .backward = Seconds(2),
                                                              .saved_activations = Bytes(1000),
                                                              .workspace = Bytes(2500)};
  problem.profile.compute[{"head", device, 1, 1, 0, 0}] = {
      .forward = Seconds(1), .backward = Seconds(2), .saved_activations = Bytes(300)};
  ReplicaShape shape;
  const UnitTable table(problem, shape);
  EXPECT_EQ(table.workspace({1, 2}, Recompute::none).value, 2500);
  EXPECT_EQ(table.workspace({1, 5}, Recompute::none).value, 2500);
  EXPECT_EQ(table.workspace({1, 6}, Recompute::none).value, 2200);
}

// DeepSpeed's hooks walk over the modules of a layer in each pass, on one device, too.
TEST(SpanMemory, HooksThatFetchWeightsKeepTheHostBusy) {
  Problem problem = problem_of("deepspeed", 1);
  ReplicaShape shape;
  const auto time = [&](Recompute recompute) {
    return UnitTable(problem, shape).cost({1, 2}, recompute).total().value;
  };
  const double plain = time(Recompute::none);
  const double repeated = time(Recompute::full);
  shape.gathers = true;
  // One sample of 1,024 tokens waits for the host: 2 ms for each of two passes, or of three.
  EXPECT_NEAR(time(Recompute::none) - plain, 2 * 2e-3, 0.5e-3);
  EXPECT_NEAR(time(Recompute::full) - repeated, 3 * 2e-3, 0.5e-3);
}

}  // namespace
}  // namespace plait
