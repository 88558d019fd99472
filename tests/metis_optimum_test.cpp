#include "search/papers/metis_optimum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "io/cluster/load_cluster.h"
#include "model/transformer.h"
#include "plan/check.h"

namespace plait {
namespace {

// Embedding, `layers` - 2 blocks and a head, on the given cluster.
Problem problem_of(const std::string& cluster, int layers, int batch) {
  TransformerConfig config;
  config.name = "small";
  config.layers = layers - 2;
  config.hidden = 64;
  config.heads = 4;
  config.sequence = 128;
  config.vocabulary = 1024;
  Problem problem;
  problem.model = build_transformer(config);
  problem.cluster = load_cluster(cluster, {}).cluster;
  problem.job.global_batch = batch;
  return problem;
}

// Times in ms of every layer: `base` * type's slowness * samples / tensor, plus 1.
MetisTable table_of(const Problem& problem, const std::vector<double>& base, double slower,
                    double memory_share) {
  MetisTable table;
  const int layers = problem.model.unit_count();
  for (std::size_t type = 0; type < problem.cluster.device_types.size(); ++type) {
    table.points.emplace_back();
    for (const int tensor : {1, 2})
      for (const int samples : {1, 2}) {
        MetisTable::Point point;
        const double slow = std::pow(slower, static_cast<double>(type));
        for (int l = 0; l < layers; ++l) {
          point.layers.emplace_back(1e-3 * (1 + base[l] * slow * samples / tensor));
          point.memory.push_back(problem.cluster.device_types[type].memory *
                                 (memory_share * base[l] * samples / tensor));
        }
        point.sync = Seconds(1e-3 * slow * samples / tensor);
        table.points.back()[{tensor, samples}] = point;
      }
  }
  table.parameters.assign(layers, 1e6);
  table.parameters.front() = 2e6;
  table.optimizer = Seconds(4e-3);
  table.batch_generator = Seconds(1e-4);
  return table;
}

// One stage of two replicas on a node of two devices, batch 4 in two micro-batches of one sample
// each: m = 4 / 2 / 2 = 1.
TEST(MetisFormula, AddsUpTheTermsOfItsDescription) {
  Problem problem = problem_of("1xA100-80GB:2", 3, 4);
  problem.cluster.nodes[0].intra.bandwidth = BytesPerSecond(46e9);
  const MetisTable table = table_of(problem, {1, 2, 3}, 1, 0.01);
  const MetisFormula formula(problem, table);
  Plan plan;
  plan.micro_batches = 2;
  plan.stages.push_back(
      {{{.units = {0, 3}, .tensor = 1, .data = 2}}, {DeviceId(0), DeviceId(1)}, {}});
  const auto cost = formula.cost(plan);
  ASSERT_TRUE(cost);
  // x = (1 + 1) + (1 + 2) + (1 + 3) = 9 ms; (2 - 1) * 9 + 9.
  EXPECT_NEAR(cost->execution.value, 18e-3, 1e-12);
  EXPECT_NEAR(cost->sync.value, 2e-3, 1e-12);    // 2 * 1 ms
  EXPECT_NEAR(cost->update.value, 8e-3, 1e-12);  // 2 * 4 ms, all layers
  // 2 (2 - 1) / 2 * 4e6 elements over 46 * 2^20 elements a ms.
  EXPECT_NEAR(cost->gradients.value, 4e6 / (46 * 1048576.0) * 1e-3, 1e-12);
  EXPECT_EQ(cost->sends.value, 0);
  EXPECT_NEAR(cost->batches.value, 2e-4, 1e-12);
}

// Replicas of a mixed stage: the second type takes 1 / 3 of the speed, so 4 samples are 3 and 1,
// and the 3 run as slices of 2 and 1.
TEST(MetisFormula, DividesSamplesBySpeedInAMixedStage) {
  const Problem problem = problem_of("1xA100-80GB:1+1xT4:1", 3, 4);
  MetisTable table = table_of(problem, {1, 1, 1}, 1, 0.01);
  for (auto& [key, point] : table.points[1])
    for (Seconds& layer : point.layers) layer = layer * 3.0;
  const MetisFormula formula(problem, table);
  const std::vector<DeviceId> both{DeviceId(0), DeviceId(1)};
  const auto cut = formula.cut(both, 2, 1, 1);
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->shares, (std::vector<int>{3, 1}));
  // A layer takes 2 ms at 1 sample and 3 at 2: 3 samples take 5 ms; on the slow one 1 takes 6.
  EXPECT_NEAR(formula.time(*cut, {0, 2}).value, 2 * 6e-3, 1e-12);
}

TEST(MetisFormula, RefusesWhatWasNotMeasuredOrDoesNotFit) {
  const Problem problem = problem_of("1xA100-80GB:2", 3, 16);
  const MetisTable table = table_of(problem, {1, 1, 1}, 1, 0.3);
  const MetisFormula formula(problem, table);
  const std::vector<DeviceId> both{DeviceId(0), DeviceId(1)};
  EXPECT_FALSE(formula.cut(both, 2, 1, 1)) << "8 samples on a replica";
  EXPECT_FALSE(formula.cut(both, 2, 1, 16)) << "1 sample for 2 replicas";
  const auto cut = formula.cut(both, 2, 1, 4);  // 2 samples: each layer has 0.6 of the memory
  ASSERT_TRUE(cut);
  EXPECT_TRUE(formula.fits(*cut, {0, 1}));
  EXPECT_FALSE(formula.fits(*cut, {0, 2}));
}

// Least cost over every order of the types, number of micro-batches, device groups, degrees and
// cuts of the layers, one by one.
class EveryPlan {
 public:
  explicit EveryPlan(const MetisFormula& formula) : formula_(formula) {}

  double least() {
    const Cluster& cluster = formula_.problem().cluster;
    for (const bool turned : {false, true}) {
      order_.clear();
      for (int pass = 0; pass < 2; ++pass)
        for (int i = 0; i < cluster.device_count(); ++i)
          if ((cluster.devices[i].type == 0) == ((pass == 0) != turned))
            order_.push_back(DeviceId(i));
      const int batch = formula_.problem().job.global_batch;
      for (plan_.micro_batches = 1; plan_.micro_batches <= batch; ++plan_.micro_batches)
        if (batch % plan_.micro_batches == 0) grow(0, 0);
    }
    return least_;
  }

 private:
  void grow(int device, int unit) {
    const int devices = static_cast<int>(order_.size());
    if (device == devices && unit == formula_.layers()) {
      if (const auto cost = formula_.cost(plan_)) least_ = std::min(least_, cost->total().value);
      return;
    }
    for (int end = unit + 1; end <= formula_.layers(); ++end)
      for (int last = device + 1; last <= devices; ++last)
        for (const int tensor : {1, 2}) {
          if ((last - device) % tensor != 0) continue;
          Stage stage;
          stage.spans.push_back(
              {.units = {unit, end}, .tensor = tensor, .data = (last - device) / tensor});
          stage.devices.assign(order_.begin() + device, order_.begin() + last);
          if (!inside_nodes(stage)) continue;
          plan_.stages.push_back(stage);
          grow(last, end);
          plan_.stages.pop_back();
        }
  }

  bool inside_nodes(const Stage& stage) const {
    const int tensor = stage.spans[0].tensor;
    const Cluster& cluster = formula_.problem().cluster;
    for (std::size_t i = 0; i < stage.devices.size(); ++i)
      if (cluster.device(stage.devices[i]).node !=
          cluster.device(stage.devices[i - i % tensor]).node)
        return false;
    return true;
  }

  const MetisFormula& formula_;
  std::vector<DeviceId> order_;
  Plan plan_;
  double least_ = HUGE_VAL;
};

TEST(MetisOptimum, IsTheLeastOfAllPlansOnRandomProblems) {
  const char* clusters[] = {"1xA100-80GB:4", "1xA100-80GB:2+1xT4:2", "1xA100-80GB:2+1xT4:4",
                            "3xA100-80GB:1+1xT4:2"};
  int solved = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const auto between = [&](double low, double high) {
      return low + (high - low) * static_cast<double>(random() % 1000) / 999;
    };
    const Problem problem =
        problem_of(clusters[seed % 4], 3 + static_cast<int>(random() % 3), 4 << (random() % 2));
    std::vector<double> base;
    for (int l = 0; l < problem.model.unit_count(); ++l) base.push_back(between(0.5, 20));
    const MetisTable table = table_of(problem, base, between(1, 4), between(0.005, 0.05));
    const MetisFormula formula(problem, table);
    const MetisOptimum found =
        search_metis_optimum(formula, SearchContext{problem, {.keep = 3}, {}, {}, {}});
    const double least = EveryPlan(formula).least();
    ASSERT_EQ(found.plans.empty(), std::isinf(least)) << "seed " << seed;
    if (found.plans.empty()) continue;
    ++solved;
    EXPECT_NEAR(found.plans[0].cost.total().value / least, 1, 1e-12) << "seed " << seed;
    for (const MetisRanked& ranked : found.plans) {
      EXPECT_TRUE(check_plan(problem, ranked.plan).empty()) << "seed " << seed;
      EXPECT_GE(ranked.cost.total().value, least * (1 - 1e-12)) << "seed " << seed;
    }
  }
  std::printf("%d solved\n", solved);
  EXPECT_GT(solved, 30);
}

TEST(MetisOptimum, HonoursPins) {
  const Problem problem = problem_of("1xA100-80GB:4+1xT4:4", 6, 16);
  const MetisTable table = table_of(problem, {1, 9, 9, 9, 9, 2}, 2, 0.01);
  const MetisFormula formula(problem, table);
  SearchOptions options;
  options.pins.stages = {1, 2, 3};
  options.pins.micro_batches = 8;
  for (const MetisRanked& ranked :
       search_metis_optimum(formula, SearchContext{problem, options, {}, {}, {}}).plans) {
    EXPECT_EQ(ranked.plan.micro_batches, 8);
    ASSERT_EQ(ranked.plan.stage_count(), 3);
    EXPECT_EQ(ranked.plan.stages[1].spans[0].units, (UnitRange{1, 3}));
  }
  options.pins = {};
  options.pins.pipeline = 4;
  options.pins.tensor = 2;
  const auto found = search_metis_optimum(formula, SearchContext{problem, options, {}, {}, {}});
  ASSERT_FALSE(found.plans.empty());
  for (const MetisRanked& ranked : found.plans) {
    EXPECT_EQ(ranked.plan.stage_count(), 4);
    for (const Stage& stage : ranked.plan.stages) EXPECT_EQ(stage.spans[0].tensor, 2);
  }
}

}  // namespace
}  // namespace plait
