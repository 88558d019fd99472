#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "app/graph/analyze.h"
#include "app/graph/enumerate.h"
#include "app/graph/search.h"
#include "app/graph/solve.h"
#include "app/plan/sample_requests.h"
#include "graph/sample_programs.h"
#include "io/format/text_file.h"

namespace plait {
namespace {

using samples::complaint;

// Three square layers, trained by SGD.
GraphSource mlp_source() {
  GraphSource source;
  source.path =
      (std::filesystem::path(testing::TempDir()) / (std::to_string(getpid()) + "_mlp.hlo"))
          .string();
  write_text_file(source.path, graph::samples::mlp_step(3, 64, 128));
  source.cluster = "1xA100-80GB:4";
  source.mesh = "4";
  source.threads = 1;
  return source;
}

TEST(GraphAnswers, ThePlanIsNoSlowerThanAnyCombinationOfItsStrategies) {
  const GraphSource source = mlp_source();
  const GraphSearchAnswer found = answer(GraphSearchRequest{source, {}}, {});
  ASSERT_TRUE(found.plan);
  const std::string table = to_csv(answer(GraphEnumerateRequest{source, {0, 1}}, {}));
  // A line: "strategies",bytes,communication,compute,time,memory
  const auto lines = std::count(table.begin(), table.end(), '\n');
  EXPECT_EQ(lines, 1 + static_cast<long>(found.costs.blocks[0].strategies.size() *
                                         found.costs.blocks[1].strategies.size()));
  for (std::size_t at = table.find('\n') + 1; at < table.size(); at = table.find('\n', at) + 1) {
    std::size_t field = table.find("\",", at) + 2;
    for (int i = 0; i < 3; ++i) field = table.find(',', field) + 1;
    EXPECT_GE(std::stod(table.substr(field)), found.plan->time().value * (1 - 1e-6));
  }
}

TEST(GraphAnswers, AStopGivesTheBestPlanSoFar) {
  GraphSource source = mlp_source();
  source.mesh = "";  // 4 and 2x2
  const Bytes peak = answer(GraphSearchRequest{source, {}}, {}).plan->peak;
  std::stop_source stop;
  stop.request_stop();
  Session session;
  session.stop = stop.get_token();
  const GraphSearchAnswer fits = answer(GraphSearchRequest{source, {}}, session);
  EXPECT_TRUE(fits.interrupted);
  ASSERT_TRUE(fits.plan);
  EXPECT_EQ(fits.plan->mesh.sizes, (std::vector<int>{4}));  // the second was not tried
  // Where the fastest does not fit, one that holds less, or no plan with the reason.
  source.memory_gib = peak.value / 0x1p30 * 0.98;
  const GraphSearchAnswer tight = answer(GraphSearchRequest{source, {}}, session);
  EXPECT_TRUE(tight.interrupted);
  if (tight.plan) {
    EXPECT_LT(tight.plan->peak, peak);
  } else {
    EXPECT_EQ(tight.reason, "interrupted before a plan that fits was found");
  }
}

TEST(GraphAnswers, ASeedGivesALegalPlanAndTheSameAgain) {
  const GraphSource source = mlp_source();
  const GraphSearchAnswer a = answer(GraphSearchRequest{source, 7}, {});
  const GraphSearchAnswer b = answer(GraphSearchRequest{source, 7}, {});
  ASSERT_TRUE(a.plan && b.plan);
  EXPECT_EQ(to_json(a), to_json(b));
}

TEST(GraphAnswers, AnalysisCountsTheProductsOfAllLayers) {
  // Each of the three layers has one product forward and one of its weight's gradient; the second
  // and the third also one of their input's.
  const GraphAnalyzeAnswer analyzed = answer(GraphAnalyzeRequest{mlp_source()}, {});
  std::size_t products = 0;
  for (const graph::Block& block : analyzed.analysis.blocks.blocks)
    products += block.contractions.size();
  EXPECT_EQ(products, 8u);
}

TEST(GraphAnswers, RequestsNameTheirFields) {
  GraphSource source = mlp_source();
  EXPECT_EQ(complaint([&] {
              answer(GraphEnumerateRequest{source, {99}}, {});
            }).substr(0, 25),
            "`blocks`: 99 is not a blo");
  source.mesh = "3x3";
  EXPECT_EQ(complaint([&] { answer(GraphSearchRequest{source, {}}, {}); }).substr(0, 6), "`mesh`");
  source.mesh = "";
  EXPECT_EQ(complaint([&] {
              answer(GraphEnumerateRequest{source, {}}, {});
            }),
            "`mesh`: is missing: enumerate takes one mesh");
}

TEST(GraphAnswers, AnInstanceIsSolvedToTheOptimum) {
  // Two tensors with two choices each, at one time; 3 + 1 = 4 would need 20 of 15 bytes, so one of
  // them takes its small and dear choice: 5 + 1 = 6 or 3 + 4 = 7.
  const std::string path =
      (std::filesystem::path(testing::TempDir()) / (std::to_string(getpid()) + "_two.json"))
          .string();
  write_text_file(path, R"({"problem": {"name": "two",
      "nodes": {"intervals": [[0, 1], [0, 1]], "costs": [[3, 5], [1, 4]],
                "usages": [[10, 5], [10, 5]]},
      "edges": {"nodes": [], "costs": []}, "usage_limit": 15}})");
  const GraphSolveAnswer solved = answer(GraphSolveRequest{path, Seconds(10), 1}, {});
  ASSERT_TRUE(solved.solution.found());
  EXPECT_EQ(solved.solution.cost, 6);
  EXPECT_EQ(solved.solution.lower_bound, 6);
}

}  // namespace
}  // namespace plait
