#include "search/bound/priced_partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "cost/engine.h"
#include "plan/sample_problems.h"
#include "search/bound/stage_table.h"

namespace plait {
namespace {

// What stages of two pools of devices may be, for four micro-batches.
struct Ground {
  Ground()
      : problem(samples::problem_of(samples::gpt(4, 1024, 16, 1024), cluster(), job())),
        engine(problem),
        space(problem, {}),
        menu(space, engine, settings(), Schedule::one_f_one_b),
        table(space, settings(), menu, SendLowerBound(space, settings()), Seconds(1e3),
              [] { return false; }),
        chains(table, space.run_classes(), units(), settings().micro_batches) {}

  static Cluster cluster() {
    Cluster both = samples::cluster_of(samples::a100(), 1, 2);
    both.device_types.push_back(samples::a100());
    both.device_types.back().name = "slow";
    both.device_types.back().memory_bandwidth = both.device_types.back().memory_bandwidth / 4;
    both.nodes.push_back(both.nodes.front());
    for (int d = 0; d < 2; ++d) both.devices.push_back({1, 1});
    return both;
  }
  static Job job() {
    Job job;
    job.global_batch = 8;
    return job;
  }
  static PlanSettings settings() {
    PlanSettings settings;
    settings.micro_batches = 4;
    return settings;
  }
  int units() const { return problem.model.unit_count(); }

  Problem problem;
  CostEngine engine;
  Space space;
  StageTable menu;
  OfferTable table;
  PricedPartition chains;
};

StageWeights random_prices(std::mt19937& random, const Ground& ground, bool by_step) {
  std::uniform_real_distribution<double> any(0, 2);
  double longest = 0;
  for (const StageOffers& own : ground.table.by_class())
    for (const StageOffer& offer : own.offers) longest = std::max(longest, offer.time);
  StageWeights prices;
  prices.by_step = by_step;
  prices.high = 4 * longest * (0.3 + any(random) / 2);
  prices.low = prices.high * any(random) / 2;
  prices.stage = longest * any(random) / 10;
  for (std::size_t p = 0; p < ground.space.pools().size(); ++p)
    prices.device.push_back(longest * any(random));
  for (auto& band : prices.parts)
    for (PathWeights& part : band)
      part = {any(random), any(random), any(random), any(random),
              any(random), any(random), any(random), any(random)};
  return prices;
}

// The same by trying every offer of every run for every number of pivots.
class Plainly {
 public:
  Plainly(const Ground& ground, const StageWeights& prices) : ground_(ground), prices_(prices) {
    least_.assign(ground.units() + 1, std::vector<double>(kPivotStates, HUGE_VAL));
    least_[0][0] = 0;
    for (int end = 1; end <= ground.units(); ++end)
      for (int begin = 0; begin < end; ++begin) add({begin, end});
  }
  double at(int units, int pivots) const { return least_[units][pivots]; }

 private:
  void add(const UnitRange& run) {
    const StageOffers& own = ground_.table.by_class()[ground_.space.run_classes().of(run)];
    for (const StageOffer& offer : own.offers) {
      const double takes = 4 * offer.time + (prices_.by_step ? offer.finish : 0);
      if (takes > prices_.high) continue;
      int band = 0;
      for (const double share : kPivots) band += takes < share * prices_.low ? 1 : 0;
      for (int after = 0; after < kPivotStates; ++after) {
        const double sum =
            least_[run.begin][std::min(after, band)] + cost(own, offer, prices_.parts[band][after]);
        least_[run.end][after] = std::min(least_[run.end][after], sum);
      }
    }
  }
  double cost(const StageOffers& own, const StageOffer& offer, const PathWeights& part) const {
    double cost = part.time * offer.time + part.forward * offer.forward +
                  part.longer * offer.longer + part.finish * offer.finish +
                  part.each * prices_.high / 4 + prices_.stage;
    if (own.first) cost += part.closing * offer.finish;
    if (!own.first) cost += part.in * ground_.table.send(offer.option);
    if (!own.last) cost += part.out * ground_.table.send(offer.option);
    if (own.last) cost += ground_.table.tied(offer.option);
    for (std::size_t p = 0; p < prices_.device.size(); ++p)
      cost += prices_.device[p] * ground_.table.devices(offer.option, p);
    return cost;
  }

  const Ground& ground_;
  const StageWeights& prices_;
  std::vector<std::vector<double>> least_;
};

TEST(PricedPartition, CostWhatTheCheapestOfAllCutsDoes) {
  Ground ground;
  ASSERT_GT(ground.table.size(), 20U);
  std::mt19937 random(5);
  int possible = 0;
  for (int i = 0; i < 200; ++i) {
    const StageWeights prices = random_prices(random, ground, i % 2 == 1);
    const std::vector<PivotLanes>& chains = ground.chains.price(prices);
    const Plainly plainly(ground, prices);
    for (int u = 0; u <= ground.units(); ++u) {
      for (int pivots = 0; pivots < kPivotStates; ++pivots) {
        const double expected = plainly.at(u, pivots);
        if (std::isinf(expected))
          EXPECT_EQ(chains[u][pivots], expected) << u << " units, " << pivots << " pivots";
        else
          EXPECT_NEAR(chains[u][pivots], expected, 1e-9 * expected) << u;
      }
    }
    if (std::isinf(plainly.at(ground.units(), kPivotCount))) continue;
    ++possible;
    int pivots = kPivotCount;
    for (const PricedPartition::Link& link : ground.chains.cheapest()) {
      EXPECT_EQ(link.pivots_after, pivots);
      ASSERT_NE(link.offer, nullptr);
      pivots = link.pivots_before;
    }
    EXPECT_EQ(pivots, 0);
  }
  EXPECT_GT(possible, 50);
}

}  // namespace
}  // namespace plait
