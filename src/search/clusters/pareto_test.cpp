#include "search/clusters/pareto.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cost/price.h"
#include "plan/sample_plans.h"
#include "random_problem.h"
#include "search/bound/cluster_lower_bound.h"
#include "search/space/sub_cluster.h"

namespace plait {
namespace {

const Planner& usual_planner() { return planners().front(); }

struct PriceAndTime {
  double price = 0;
  double time = 0;
};

// Every mix planned, every pair compared.
std::vector<PriceAndTime> front_by_brute_force(const Problem& problem,
                                               const std::vector<MixKind>& kinds,
                                               const Target& target) {
  std::vector<PriceAndTime> points;
  Mix mix(kinds.size(), 0);
  for (bool more = true; more;) {
    more = false;
    for (std::size_t k = 0; k < mix.size() && !more; ++k) {
      more = ++mix[k] <= static_cast<int>(kinds[k].nodes.size());
      if (!more) mix[k] = 0;
    }
    if (!more) break;
    std::vector<bool> kept;
    for (const Device& device : problem.cluster.devices) {
      bool in = false;
      for (std::size_t k = 0; k < mix.size(); ++k)
        for (int i = 0; i < mix[k]; ++i) in = in || kinds[k].nodes[i] == device.node;
      kept.push_back(in);
    }
    Problem part = problem;
    part.cluster = keep_devices(problem.cluster, kept).cluster;
    const SearchResult found =
        run_search(usual_planner(), {part, {.keep = 1, .target = target}, {}, {}, {}});
    if (found.plans.empty()) continue;
    const Seconds step = found.plans[0].cost.step;
    points.push_back({(price_of(part.cluster, found.plans[0].plan) * step).value, step.value});
  }
  const double same = 1 + 1e-9;
  std::vector<PriceAndTime> front;
  std::sort(points.begin(), points.end(), [](const PriceAndTime& a, const PriceAndTime& b) {
    return a.price != b.price ? a.price < b.price : a.time < b.time;
  });
  for (const PriceAndTime& p : points)
    if (front.empty() || p.time * same < front.back().time) front.push_back(p);
  return front;
}

Problem priced_problem(std::mt19937_64& random, int i) {
  Problem problem = random_problem(random, 1 + i % 4, 2 + i % 6);
  for (Node& node : problem.cluster.nodes) node.uplink.bandwidth = BytesPerSecond(1e10);
  for (const Device& device : problem.cluster.devices)
    problem.cluster.nodes[device.node].price = UsdPerSecond(device.type == 0 ? 3e-3 : 1e-3);
  return problem;
}

void expect_front_of_brute_force(const Target& target, int problems) {
  std::mt19937_64 random(7);
  int several = 0;
  for (int i = 0; i < problems; ++i) {
    Problem problem = priced_problem(random, i);
    if (target.needs_number_format) {  // which all devices have
      problem.job.precision = Precision::fp16;
      problem.job.attention = AttentionKernel::plain;
    }
    const std::vector<MixKind> kinds = mix_kinds(problem.cluster);
    const ParetoResult found =
        pareto_front(usual_planner(), {problem, {.target = target}, {}, {}, {}}, kinds);
    const std::vector<PriceAndTime> truth = front_by_brute_force(problem, kinds, target);
    ASSERT_EQ(found.front.size(), truth.size()) << target.name << " problem " << i;
    for (std::size_t p = 0; p < truth.size(); ++p) {
      EXPECT_NEAR(found.front[p].price().value / truth[p].price, 1, 1e-9) << "problem " << i;
      EXPECT_NEAR(found.front[p].step().value / truth[p].time, 1, 1e-9) << "problem " << i;
    }
    several += truth.size() > 1;
    EXPECT_LE(found.planned, found.mixes);
  }
  EXPECT_GT(several, 10);
}

TEST(Pareto, FrontEqualsBruteForceOverAllMixes) {
  expect_front_of_brute_force(*target_named("any"), 60);
  expect_front_of_brute_force(*target_named("megatron"), 60);
}

// The fewest nodes that are fast enough may be neither the cheapest nor the fastest.
TEST(Pareto, TheFewestNodesAreThoseOfBruteForceOverAllMixes) {
  std::mt19937_64 random(11);
  int not_on_front = 0;
  for (int i = 0; i < 30; ++i) {
    const Problem problem = priced_problem(random, i);
    std::vector<MixKind> kinds = mix_kinds(problem.cluster);
    const SearchContext context{problem, {}, {}, {}, {}};
    // A mix with so many nodes at most, and one of fewer: what is planned on its own.
    std::vector<Seconds> fastest(problem.cluster.nodes.size() + 1, Seconds(HUGE_VAL));
    for (MixKind& kind : kinds) std::erase(kind.counts, 0);
    std::vector<MixKind> one = kinds;
    const auto plan_all = [&](const auto& self, std::size_t k) -> void {
      if (k == kinds.size()) {
        const ParetoResult found = pareto_front(usual_planner(), context, one);
        for (const MixPoint& p : found.front)
          fastest[node_count(p.mix)] = std::min(fastest[node_count(p.mix)], p.step());
        return;
      }
      for (const int count : kinds[k].counts) {
        one[k].counts = {count};
        self(self, k + 1);
      }
    };
    plan_all(plan_all, 0);
    const Seconds least = *std::ranges::min_element(fastest);
    if (!std::isfinite(least.value)) continue;
    for (const double slack : {1.02, 1.5, 3.0}) {
      const Seconds enough = slack * least;
      const ParetoResult found = pareto_front(usual_planner(), context, kinds, enough);
      const auto fewest =
          std::ranges::find_if(fastest, [&](Seconds step) { return step <= enough; });
      ASSERT_TRUE(found.fewest) << "problem " << i;
      EXPECT_EQ(node_count(found.fewest->mix), fewest - fastest.begin()) << "problem " << i;
      EXPECT_LE(found.fewest->step(), enough);
      const auto is_it = [&](const MixPoint& p) { return p.mix == found.fewest->mix; };
      not_on_front += std::ranges::none_of(found.front, is_it);
      if (found.too_slow) {
        EXPECT_GT(found.too_slow->step(), enough);
        EXPECT_LT(node_count(found.too_slow->mix), node_count(found.fewest->mix));
      }
    }
  }
  EXPECT_GT(not_on_front, 0);
}

TEST(Pareto, TheAnswerDoesNotDependOnThreads) {
  std::mt19937_64 random(8);
  for (int i = 0; i < 10; ++i) {
    const Problem problem = priced_problem(random, i);
    const std::vector<MixKind> kinds = mix_kinds(problem.cluster);
    const auto with = [&](int threads) {
      return pareto_front(usual_planner(), {problem, {.threads = threads}, {}, {}, {}}, kinds);
    };
    const ParetoResult one = with(1);
    const ParetoResult four = with(4);
    EXPECT_EQ(one.planned, four.planned);
    ASSERT_EQ(one.front.size(), four.front.size());
    for (std::size_t p = 0; p < one.front.size(); ++p)
      EXPECT_EQ(one.front[p].best.plan, four.front[p].best.plan);
  }
}

TEST(Pareto, NoPlanIsFasterThanTheClusterLowerBound) {
  std::mt19937_64 random(9);
  for (int i = 0; i < 60; ++i) {
    const Problem problem = random_problem(random, 1 + i % 5, 2 + i % 7);
    const SearchResult found = run_search(usual_planner(), {problem, {.keep = 1}, {}, {}, {}});
    if (found.plans.empty()) continue;
    std::vector<int> devices(problem.cluster.device_types.size());
    for (const Device& device : problem.cluster.devices) ++devices[device.type];
    const CostEngine engine(problem);
    EXPECT_LE(ClusterLowerBound(engine, {}).step(devices), found.plans[0].cost.step) << i;
  }
}

TEST(Pareto, NodesThatMustBeRentedArePaid) {
  Problem problem = samples::sample_problem();
  problem.cluster = samples::sample_cluster(3, 3);
  std::vector<MixKind> kinds = mix_kinds(problem.cluster);
  ASSERT_EQ(kinds.size(), 1U);
  EXPECT_EQ(kinds[0].counts, (std::vector<int>{0, 1, 2, 3}));
  kinds[0].counts = {3};
  const ParetoResult found = pareto_front(usual_planner(), {problem, {}, {}, {}, {}}, kinds);
  ASSERT_EQ(found.front.size(), 1U);
  EXPECT_EQ(found.front[0].mix, Mix{3});
  // 3 nodes of $32.77 an hour.
  EXPECT_NEAR(found.front[0].rent.value, 3 * 32.77 / 3600, 1e-12);
}

TEST(Pareto, LargeClustersLeaveCountsOut) {
  const std::vector<MixKind> kinds = mix_kinds(samples::sample_cluster(112, 56));
  // 57 x 57 mixes are too many: up to 8 all counts, then 12, 16, 24, 32, 48 and all 56.
  ASSERT_EQ(kinds.size(), 2U);
  EXPECT_EQ(kinds[0].counts, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 56}));
  EXPECT_EQ(mix_count(kinds), 15 * 15);
}

// 12 kinds of four nodes: with 0, 2 and 4 of each there are 3^12 = 531,441 mixes, with all or none
// 4,096, which is more than is aimed at, but not too many.
TEST(Pareto, OfManyKindsOfNodesMostCountsGo) {
  Cluster cluster = samples::sample_cluster(48, 0);
  for (std::size_t n = 0; n < cluster.nodes.size(); ++n)
    cluster.nodes[n].uplink.bandwidth =
        cluster.nodes[n].uplink.bandwidth * (1 + 0.01 * static_cast<double>(n % 12));
  const std::vector<MixKind> kinds = mix_kinds(cluster);
  ASSERT_EQ(kinds.size(), 12U);
  for (const MixKind& kind : kinds) EXPECT_EQ(kind.counts, (std::vector<int>{0, 4}));
  EXPECT_LE(mix_count(kinds), kMaxMixes);
}

TEST(SubCluster, KeepsWhatIsUsedAndRenumbersIt) {
  const Cluster whole = samples::sample_cluster(3, 1);  // node 0 fast and near, 1 and 2 slow, far
  std::vector<bool> kept(24, false);
  for (int i = 12; i < 24; ++i) kept[i] = true;
  const SubCluster part = keep_devices(whole, kept);
  EXPECT_EQ(part.cluster.device_count(), 12);
  EXPECT_EQ(part.cluster.zones, std::vector<std::string>{"far"});
  EXPECT_TRUE(part.cluster.zone_links.empty());
  ASSERT_EQ(part.cluster.device_types.size(), 1U);
  EXPECT_EQ(part.cluster.device_types[0].name, "Slow");
  EXPECT_EQ(part.original_node, (std::vector<int>{1, 2}));
  EXPECT_EQ(part.original[0], DeviceId(12));
  EXPECT_EQ(part.position[11], -1);
  EXPECT_EQ(part.position[12], 0);
}

}  // namespace
}  // namespace plait
