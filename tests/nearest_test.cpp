// What `plait export --nearest` writes is the best of all plans that the program runs.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <random>

#include "app/request/search_request.h"
#include "app/saved/export.h"
#include "plan/describe.h"
#include "plan/sample_frameworks.h"
#include "plan/sample_problems.h"
#include "search/space/search.h"

namespace plait {
namespace {

constexpr double kTie = 1e-7;
constexpr int kProblems = 30;  // of each program that `exhaustive` finishes

// A small network that every program has words for, on up to three nodes of up to two types.
Problem small_problem(std::mt19937_64& random) {
  const auto pick = [&](int least, int most) {
    return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
  };
  TransformerConfig config = samples::llama(pick(1, 3), 512, 1024, 4, pick(0, 1) == 0 ? 4 : 2);
  config.sequence = 512;
  config.vocabulary = 4096;
  Job job;
  job.framework = samples::framework("megatron-lm");
  job.global_batch = std::array{1, 2, 4, 6, 8}[pick(0, 4)];
  Cluster cluster;
  cluster.name = "small";
  cluster.zones = {"zone"};
  cluster.device_types = {samples::h100(), samples::a100()};
  for (DeviceType& type : cluster.device_types) type.memory = Bytes(0x1p30 * pick(1, 4));
  const int nodes = pick(1, 3);
  for (int n = 0; n < nodes; ++n) {
    const int type = pick(0, 1);
    cluster.nodes.push_back({fmt::format("n{}", n),
                             0,
                             cluster.device_types[type].intra,
                             {BytesPerSecond(1e9 * pick(1, 50)), Seconds(2e-5)},
                             {}});
    const int devices = n == 0 ? pick(1, 4) : pick(1, 2);
    for (int d = 0; d < devices; ++d) cluster.devices.push_back({type, n});
  }
  return samples::problem_of(config, cluster, job);
}

const Planner& exhaustive() {
  for (const Planner& planner : planners())
    if (planner.name == "exhaustive") return planner;
  throw std::runtime_error("there is no such planner");
}

class Nearest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Programs, Nearest,
                         testing::Values("megatron", "deepspeed", "torchtitan", "fsdp", "jax"),
                         [](const auto& parameter) { return std::string(parameter.param); });

// What is exported is the best plan of the free space, which programs often refuse.
TEST_P(Nearest, IsTheOptimumOfWhatTheProgramRuns) {
  const Exporter& exporter = *exporter_named(GetParam());
  std::mt19937_64 random(31);
  int solved = 0;
  int refused = 0;
  int none = 0;
  for (int i = 0; solved < kProblems && i < 40 * kProblems; ++i) {
    const Problem problem = small_problem(random);
    SearchContext context{problem, {.keep = 1}, {}, {}, {}};
    context.options.max_evaluations = 20'000;
    context.options.target = target_of(exporter, problem);
    const SearchResult truth = run_search(exhaustive(), context);
    if (truth.cut_short) continue;
    context.options.target = Target{};
    context.options.max_evaluations = 0;
    const SearchResult free = run_search(planner_named("auto"), context);
    if (free.plans.empty()) continue;
    ExportRequest request{.name = "plan", .file = {problem, free.plans[0].plan}, .to = GetParam()};
    request.nearest = true;
    const ExportAnswer told = answer(request, Session{});
    ++solved;
    if (truth.plans.empty()) {
      ++none;
      EXPECT_FALSE(told.written()) << i << ": " << describe(told.file.plan);
      continue;
    }
    refused += told.refusal.empty() ? 0 : 1;
    ASSERT_TRUE(told.written()) << i << ": " << reason(told)
                                << "\nexhaustive: " << describe(truth.plans[0].plan);
    const Seconds step = told.nearest ? told.nearest->plan.cost.step : told.step;
    // `exhaustive` lists plans under one schedule; others may be faster.
    EXPECT_LE(step / truth.plans[0].cost.step, 1 + kTie)
        << i << "\nwritten:    " << describe(told.file.plan)
        << "\nexhaustive: " << describe(truth.plans[0].plan);
  }
  std::printf("%s: %d problems, %d plans refused, %d problems without a plan that it runs\n",
              GetParam(), solved, refused, none);
  EXPECT_EQ(solved, kProblems);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace plait
