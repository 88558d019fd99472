#include "cost/op/op_time.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cost/op/kernels.h"
#include "plan/sample_frameworks.h"
#include "plan/sample_problems.h"

namespace plait {
namespace {

using samples::plain_device;

constexpr double kTolerance = 1e-12;

Op matmul_op(Split split, double rows, double inner, double columns) {
  Op op;
  op.kind = OpKind::matmul;
  op.split = split;
  op.rows = rows;
  op.inner = inner;
  op.columns = columns;
  op.forward = Flops(2 * rows * inner * columns);
  op.parameters = inner * columns;
  op.saved = rows * inner;
  return op;
}

// 16 heads of 64, queries and keys of 1024 positions.
Op attention_op(double head = 64) {
  Op op;
  op.kind = OpKind::attention;
  op.split = Split::heads;
  op.rows = op.columns = 1024;
  op.inner = head;
  op.count = op.kv_count = 16;
  op.forward = Flops(4.0 * 16 * 1024 * 1024 * head);
  return op;
}

Job job_with(const char* framework, AttentionKernel attention = AttentionKernel::flash) {
  Job job;
  job.global_batch = 1;
  job.framework = samples::framework(framework);
  job.attention = attention;
  return job;
}

TEST(MatmulTime, IsWorkOverPeakAndOneKernel) {
  // 2 * 1024^3 flops at 100 Tflop/s, and 10 us.
  EXPECT_NEAR(matmul_time(plain_device(), {}, {1024, 1024, 1024}).value,
              2.0 * 1024 * 1024 * 1024 / 100e12 + 10e-6, kTolerance);
}

TEST(MatmulTime, ShortInnerDimensionsAndLastWavesCostExtra) {
  DeviceType d = plain_device();
  d.efficiency.matmul = 0.8;
  d.efficiency.matmul_inner = 256;
  d.efficiency.wave_tail = 0.5;
  // 8 x 8 tiles of 128 x 128 on 100 multiprocessors: 0.64 waves, so half a wave more is 0.78125 of
  // the time; half of k is lost to filling the pipeline.
  const double work = 2.0 * 1024 * 1024 * 512 / (100e12 * 0.8);
  EXPECT_NEAR(matmul_time(d, {}, {1024, 1024, 512}).value, work * 1.5 * 1.78125 + 10e-6,
              kTolerance);
}

TEST(MatmulTime, IsNeverShorterThanMovingItsOperands) {
  // One row times a 4096 x 4096 matrix: 2 bytes for each of 4096^2 + 2 * 4096 values at 1 TB/s.
  EXPECT_NEAR(matmul_time(plain_device(), {}, {1, 4096, 4096}).value,
              2.0 * (4096.0 * 4096 + 8192) / 1e12 + 10e-6, kTolerance);
}

TEST(MatmulTime, Fp8ReadsOneByteAndWritesTwo) {
  const double bytes = 4096.0 * 4096 + 4096 + 2 * 4096;
  EXPECT_NEAR(matmul_time(plain_device(), {DType::fp8, 1}, {1, 4096, 4096}).value,
              bytes / 1e12 + 10e-6, kTolerance);
}

TEST(MatmulTime, OddDimensionsAreSlowAndEvenOnesHalfAsMuch) {
  const DeviceType d = plain_device();
  const Job job = job_with("eager");
  const Model model;
  const auto forward = [&](double columns) {
    const OpTime time =
        op_time(job, model, d, matmul_op(Split::vocabulary, 1024, 1024, columns), {.samples = 1});
    return (time.forward.value - 10e-6) / columns;
  };
  // Slow-down 3 of an odd vocabulary (50257), 2 of one that only 2 divides (50258).
  EXPECT_NEAR(forward(50257) / forward(50256), 3, 1e-9);
  EXPECT_NEAR(forward(50258) / forward(50256), 2, 1e-9);
}

TEST(MatmulTime, MegatronPadsTheVocabulary) {
  const Op logits = matmul_op(Split::vocabulary, 1024, 1024, 50257);
  // To the next multiple of 128 * 4: 50688, of which a device has a quarter.
  EXPECT_EQ(vocabulary_columns(job_with("megatron-lm"), logits, 4), 12672);
  EXPECT_EQ(vocabulary_columns(job_with("fsdp"), logits, 1), 50257);
  Job job = job_with("fsdp");
  job.vocabulary_multiple = 64;
  EXPECT_EQ(vocabulary_columns(job, logits, 1), 50304);
}

TEST(OpTime, ColumnSplitCutsTheOutputAndRowSplitTheInput) {
  const DeviceType d = plain_device();
  const Job job = job_with("megatron-lm");
  const Sharding cut{.samples = 2, .tensor = 4};
  const OpTime column = op_time(job, {}, d, matmul_op(Split::column, 2048, 1024, 4096), cut);
  const OpTime row = op_time(job, {}, d, matmul_op(Split::row, 2048, 4096, 1024), cut);
  // 4096 rows x 1024 x 1024 of each product on a device: forward, input and weight gradient alike.
  const double each = 2.0 * 4096 * 1024 * 1024 / 100e12 + 10e-6;
  for (const OpTime& time : {column, row}) {
    EXPECT_NEAR(time.forward.value, each, kTolerance);
    EXPECT_NEAR(time.backward.value, each, kTolerance);
    EXPECT_NEAR(time.weight_gradient.value, each, kTolerance);
  }
}

TEST(OpTime, ExpertsReceiveTheRowsOfTheirGroup) {
  Op op = matmul_op(Split::experts, 128, 1024, 4096);  // 128 rows for each of 16 experts
  op.count = 16;
  const OpTime time =
      op_time(job_with("fsdp"), {}, plain_device(), op, {.samples = 1, .tensor = 1, .expert = 8});
  // 2 experts a device, 1024 rows each.
  EXPECT_NEAR(time.forward.value, 2 * 2.0 * 1024 * 1024 * 4096 / 100e12 + 10e-6, kTolerance);
}

TEST(OpTime, AdaptersNeedATwentiethOfTheWeightGradients) {
  Job job = job_with("megatron-lm");
  const Op op = matmul_op(Split::column, 2048, 1024, 4096);
  const OpTime all = op_time(job, {}, plain_device(), op, {.samples = 1});
  job.adapters = true;
  const OpTime few = op_time(job, {}, plain_device(), op, {.samples = 1});
  EXPECT_NEAR(few.weight_gradient.value, 0.05 * all.weight_gradient.value, kTolerance);
  EXPECT_EQ(few.backward, all.backward);
}

TEST(OpTime, ConvolutionsReadTheirInputOnce) {
  // 3 x 3 kernel on 64 channels at 100 x 100 positions to one channel: the input of 640,000 values
  // is read once, not nine times, and 10,000 are written: 1.3 MB and 1,152 B of weights.
  Op op = matmul_op(Split::replicated, 10'000, 9 * 64, 1);
  op.kind = OpKind::convolution;
  op.moved = 650'000;
  const OpTime time = op_time(job_with("fsdp"), {}, plain_device(), op, {.samples = 1});
  const double work = 2.0 * 10'000 * 576 / 100e12 * 3 / 0.42;  // odd: one output channel
  const double floor = 2.0 * (650'000 + 576) / 1e12;
  // Read and written once more in another layout, by three kernels.
  const double conversion = 2 * floor + 3 * 10e-6;
  EXPECT_NEAR(time.forward.value, std::max(work, floor) + 10e-6 + conversion, kTolerance);
}

TEST(FlashAttention, CausalHalvesTheWorkAndBackwardTakesTwoAndAHalfTimes) {
  Model model;
  model.causal = true;
  const OpTime time =
      op_time(job_with("fsdp"), model, plain_device(), attention_op(), {.samples = 2});
  // Half of 4 * 16 * 1024^2 * 64 flops for 2 samples; the layout adds three kernels to each pass.
  const double work = 4.0 * 16 * 1024 * 1024 * 64 / 100e12;
  EXPECT_NEAR(time.forward.value, work + 4 * 10e-6, kTolerance);
  EXPECT_NEAR(time.backward.value, 2.5 * work + 5 * 10e-6, kTolerance);
}

TEST(FlashAttention, ALearntBiasTakesASlowerKernelWhereTheProgramHasNoSoftmaxOfItsOwn) {
  Op op = attention_op();
  const auto time = [&](const char* framework) {
    return op_time(job_with(framework), {}, plain_device(), op, {.samples = 2});
  };
  const OpTime before = time("fsdp");
  const OpTime fused = time("megatron");
  op.learnt_bias = true;
  // 2.5 times the kernel forward, without the three kernels of the layout; backward moves 4 bytes
  // of each of 2 * 16 * 1024^2 scores besides.
  const double kernel = before.forward.value - 3 * 10e-6;
  EXPECT_NEAR(time("fsdp").forward.value, 2.5 * kernel + 3 * 10e-6, kTolerance);
  EXPECT_GT(time("fsdp").backward.value, before.backward.value + 4 * 2 * 16 * 1024.0 * 1024 / 1e12);
  EXPECT_EQ(time("megatron").forward, fused.forward);
}

TEST(FlashAttention, NativeKernelsCountAHeadAsAtLeast96Wide) {
  const Model model;
  const DeviceType d = plain_device();
  const auto forward = [&](const char* framework, double head) {
    return op_time(job_with(framework), model, d, attention_op(head), {.samples = 1}).forward.value;
  };
  const double work = 4.0 * 16 * 1024 * 1024 * 64 / 100e12;
  EXPECT_NEAR(forward("megatron", 64) - forward("fsdp", 64), work * 0.5, 1e-9);
  EXPECT_NEAR(forward("megatron", 128), forward("fsdp", 128), kTolerance);
}

TEST(FlashAttention, TheGenerationOfTheKernelsIsThatOfTheSoftware) {
  const Model model;
  DeviceType d = plain_device();
  d.efficiency.portable_attention = 0.5;
  d.efficiency.early_attention = 0.8;
  Job job = job_with("megatron");
  const auto forward = [&](std::optional<FlashKernel> kernel) {
    job.flash_kernel = kernel;
    return op_time(job, model, d, attention_op(128), {.samples = 1}).forward.value;
  };
  // 4 * 16 * 1024^2 * 128 flops at the peak, at a half and at 0.4 of it; the rest is alike.
  const double work = 4.0 * 16 * 1024 * 1024 * 128 / 100e12;
  const double native = forward(FlashKernel::native);
  EXPECT_NEAR(forward(std::nullopt), native, kTolerance);
  EXPECT_NEAR(forward(FlashKernel::second) - native, work, 1e-9);
  EXPECT_NEAR(forward(FlashKernel::first) - native, 1.5 * work, 1e-9);
}

TEST(PlainAttention, ReadsAndWritesTheScoresBetweenItsProducts) {
  const Job job = job_with("megatron-lm", AttentionKernel::plain);
  const OpTime time = op_time(job, {}, plain_device(), attention_op(128), {.samples = 1});
  // Scores: 16 * 1024^2 of 2 bytes, 33.55 MB. A product of 2 * 16 * 1024^2 * 128 flops takes
  // 42.9 us, longer than writing the scores.
  const double scores = 2.0 * 16 * 1024 * 1024 / 1e12;
  const double product = 2.0 * 16 * 1024 * 1024 * 128 / 100e12 + 10e-6;
  EXPECT_NEAR(time.forward.value, 2 * product + 4.5 * scores + 5 * 10e-6, kTolerance);
  EXPECT_NEAR(time.backward.value, 4 * product + 5.5 * scores + 5 * 10e-6, kTolerance);
}

TEST(PlainAttention, SoftmaxIsFusedForFourHeadsAndUpTo4096KeysIn16Bits) {
  const DeviceType d = plain_device();
  Job job = job_with("megatron-deepspeed", AttentionKernel::plain);
  const auto host = [&](const Op& op, int tensor) {
    return op_time(job, {}, d, op, {.samples = 1, .tensor = tensor}).host.value;
  };
  const double fused = host(attention_op(), 4);  // 4 heads on a device
  EXPECT_NEAR(host(attention_op(), 8) - fused, 1.52e-3, kTolerance);
  Op longer = attention_op();
  longer.columns = 8192;
  EXPECT_NEAR(host(longer, 4) - fused, 1.52e-3, kTolerance);
  // In fp32 it is never fused, but nothing is converted either.
  job.precision = Precision::tf32;
  EXPECT_NEAR(host(attention_op(), 4), fused, kTolerance);
}

TEST(PlainAttention, HeadsThat8DoesNotDivideMissTheTensorCores) {
  const Job job = job_with("megatron-lm", AttentionKernel::plain);
  const auto forward = [&](double head) {
    return op_time(job, {}, plain_device(), attention_op(head), {.samples = 1}).forward.value;
  };
  // A tenth of the rate, for two products of 2 * 16 * 1024^2 * 150 flops.
  const double product = 2.0 * 16 * 1024 * 1024 * 150 / 10e12 + 10e-6;
  const double scores = 2.0 * 16 * 1024 * 1024 / 1e12;
  EXPECT_NEAR(forward(150), 2 * product + 4.5 * scores + 5 * 10e-6, kTolerance);
}

TEST(MemoryBound, BackwardReadsWhatWasSavedOnceMore) {
  Op norm;
  norm.kind = OpKind::norm;
  norm.rows = 1024;
  norm.columns = 1024;
  norm.moved = 2 * 1024 * 1024;
  norm.saved = 1024 * 1024;
  const Job job = job_with("megatron-lm");
  const OpTime time = op_time(job, {}, plain_device(), norm, {.samples = 1});
  // 2 passes forward; backward the gradient, the input, the result and the residual's gradient.
  const double pass = 2.0 * 1024 * 1024 / 1e12;
  EXPECT_NEAR(time.forward.value, 2 * pass + 10e-6, kTolerance);
  EXPECT_NEAR(time.backward.value, 4 * pass + 10e-6, kTolerance);
  // Replicated work is cut by sequence parallelism only.
  const OpTime whole = op_time(job, {}, plain_device(), norm, {.samples = 1, .tensor = 4});
  const OpTime cut = op_time(job, {}, plain_device(), norm,
                             {.samples = 1, .tensor = 4, .sequence_parallel = true});
  EXPECT_EQ(whole.forward, time.forward);
  EXPECT_NEAR(cut.forward.value, 0.5 * pass + 10e-6, kTolerance);
}

TEST(Loss, MovesTheFrameworksBytesPerLogit) {
  Op loss;
  loss.kind = OpKind::loss;
  loss.split = Split::vocabulary;
  loss.rows = 1024;
  loss.columns = 51200;
  const OpTime time = op_time(job_with("megatron-lm"), {}, plain_device(), loss, {.samples = 2});
  // 20.6 B for 2 * 1024 * 51200 logits, 8 kernels and 0.5 ms of host time, half in each pass.
  const double both = 20.6 * 2048 * 51200 / 1e12 + 8 * 10e-6 + 0.5e-3;
  EXPECT_NEAR(time.forward.value, both / 2, kTolerance);
  EXPECT_NEAR(time.backward.value, both / 2, kTolerance);
}

TEST(Host, SmallProductsAreSplitAndLaunchTwice) {
  const Job job = job_with("megatron-deepspeed");
  const DeviceType d = plain_device();
  const auto host = [&](double rows, double inner, double columns) {
    return op_time(job, {}, d, matmul_op(Split::column, rows, inner, columns), {.samples = 1})
        .host.value;
  };
  // A fifth of a block's host time; 1024 x 1024 results are 64 tiles for 100 multiprocessors.
  EXPECT_NEAR(host(2048, 2048, 2048), 2.822e-3 / 5, kTolerance);
  EXPECT_NEAR(host(1024, 1024, 1024), 2.822e-3 / 5 + 3 * 20.3e-6, kTolerance);
}

}  // namespace
}  // namespace plait
