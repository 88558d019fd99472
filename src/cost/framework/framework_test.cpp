#include "cost/framework/framework.h"

#include <gtest/gtest.h>

#include "plan/sample_frameworks.h"

namespace plait {
namespace {

Job job_of(const char* framework, Precision precision = Precision::bf16) {
  Job job;
  job.framework = samples::framework(framework);
  job.precision = precision;
  return job;
}

double sum(const StateBytes& state) { return state.weight + state.gradient + state.optimizer; }

TEST(StateBytes, AdamInMixedPrecisionKeepsSixteenOrEighteenBytes) {
  // 2 weight + 4 gradient + 12 optimizer (Megatron); gradients of 2 bytes in DeepSpeed.
  EXPECT_EQ(sum(state_bytes(job_of("megatron"))), 18);
  EXPECT_EQ(sum(state_bytes(job_of("megatron-deepspeed"))), 16);
  EXPECT_EQ(state_bytes(job_of("megatron-deepspeed")).sharded_gradient, 4);
}

TEST(StateBytes, Fp32WeightsAreTheirOwnMasterCopy) {
  EXPECT_EQ(sum(state_bytes(job_of("eager"))), 4 + 4 + 8);
  EXPECT_EQ(sum(state_bytes(job_of("fsdp"), true)), 4 + 4 + 8);
  EXPECT_EQ(sum(state_bytes(job_of("fsdp", Precision::fp32))), 4 + 4 + 8);
  // Weights in 16 bits, the other 16 of their master copy, and two moments of 16.
  EXPECT_EQ(sum(state_bytes(job_of("automodel"), true)), 2 + 2 + (2 + 2 * 2));
  Job adapters = job_of("fsdp");
  adapters.adapters = true;
  EXPECT_EQ(state_bytes(adapters, true).weight, 2);
  EXPECT_EQ(sum(state_bytes(job_of("eager", Precision::pure_bf16))), 2 + 2 + 4);
}

TEST(StateBytes, OptimizersKeepTheirSlots) {
  Job job = job_of("megatron");
  job.optimizer = Optimizer::momentum;
  EXPECT_EQ(state_bytes(job).optimizer, 8);
  job.optimizer = Optimizer::sgd;
  EXPECT_EQ(state_bytes(job).optimizer, 4);
}

TEST(StateBytes, GradientsCanBeStated) {
  Job job = job_of("megatron");
  job.gradient_bytes = 2;
  EXPECT_EQ(state_bytes(job).gradient, 2);
  EXPECT_EQ(state_bytes(job).sent_gradient, 2);
}

TEST(StateBytes, EightBitMomentsHaveAByteAndAScaleForEach256) {
  Job job = job_of("megatron");
  job.optimizer = Optimizer::adam8bit;
  // The master copy of 4 bytes, and two moments of 1 + 4 / 256.
  EXPECT_EQ(state_bytes(job).optimizer, 4 + 2 * (1 + 4 / 256.0));
  EXPECT_EQ(optimizer_traffic(job), 12 + 4 * (1 + 4 / 256.0));
  job.precision = Precision::pure_bf16;
  EXPECT_EQ(state_bytes(job).optimizer, 2 * (1 + 4 / 256.0));
}

TEST(HostUpdate, MovesThirtyBytesAParameter) {
  // Gradient 4, master 8, two moments 16, weight 2.
  EXPECT_EQ(host_update_traffic(job_of("megatron")), 30);
}

TEST(UsableMemory, IsTheLimitOrWhatTheReserveLeaves) {
  Job job;
  DeviceType device;
  device.memory = Bytes(100);
  EXPECT_DOUBLE_EQ(usable_memory(job, device).value, 94);
  job.reserved = Bytes(10);
  EXPECT_EQ(usable_memory(job, device).value, 90);
  job.memory_limit = Bytes(50);
  EXPECT_EQ(usable_memory(job, device).value, 50);
  job.memory_limit = Bytes(95);
  EXPECT_EQ(usable_memory(job, device).value, 90);
}

TEST(OptimizerTraffic, MixedAdamMovesTwentyEightBytes) {
  // Gradient 2, master and two moments read and written 3 * 8, weight 2.
  EXPECT_EQ(optimizer_traffic(job_of("megatron")), 28);
  EXPECT_EQ(optimizer_traffic(job_of("eager", Precision::pure_bf16)), 18);
}

TEST(Traits, WithoutOverlapAllCommunicationIsExposed) {
  Job job = job_of("megatron");
  EXPECT_EQ(traits_of(job).tensor_exposed, 0);
  EXPECT_EQ(traits_of(job).data_exposed, 0);
  job.overlap = false;
  EXPECT_EQ(traits_of(job).tensor_exposed, 1);
  EXPECT_EQ(traits_of(job).tensor_backward, 1);
  EXPECT_EQ(traits_of(job).data_exposed, 1);
}

TEST(Traits, BytesOfALogitCanBeStated) {
  Job job;
  job.framework = samples::framework("fsdp");
  EXPECT_EQ(traits_of(job).logit_bytes, 12);
  job.logit_bytes = 4;
  EXPECT_EQ(traits_of(job).logit_bytes, 4);
}

TEST(Traits, Fp8LeavesAttentionAndTheOutputLayerIn16Bits) {
  EXPECT_EQ(compute_dtype(Precision::fp8), DType::fp8);
  EXPECT_EQ(attention_dtype(Precision::fp8), DType::bf16);
  EXPECT_EQ(attention_dtype(Precision::tf32), DType::tf32);
}

}  // namespace
}  // namespace plait
