#include "validation/error_band.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "validation/published_runs.h"

namespace plait {
namespace {

// A plain run is off by a tenth in half of the cases; mixtures are twice as far off.
ErrorTable small_table() {
  const std::string text = R"({"plait_errors": 1, "from": "a test",
    "time": {"half": 0.1, "nine_tenths": 0.3, "above": 0.25,
             "factors": [{"property": "experts", "factor": 2, "sources": 3},
                         {"property": "new_device", "factor": 1.5, "sources": 2}]},
    "memory": {"half": 0.05, "nine_tenths": 0.2, "above": 0.1, "factors": []},
    "order": [{"apart": 0.02, "right": 0.6}, {"apart": 0.1, "right": 0.9}],
    "devices": ["H100"], "frameworks": ["megatron"]})";
  return read_error_table(parse_json("errors.json", text));
}

TEST(ErrorBand, FactorsOfARunsPropertiesMultiply) {
  const ErrorTable table = small_table();
  const RunKind plain{.device = "H100", .framework = "megatron"};
  RunKind mixture = plain;
  mixture.experts = true;
  RunKind new_mixture = mixture;
  new_mixture.device = "X1";
  EXPECT_DOUBLE_EQ(time_band(table, plain).high, std::exp(0.1));
  EXPECT_DOUBLE_EQ(time_band(table, mixture).high, std::exp(0.2));
  EXPECT_DOUBLE_EQ(time_band(table, new_mixture).highest, std::exp(0.9));  // 0.3 * 2 * 1.5
  EXPECT_DOUBLE_EQ(time_band(table, new_mixture).lowest, std::exp(-0.9));
  EXPECT_EQ(time_band(table, new_mixture).because.size(), 2u);
  EXPECT_DOUBLE_EQ(memory_band(table, new_mixture).above, std::exp(0.1));
}

TEST(ErrorBand, AProfileTellsHowFastANewDeviceIs) {
  const ErrorTable table = small_table();
  const RunKind profiled{.device = "X1", .framework = "megatron", .measured = true};
  EXPECT_DOUBLE_EQ(time_band(table, profiled).high, std::exp(0.1));
}

TEST(ErrorBand, TheChanceOfAnOrderGrowsWithTheDifference) {
  const ErrorTable table = small_table();
  EXPECT_DOUBLE_EQ(chance_of_order(table, 1), 0.5);
  // Half way to the first point, in logarithms; slower and faster count alike.
  EXPECT_NEAR(chance_of_order(table, std::exp(0.01)), 0.55, 1e-12);
  EXPECT_NEAR(chance_of_order(table, std::exp(-0.01)), 0.55, 1e-12);
  EXPECT_NEAR(chance_of_order(table, std::exp(0.06)), 0.75, 1e-12);
  EXPECT_DOUBLE_EQ(chance_of_order(table, 5), 0.9);
}

TEST(ErrorBand, TheBuiltInTableAscendsAndKnowsThePropertiesThatItNames) {
  const ErrorTable& table = builtin_error_table();
  for (const ErrorScale* scale : {&table.time, &table.memory}) {
    EXPECT_LT(scale->half, scale->nine_tenths);
    for (const ErrorFactor& factor : scale->factors) EXPECT_GT(factor.factor, 0) << factor.property;
  }
  for (std::size_t i = 1; i < table.order.size(); ++i) {
    EXPECT_LT(table.order[i - 1].apart, table.order[i].apart);
    EXPECT_LE(table.order[i - 1].right, table.order[i].right);
  }
  EXPECT_GT(time_band(table, RunKind{}).high, 1);  // every property is looked up
}

TEST(RunKind, IsReadFromTheProblemAndThePlan) {
  bool lone = false;
  bool nodes = false;
  for (const MeasuredRun& run : shipped_runs()) {
    if (!run.problem) continue;
    const RunKind kind = kind_of(*run.problem, run.plan);
    EXPECT_EQ(kind.device, run.device);
    EXPECT_FALSE(kind.lone && kind.nodes);
    EXPECT_TRUE(kind.nodes || !kind.many_nodes);
    lone = lone || kind.lone;
    nodes = nodes || kind.nodes;
  }
  EXPECT_TRUE(lone || nodes);
}

}  // namespace
}  // namespace plait
