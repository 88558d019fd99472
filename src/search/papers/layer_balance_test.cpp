#include "search/papers/layer_balance.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plan/sample_problems.h"

namespace plait {
namespace {

// An A100 and one with a quarter of its memory bandwidth and half of its speed, one node each.
Problem uneven_pair(int layers) {
  Cluster cluster = samples::cluster_of(samples::a100(), 2, 1);
  cluster.device_types.push_back(samples::a100());
  DeviceType& slow = cluster.device_types.back();
  slow.name = "slow";
  slow.memory_bandwidth = slow.memory_bandwidth / 4;
  for (FlopsPerSecond& peak : slow.peak) peak = peak / 2;
  cluster.devices[1].type = 1;
  Job job;
  job.global_batch = 8;
  return samples::problem_of(samples::gpt(layers, 1024, 16, 1024), cluster, job);
}

// What a planner has while it runs, over two stages of one device each.
struct Ground {
  explicit Ground(Problem given, Pins pins = {})
      : problem(std::move(given)),
        engine(problem),
        space(problem, pins),
        context{problem, {},      {},     {},
                {},      &engine, &space, std::chrono::steady_clock::time_point::max()},
        search((context.options.pins = pins, context)),
        layout(search.layout(search.settings(8),
                             {{.devices = {DeviceId{0}}}, {.devices = {DeviceId{1}}}})) {}

  // The slowest stage when the first one has this many units.
  double slowest(int first) {
    return std::max(search.time(*layout.frames[0], {0, first}).value,
                    search.time(*layout.frames[1], {first, search.units()}).value);
  }

  Problem problem;
  CostEngine engine;
  Space space;
  SearchContext context;
  PaperSearch search;
  Layout layout;
};

TEST(LayerBalance, FindsTheBestOfAllCutsOfTwoStages) {
  // With two stages, moving units over the one cut while the slowest gets faster ends at the
  // optimum.
  for (const int layers : {2, 5, 12, 24}) {
    Ground ground(uneven_pair(layers));
    LayerBalance balance(ground.search);
    const LayerBalance::Result& found = balance.run(ground.layout);
    ASSERT_TRUE(found.fits);
    EXPECT_TRUE(found.at_once);
    double best = HUGE_VAL;
    for (int cut = 1; cut < ground.search.units(); ++cut)
      best = std::min(best, ground.slowest(cut));
    EXPECT_NEAR(ground.slowest(found.cuts[1]), best, 1e-9 * best) << layers;
  }
}

TEST(LayerBalance, GivesTheFasterDeviceMoreUnits) {
  Ground ground(uneven_pair(24));
  const std::vector<int> cuts = LayerBalance(ground.search).run(ground.layout).cuts;
  ASSERT_EQ(cuts.size(), 3u);
  EXPECT_EQ(cuts[0], 0);
  EXPECT_EQ(cuts[2], ground.search.units());
  EXPECT_GT(cuts[1], ground.search.units() - cuts[1]);
}

TEST(LayerBalance, TakesPinnedStagesAsTheyAre) {
  Pins pins;
  pins.stages = {1, 6};  // embedding; four decoders and the head
  Ground ground(uneven_pair(5), pins);
  EXPECT_EQ(LayerBalance(ground.search).run(ground.layout).cuts, (std::vector{0, 1, 7}));
}

TEST(LayerBalance, MovesWorkOffAStageThatDoesNotFit) {
  Problem problem = uneven_pair(24);
  const auto balanced = [&] {
    Ground ground(problem);
    return LayerBalance(ground.search).run(ground.layout).cuts[1];
  };
  const auto fill = [&](int units) {
    Ground ground(problem);
    return ground.search.fill(ground.layout, 0, {0, units});
  };
  const int cut = balanced();
  // Just too little for what balance alone gives the faster device.
  Bytes& memory = problem.cluster.device_types[0].memory;
  while (fill(cut) <= 1) memory = 0.97 * memory;
  Ground ground(problem);
  LayerBalance balance(ground.search);
  const LayerBalance::Result& found = balance.run(ground.layout);
  EXPECT_FALSE(found.at_once);
  EXPECT_TRUE(found.fits);
}

}  // namespace
}  // namespace plait
