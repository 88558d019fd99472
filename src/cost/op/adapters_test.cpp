#include "cost/op/adapters.h"

#include <gtest/gtest.h>

#include "cost/engine.h"
#include "plan/sample_frameworks.h"
#include "plan/sample_problems.h"

namespace plait {
namespace {

Job lora(int rank) {
  Job job;
  job.global_batch = 8;
  job.framework = samples::framework("megatron");
  job.adapters = true;
  job.adapter_rank = rank;
  return job;
}

Op product(Split split, double inner, double columns, double matrices = 1) {
  Op op;
  op.kind = OpKind::matmul;
  op.split = split;
  op.rows = 2048;
  op.inner = inner;
  op.columns = columns;
  op.matrices = matrices;
  op.parameters = inner * columns;
  op.forward = Flops(2 * op.rows * inner * columns);
  return op;
}

TEST(Adapters, HaveRankTimesInputAndOutputParameters) {
  // A [1024 x 16] and B [16 x 4096]; queries, keys and values have an A each.
  EXPECT_EQ(adapter_parameters(lora(16), product(Split::column, 1024, 4096), {}),
            16 * (1024 + 4096));
  EXPECT_EQ(adapter_parameters(lora(16), product(Split::column, 1024, 4096, 3), {}),
            16 * (3 * 1024 + 4096));
  EXPECT_EQ(adapter_parameters(lora(16), product(Split::vocabulary, 1024, 50000), {}), 0);
  EXPECT_EQ(adapter_parameters(lora(0), product(Split::column, 1024, 4096), {}), 0);
}

// QLoRA: 4 bits, 8 bits for a scale of 64 values and 32 for one of 64 x 256: 0.516 bytes of 2.
TEST(Adapters, StandBesideWeightsOfFourBits) {
  Job job = lora(16);
  job.four_bit_weights = true;
  const double bytes = (4 + 8.0 / 64 + 32.0 / (64 * 256)) / 8;
  EXPECT_DOUBLE_EQ(stored_share(job, product(Split::column, 1024, 4096)), bytes / 2);
  EXPECT_EQ(stored_share(job, product(Split::vocabulary, 1024, 50000)), 1);
  EXPECT_EQ(stored_share(lora(16), product(Split::column, 1024, 4096)), 1);
  const Model model = build_transformer(samples::gpt(4, 1024, 16, 1024));
  // Products of a layer, 1024 x (3072 + 1024 + 4096 + 4096) without biases, are all that shrinks.
  const double shrunk = model.parameters() - stored_parameters(model, job);
  EXPECT_NEAR(shrunk, 4 * 1024.0 * 12288 * (1 - bytes / 2), 4 * 12288);
  EXPECT_EQ(stored_parameters(model, lora(16)), model.parameters());
}

TEST(Adapters, WeightsOfFourBitsAreWrittenOutBeforeEachProduct) {
  Job job = lora(16);
  const Op op = product(Split::column, 1024, 4096);
  EXPECT_EQ(unpacked_bytes(job, op, {}).value, 0);
  EXPECT_EQ(unpacking_time(job, samples::plain_device(), op, {}).value, 0);
  job.four_bit_weights = true;
  EXPECT_EQ(unpacked_bytes(job, op, {.tensor = 4}).value, 2.0 * 1024 * 4096 / 4);
  // On 1 TB/s, of which a fifth is reached: 2 bytes written and 0.516 read.
  const double bytes = 5 * (2 + (4 + 8.0 / 64 + 32.0 / (64 * 256)) / 8) * 1024 * 4096;
  EXPECT_GE(unpacking_time(job, samples::plain_device(), op, {}).value, bytes / 1e12);
}

// Tables seldom say the rank; what is kept in 4 bits does not depend on it.
TEST(Adapters, OfUnknownRankStandBesideFourBitsAsWell) {
  Job job = lora(0);
  job.four_bit_weights = true;
  const Op op = product(Split::column, 1024, 4096);
  EXPECT_FALSE(has_adapter(job, op));
  EXPECT_EQ(unpacked_bytes(job, op, {}).value, 2.0 * 1024 * 4096);
  EXPECT_LT(stored_share(job, op), 0.3);
}

// PyTorch's autocast keeps fp32 weights where they are trained; those beside adapters have 16 bits,
// and nothing is cast.
TEST(Adapters, StandBesideSixteenBits) {
  Job job = lora(16);
  job.framework.autocast = true;
  job.framework.mixed.fp32_weights = Fp32Weights::always;
  EXPECT_EQ(state_bytes(job).weight, 2);
  EXPECT_FALSE(is_autocast(job));
  job.adapters = false;
  EXPECT_EQ(state_bytes(job).weight, 4);
  EXPECT_TRUE(is_autocast(job));
}

TEST(Adapters, AreCutWhereTheWeightsAre) {
  const Sharding four{.tensor = 4};
  EXPECT_EQ(adapter_parameters(lora(8), product(Split::column, 1024, 4096), four),
            8 * (1024 + 1024));
  EXPECT_EQ(adapter_parameters(lora(8), product(Split::row, 4096, 1024), four), 8 * (1024 + 1024));
}

TEST(Adapters, KeepTheProductOfTheFirstMatrix) {
  // 2,048 rows of rank 16 in 2 bytes, for 3 samples.
  EXPECT_EQ(adapter_saved(lora(16), product(Split::column, 1024, 4096), {.samples = 3}).value,
            2 * 2048 * 16 * 3);
}

TEST(Adapters, TakeTheTimeOfTheirOwnProducts) {
  // On 100 Tflop/s and 1 TB/s both products of the forward pass, [2048 x 1024] [1024 x 16] and
  // [2048 x 16] [16 x 4096], are bound by memory: 2 (2048 1024 + 1024 16 + 2048 16) B = 4.29 MB and
  // 2 (2048 16 + 16 4096 + 2048 4096) B = 16.97 MB; then 3 x 2 x 2048 x 4096 B are added up. Three
  // kernels of 10 us.
  const OpTime time = adapter_time(lora(16), samples::plain_device(),
                                   product(Split::column, 1024, 4096), {.samples = 1});
  const double bytes = 2.0 * (2048 * 1024 + 1024 * 16 + 2048 * 16) +
                       2.0 * (2048 * 16 + 16 * 4096 + 2048.0 * 4096) + 3 * 2 * 2048.0 * 4096;
  EXPECT_NEAR(time.forward.value, bytes / 1e12 + 3 * 10e-6, 1e-9);
}

TEST(Adapters, AloneAreTrained) {
  const Model model = build_transformer(samples::gpt(4, 1024, 16, 1024));
  // Products of a layer: 1024 x 3072, 1024 x 1024, 1024 x 4096 and 4096 x 1024.
  const double layer = (1024 + 3072) + (1024 + 1024) + (1024 + 4096) + (4096 + 1024);
  double sum = 0;
  for (const Op& op : model.kinds[model.units[1]].ops) sum += op.matrices > 1 ? op.matrices - 1 : 0;
  EXPECT_EQ(trained_parameters(model, lora(8)), 4 * 8 * (layer + 1024 * sum));
  Job all = lora(8);
  all.adapters = false;
  EXPECT_EQ(trained_parameters(model, all), model.parameters());
}

TEST(Frozen, LayersAreNotTrainedAndRunForwardOnly) {
  const Model model = build_transformer(samples::gpt(4, 1024, 16, 1024));
  Problem problem = samples::problem_of(samples::gpt(4, 1024, 16, 1024),
                                        samples::cluster_of(samples::a100(), 1, 8), lora(0));
  problem.job.adapters = false;
  problem.model = with_frozen_layers(model, 2);
  const double layer = model.kinds[model.units[1]].parameters();
  const double embedding = model.kinds[model.units[0]].parameters();
  EXPECT_NEAR(trained_parameters(problem.model, problem.job),
              model.parameters() - embedding - 2 * layer, 1e-3);
  const CostEngine engine(problem);
  ReplicaShape shape;
  shape.sharding.samples = 1;
  const UnitTable& table = engine.table(shape);
  const UnitCost frozen = table.cost({1, 3}, Recompute::none);
  const UnitCost trained = table.cost({3, 5}, Recompute::none);
  EXPECT_DOUBLE_EQ(frozen.forward.value, trained.forward.value);
  EXPECT_EQ(frozen.backward_total().value, 0);
  EXPECT_EQ(frozen.saved.value, 0);
  EXPECT_EQ(frozen.trained, 0);
  EXPECT_DOUBLE_EQ(frozen.parameters, trained.parameters);
  EXPECT_GT(trained.backward_total().value, 0);
}

}  // namespace
}  // namespace plait
