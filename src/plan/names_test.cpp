#include "plan/names.h"

#include <gtest/gtest.h>

namespace plait {
namespace {

template <typename Enum>
void expect_round_trip(const std::vector<std::string_view>& names, Enum last,
                       std::optional<Enum> (*named)(std::string_view)) {
  // One name for each enumerator, so that the last one has the last name.
  ASSERT_EQ(names.size(), static_cast<std::size_t>(last) + 1);
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(name_of(static_cast<Enum>(i)), names[i]);
    EXPECT_EQ(named(names[i]), static_cast<Enum>(i));
  }
  EXPECT_EQ(named(""), std::nullopt);
  EXPECT_EQ(named("nonsense"), std::nullopt);
}

TEST(Names, EveryEnumeratorHasOneNameThatReadsBack) {
  expect_round_trip(schedule_names(), Schedule::zb_v, schedule_named);
  expect_round_trip(recompute_names(), Recompute::full, recompute_named);
  expect_round_trip(zero_stage_names(), ZeroStage::parameters, zero_stage_named);
  expect_round_trip(precision_names(), Precision::fp4, precision_named);
  expect_round_trip(optimizer_names(), Optimizer::adam8bit, optimizer_named);
  expect_round_trip(attention_names(), AttentionKernel::plain, attention_named);
  expect_round_trip(dtype_names(), DType::fp8, dtype_named);
  expect_round_trip(op_kind_names(), OpKind::reduction, op_kind_named);
  expect_round_trip(function_names(), Function::gelu_twice, function_named);
  expect_round_trip(split_names(), Split::shard, split_named);
  expect_round_trip(tensor_layout_names(), TensorLayout::partial_sums, tensor_layout_named);
}

// Fingerprints in profile files are made of them.
TEST(Names, NumbersOfOpsStayWhatTheyWere) {
  EXPECT_EQ(static_cast<int>(OpKind::loss), 6);
  EXPECT_EQ(static_cast<int>(Function::rotary), 10);
  EXPECT_EQ(static_cast<int>(Split::shard), 6);
}

TEST(Names, CaseAndUnderscoresDoNotMatter) {
  EXPECT_EQ(schedule_named("ZB_H1"), Schedule::zb_h1);
  EXPECT_EQ(schedule_named("1F1B"), Schedule::one_f_one_b);
  EXPECT_EQ(precision_named("pure_bf16"), Precision::pure_bf16);
}

}  // namespace
}  // namespace plait
