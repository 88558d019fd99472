#include "app/clusters/pareto.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "app/plan/sample_requests.h"
#include "plan/check.h"

namespace plait {
namespace {

using samples::complaint;

ParetoRequest request() {
  ParetoRequest request;
  static_cast<SearchRequest&>(request) = samples::small_request();
  request.instances = {{"g5.24xlarge", 0, 2}, {"g4dn.12xlarge", 0, 1}};
  return request;
}

TEST(ParetoAnswer, TheFrontGetsFasterAsItGetsDearer) {
  const ParetoAnswer found = answer(request(), {});
  EXPECT_EQ(found.result.mixes, 3 * 2 - 1);  // all counts, the empty mix apart
  ASSERT_TRUE(found.found());
  for (std::size_t i = 1; i < found.result.front.size(); ++i) {
    EXPECT_GT(found.result.front[i].price(), found.result.front[i - 1].price());
    EXPECT_LT(found.result.front[i].step(), found.result.front[i - 1].step());
  }
}

// "1-2" of each is one of each at least, which few mean who ask which of two is better.
TEST(ParetoAnswer, KindsThatCannotBeLeftOutAreNamed) {
  ParetoRequest both = request();
  both.instances = {{"g5.24xlarge", 1, 2}, {"g6.12xlarge", 1, 1}};
  const ParetoAnswer found = answer(both, {});
  ASSERT_EQ(found.warnings.size(), 1U);
  EXPECT_EQ(found.warnings[0],
            "every mix has 1 of g5.24xlarge at least beside 1 of g6.12xlarge: g5.24xlarge:0-2 "
            "lets a kind be left out");
  both.instances[0].least = 0;
  EXPECT_TRUE(answer(both, {}).warnings.empty());
}

// AMD's and NVIDIA's devices are in no training together, also where a price is said for both.
TEST(ParetoAnswer, DevicesThatDoNotSumWithEachOtherAreNotMixed) {
  ParetoRequest both = request();
  both.instances = {{"A10:4", 0, 2}, {"MI210:4", 0, 2}};
  both.source.prices = {{"A10", UsdPerSecond(1e-4)}, {"MI210", UsdPerSecond(1e-4)}};
  const ParetoAnswer found = answer(both, {});
  ASSERT_TRUE(found.found());
  EXPECT_EQ(found.result.mixes, 2 + 2);
  for (const MixPoint& point : found.result.front)
    EXPECT_TRUE(point.mix[0] == 0 || point.mix[1] == 0);
}

// p5.48xlarge is of AWS, gpu_1x_a10 of Lambda: no mix has both, and the front is what is best of
// either.
TEST(ParetoAnswer, CloudsAreComparedAndNotMixed) {
  ParetoRequest both = request();
  both.instances = {{"g5.24xlarge", 0, 2}, {"gpu_1x_a10", 0, 4}};
  const ParetoAnswer found = answer(both, {});
  ASSERT_TRUE(found.found());
  EXPECT_EQ(found.result.mixes, 2 + 4);
  ASSERT_EQ(found.warnings.size(), 1U);
  EXPECT_TRUE(found.warnings[0].starts_with("AWS, Lambda are not in one network"));
  std::vector<MixPoint> alone;
  for (const Offer& offer : both.instances) {
    ParetoRequest one = request();
    one.instances = {offer};
    for (const MixPoint& point : answer(one, {}).result.front) alone.push_back(point);
  }
  for (const MixPoint& point : found.result.front)
    EXPECT_TRUE(point.mix[0] == 0 || point.mix[1] == 0);
  for (const MixPoint& point : alone)
    EXPECT_TRUE(std::ranges::any_of(found.result.front, [&](const MixPoint& best) {
      return best.price() <= point.price() * 1.0001 && best.step() <= point.step() * 1.0001;
    }));
  for (std::size_t i = 1; i < found.result.front.size(); ++i)
    EXPECT_LT(found.result.front[i].step(), found.result.front[i - 1].step());
  // Each cloud is on the front, or its cheapest mix is told beside it.
  for (std::size_t k = 0; k < 2; ++k)
    EXPECT_TRUE(std::ranges::any_of(found.result.front, [&](const MixPoint& point) {
                  return point.mix[k] > 0;
                }) != std::ranges::any_of(found.other_clouds, [&](const auto& other) {
                  return other.cloud == (k == 0 ? "AWS" : "Lambda");
                }));
}

TEST(ParetoAnswer, PlansHaveTheIdsOfTheirOwnCluster) {
  const ParetoAnswer found = answer(request(), {});
  for (const MixPoint& point : found.result.front) {
    // The same plan is valid on the cluster that its shorthand names.
    SearchRequest alone = samples::small_request();
    alone.source.cluster = found.cluster(point);
    EXPECT_TRUE(check_plan(load_problem(alone.source).problem, found.plan(point)).empty());
  }
}

TEST(ParetoAnswer, ADeadlineChoosesTheCheapestMixWithinIt) {
  ParetoRequest wanted = request();
  wanted.objective.steps = 1000;
  const ParetoAnswer all = answer(wanted, {});
  ASSERT_GE(all.result.front.size(), 2u);
  const Seconds fast = all.training(all.result.front.back()).time;
  wanted.objective.deadline = fast * 1.001;
  const ParetoAnswer found = answer(wanted, {});
  ASSERT_TRUE(found.chosen);
  EXPECT_EQ(found.chosen->mix, all.result.front.back().mix);
  EXPECT_EQ(reason(found), "");
  wanted.objective.deadline = fast * 0.5;
  const ParetoAnswer late = answer(wanted, {});
  EXPECT_FALSE(late.chosen);
  EXPECT_TRUE(reason(late).starts_with("the fastest training takes"));
}

TEST(ParetoAnswer, SpotPricesAreLess) {
  ParetoRequest spot = request();
  spot.instances = {{"g4dn.12xlarge", 1, 1}};
  const ParetoAnswer dear = answer(spot, {});
  spot.spot = true;
  const ParetoAnswer cheap = answer(spot, {});
  EXPECT_LT(cheap.result.front.front().price(), dear.result.front.front().price());
}

TEST(ParetoAnswer, WrongOffersNameTheField) {
  const auto with = [](const std::vector<Offer>& instances) {
    ParetoRequest wrong = request();
    wrong.instances = instances;
    return complaint([&] { answer(wrong, {}); });
  };
  EXPECT_TRUE(with({{"p9.large", 0, 1}}).starts_with("`instances`: 'p9.large' is neither"));
  EXPECT_EQ(with({{"g5.24xlarge", 0, 1}, {"g5.24xlarge", 0, 2}}),
            "`instances`: 'g5.24xlarge' appears twice");
  EXPECT_EQ(with({{"A100-80GB", 0, 4}}),
            "`instances`: 'A100-80GB' is a device type: say how many of them a node has, "
            "A100-80GB:8:0-4 for nodes of 8");
}

TEST(ParetoAnswer, PinsThatNoMixCanHaveAreRefused) {
  ParetoRequest wrong = request();
  wrong.search.pins.tensor = 5;
  EXPECT_EQ(complaint([&] { answer(wrong, {}); }),
            "`tensor`: 5 does not divide the 2304 output features of decoder.attention.qkv");
}

}  // namespace
}  // namespace plait
