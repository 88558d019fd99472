// What crosses the layers: every valid plan has a cost, and costs the same once saved and read.
#include <gtest/gtest.h>

#include <cmath>

#include "cost/engine.h"
#include "io/cluster/load_cluster.h"
#include "io/model/zoo.h"
#include "io/plan/plan_json.h"
#include "io/plan/problem_json.h"
#include "plan/sample_plans.h"

namespace plait {
namespace {

TEST(SavedPlans, EveryModelOfTheZooReadsBackAsItWas) {
  for (const std::string& name : zoo_names()) {
    const Model model = zoo_model(name, std::nullopt)->model;
    EXPECT_EQ(restore_model(parse_json(name, dump_model(model))), model) << name;
    const Model fine = at_op_granularity(model);
    EXPECT_EQ(restore_model(parse_json(name, dump_model(fine))), fine) << name;
  }
}

TEST(SavedPlans, ClustersOfTheCatalogueReadBackAsTheyWere) {
  const Cluster cluster = load_cluster("2xA100-80GB:8+4xV100-16GB:4+3xT4:1").cluster;
  EXPECT_EQ(restore_cluster(parse_json("c", dump_cluster(cluster))), cluster);
}

TEST(SavedPlans, EveryShapeOfPlanCostsTheSameOnceSavedAndRead) {
  samples::RandomPlans random(8);
  for (int i = 0; i < 300; ++i) {
    const samples::Sample sample = random.next();
    const Estimate before = CostEngine(sample.problem).simulate(sample.plan);
    EXPECT_GT(before.step, Seconds(0));
    EXPECT_TRUE(std::isfinite(before.step.value));
    const PlanFile file = plan_file_from_json(
        parse_json("p", plan_file_to_json(sample.problem, sample.plan, before)));
    EXPECT_EQ(CostEngine(file.problem).simulate(file.plan).step, before.step);
  }
}

TEST(SavedPlans, AHundredThousandDevicesAreSavedAndReadInNoTime) {
  samples::Sample sample{.problem = samples::sample_problem(), .plan = samples::sample_plan()};
  sample.problem.cluster = samples::sample_cluster(12'500, 6'000);
  const std::string text = plan_file_to_json(sample.problem, sample.plan, {});
  EXPECT_EQ(plan_file_from_json(parse_json("p", text)).problem, sample.problem);
}

}  // namespace
}  // namespace plait
