#include "cost/aceso_formula.h"

#include <gtest/gtest.h>

namespace plait {
namespace {

constexpr double kMb = 0x1p20;

AcesoOp op(double forward_us, double backward_us, std::vector<double> megabytes) {
  return {Seconds(forward_us * 1e-6), Seconds(backward_us * 1e-6), Bytes(megabytes[0] * kMb),
          Bytes(megabytes[1] * kMb),  Bytes(megabytes[2] * kMb),   Bytes(megabytes[3] * kMb),
          Bytes(megabytes[4] * kMb),  Bytes(megabytes[5] * kMb)};
}

// Three ops of a layer; numbers are input, output, weights, activations and both reserved, in MB.
AcesoTable three_ops() {
  AcesoTable table;
  table.name = "gpt_tiny";
  table.points[{1, 1, 0}] = {{"enc-2nd-layernorm", op(10, 20, {8, 16, 0, 8, 1, 5})},
                             {"enc-MLP-GEMM-1", op(20, 40, {16, 32, 100, 32, 2, 6})},
                             {"enc-MLP-gelu", op(30, 60, {32, 4, 0, 32, 3, 7})}};
  table.intra_node = {1, 2, 4, 8, 16, 32};
  return table;
}
const std::vector<std::string> kOps{"enc-2nd-layernorm", "enc-MLP-GEMM-1", "enc-MLP-gelu"};

AcesoStage stage(int begin, int end, bool recomputed = false) {
  return {{begin, end}, 1, std::vector<AcesoChoice>(end - begin, {1, 1, 0, recomputed})};
}

// The rate of a message of 2^k MB is that of 2^(k - 1); below 1 MB the table is read from its end:
// 0.25 MB is two entries before it.
TEST(AcesoFormula, TakesTheRateOfMessagesHalfAsLarge) {
  const AcesoTable table = three_ops();
  const AcesoFormula formula(table, kOps, 4);
  EXPECT_DOUBLE_EQ(formula.send(Bytes(32 * kMb), false).value, 32 / 16.0 * 1e-3);
  EXPECT_DOUBLE_EQ(formula.send(Bytes(8 * kMb), false).value, 8 / 4.0 * 1e-3);
  EXPECT_DOUBLE_EQ(formula.send(Bytes(1.5 * kMb), false).value, 1.5 * 1e-3);
  EXPECT_DOUBLE_EQ(formula.send(Bytes(0.25 * kMb), false).value, 0.25 / 16 * 1e-3);
  EXPECT_DOUBLE_EQ(formula.send(Bytes(4096 * kMb), false).value, 4096 / 32.0 * 1e-3);
  EXPECT_EQ(formula.send(Bytes(0), true).value, 0);
}

// t = 90 us of compute and 2 ms each way, for both stages: 4.09 ms. Four micro-batches take three
// times that and the sum. Memory of the first: states 8 x 100, activations 8 + 8 + 32 for each of
// two micro-batches, and the weights again, as its last op does not count for what is reserved.
TEST(AcesoFormula, AddsUpStagesAndTheirMemory) {
  const AcesoTable table = three_ops();
  const AcesoFormula formula(table, kOps, 4);
  const std::vector<AcesoStage> stages{stage(0, 2), stage(2, 3)};
  const auto cost = formula.cost(stages, 4, 1);
  ASSERT_TRUE(cost.has_value());
  EXPECT_NEAR(cost->stages[0].time().value, 4.09e-3, 1e-12);
  EXPECT_NEAR(cost->step.value, 3 * 4.09e-3 + 2 * 4.09e-3, 1e-12);
  EXPECT_DOUBLE_EQ(cost->stages[0].memory().value / kMb, 800 + 48 + 48 + 100);
  EXPECT_FALSE(formula.cost(stages, 4, 2).has_value());  // micro-batch 2 was not measured
}

// All three recomputed give back the first two's 8 + 32, which come back while they are repeated.
TEST(AcesoFormula, RecomputedNeighboursGiveTheirActivationsBack) {
  const AcesoTable table = three_ops();
  const AcesoFormula formula(table, kOps, 4);
  const auto cost = formula.stage(stage(0, 3, true), 1, 2, {});
  ASSERT_TRUE(cost.has_value());
  EXPECT_NEAR(cost->recomputed.value, 60e-6, 1e-12);
  EXPECT_DOUBLE_EQ(cost->activations.value / kMb, 2 * (80 - 40));
  EXPECT_DOUBLE_EQ(cost->peak.value / kMb, 80 - 40 + 40);
}

TEST(AcesoFormula, LayoutsChangeByOneCollectiveEachWay) {
  const auto change = [](const char* before, const char* after, int tensor, int data) {
    return aceso_reshard(aceso_layout(before, tensor, data, 0, false),
                         aceso_layout(after, tensor, data, 1, true));
  };
  // The second product cut by rows wants features, the norm leaves them whole.
  const AcesoReshard split = change("enc-2nd-layernorm", "enc-MLP-GEMM-1", 2, 1);
  EXPECT_STREQ(split.forward, "split");
  EXPECT_STREQ(split.backward, "all_gather");
  EXPECT_EQ(split.members, 2);
  EXPECT_STREQ(change("enc-1st-layernorm", "enc-2nd-layernorm", 2, 2).forward, "");
  const AcesoReshard gather =
      aceso_reshard(aceso_layout("bn1", 1, 4, 0, false), aceso_layout("relu1", 4, 1, 0, true));
  EXPECT_STREQ(gather.forward, "all_gather");
  EXPECT_EQ(gather.members, 4);
}

TEST(AcesoFormula, APlanAndItsStagesAreTheSame) {
  std::vector<AcesoStage> stages{stage(0, 2, true), stage(2, 3)};
  stages[0].choices[0].recomputed = false;
  const Plan plan = plan_of(stages, 4);
  ASSERT_EQ(plan.stages[0].spans.size(), 2U);
  const std::vector<AcesoStage> again = aceso_stages(plan);
  ASSERT_EQ(again.size(), 2U);
  EXPECT_EQ(again[0].choices, stages[0].choices);
  EXPECT_EQ(again[1].ops, stages[1].ops);
}

}  // namespace
}  // namespace plait
