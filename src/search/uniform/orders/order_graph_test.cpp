#include "search/uniform/orders/order_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace plait {
namespace {

using Place = OrderGraph::Place;
using Key = std::tuple<std::vector<NodePart>, int, bool>;

Key key_of(const Place& place) { return {place.parts, place.stage, place.ends_host}; }

double cost_of(const Place& place) {
  unsigned hash = 7U + static_cast<unsigned>(place.stage);
  for (const NodePart& part : place.parts)
    hash = hash * 131U + static_cast<unsigned>(31 * part.kind + 7 * part.first + part.count);
  return 1 + hash % 97U / 10.0;
}

// Parts in the order of their hosts, but for groups that are whole: those are sorted.
std::vector<NodePart> with_sorted_groups(int devices, const std::vector<NodePart>& parts) {
  std::vector<std::vector<NodePart>> groups(1);
  int count = 0;
  for (const NodePart& part : parts) {
    groups.back().push_back(part);
    count += part.count;
    if (count % devices == 0) groups.emplace_back();
  }
  std::sort(groups.begin(), groups.end() - 1);
  std::vector<NodePart> out;
  for (const std::vector<NodePart>& group : groups)
    out.insert(out.end(), group.begin(), group.end());
  return out;
}

// The stages of one order of hosts.
std::vector<Place> places_of(const OrderGraph::Shape& shape, const std::vector<int>& order) {
  std::vector<Place> out;
  std::vector<NodePart> parts;
  int open = 0;
  for (const int kind : order)
    for (int first = 0; first < shape.devices[kind];) {
      const int count = std::min(shape.devices[kind] - first, shape.stage_devices - open);
      parts.push_back({kind, first, count});
      first += count;
      open += count;
      if (open < shape.stage_devices) continue;
      out.push_back({with_sorted_groups(shape.group_devices, parts), static_cast<int>(out.size()),
                     first == shape.devices[kind]});
      parts.clear();
      open = 0;
    }
  return out;
}

struct Sums {
  double least = HUGE_VAL;
  std::map<Key, double> before;
  std::map<Key, double> after;
};

void keep_least(std::map<Key, double>& sums, const Place& place, double sum) {
  const auto [at, is_new] = sums.try_emplace(key_of(place), sum);
  at->second = std::min(at->second, sum);
}

Sums of_every_order(const OrderGraph::Shape& shape, const auto& may) {
  std::vector<int> order;
  for (int k = 0; k < static_cast<int>(shape.mix.size()); ++k)
    order.insert(order.end(), shape.mix[k], k);
  Sums sums;
  do {
    const std::vector<Place> places = places_of(shape, order);
    if (!std::ranges::all_of(places, may)) continue;
    double all = 0;
    for (const Place& place : places) all += cost_of(place);
    sums.least = std::min(sums.least, all);
    double before = 0;
    for (const Place& place : places) {
      keep_least(sums.before, place, before);
      before += cost_of(place);
      keep_least(sums.after, place, all - before);
    }
  } while (std::ranges::next_permutation(order).found);
  return sums;
}

class OrderGraphShapes : public testing::TestWithParam<OrderGraph::Shape> {};

TEST_P(OrderGraphShapes, SumsAreTheLeastOverEveryOrder) {
  for (const int banned : {-1, 0, 1, 2}) {
    const auto may = [&](const Place& place) {
      return banned < 0 || static_cast<int>(10 * cost_of(place)) % 4 != banned;
    };
    const auto graph = OrderGraph::of(GetParam(), may);
    ASSERT_TRUE(graph);
    std::vector<double> costs;
    for (const Place& place : graph->places()) costs.push_back(cost_of(place));
    const Sums every = of_every_order(GetParam(), may);
    const std::vector<double> before = graph->least_before(costs);
    const std::vector<double> after = graph->least_after(costs);
    if (std::isinf(every.least)) {
      EXPECT_TRUE(std::isinf(graph->least(costs)));
      continue;
    }
    EXPECT_NEAR(graph->least(costs), every.least, 1e-9);
    std::size_t found = 0;
    for (std::size_t i = 0; i < costs.size(); ++i) {
      const Key key = key_of(graph->places()[i]);
      if (!every.before.contains(key)) continue;
      ++found;
      // Before it are places from which not all hosts can be placed, too.
      EXPECT_LE(before[i], every.before.at(key) + 1e-9);
      EXPECT_LE(after[i], every.after.at(key) + 1e-9);
      if (banned >= 0) continue;
      EXPECT_NEAR(before[i], every.before.at(key), 1e-9);
      EXPECT_NEAR(after[i], every.after.at(key), 1e-9);
    }
    EXPECT_EQ(found, every.before.size());
  }
}

// Every stage has up to two things, each of which takes what its place says.
TEST_P(OrderGraphShapes, PlacedSumsAreTheLeastOverEveryOrder) {
  const OrderGraph::Shape shape = GetParam();
  const auto graph = OrderGraph::of(shape, [](const Place&) { return true; });
  ASSERT_TRUE(graph);
  constexpr int kMost = 5;
  const OrderGraph::Placed found =
      graph->least_placed(kMost, [&](int place, const auto& before, auto& after) {
        for (int done = 0; done <= kMost; ++done)
          for (int n = 0; n <= std::min(2, kMost - done); ++n)
            after[done + n] =
                std::min(after[done + n], before[done] + n * n * cost_of(graph->places()[place]));
      });
  std::vector<int> order;
  for (int k = 0; k < static_cast<int>(shape.mix.size()); ++k)
    order.insert(order.end(), shape.mix[k], k);
  std::vector<double> least(kMost + 1, HUGE_VAL);
  do {
    std::vector<double> sums(kMost + 1, HUGE_VAL);
    sums[0] = 0;
    for (const Place& place : places_of(shape, order))
      for (int n = kMost; n > 0; --n)
        for (int own = 1; own <= std::min(2, n); ++own)
          sums[n] = std::min(sums[n], sums[n - own] + own * own * cost_of(place));
    for (int n = 0; n <= kMost; ++n) least[n] = std::min(least[n], sums[n]);
  } while (std::ranges::next_permutation(order).found);
  for (int n = 0; n <= kMost; ++n) {
    if (std::isfinite(least[n]))
      EXPECT_NEAR(found[n], least[n], 1e-9);
    else
      EXPECT_EQ(found[n], least[n]);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, OrderGraphShapes,
                         testing::Values(OrderGraph::Shape{{4, 8}, {3, 2}, 2, 2, 10'000},
                                         OrderGraph::Shape{{4, 2, 6}, {2, 3, 1}, 4, 4, 10'000},
                                         OrderGraph::Shape{{4, 2, 6}, {2, 3, 1}, 4, 1, 10'000},
                                         OrderGraph::Shape{{4, 2, 6}, {3, 3, 1}, 12, 4, 10'000},
                                         OrderGraph::Shape{{3, 5}, {4, 3}, 9, 9, 10'000},
                                         OrderGraph::Shape{{2, 2, 2}, {3, 2, 2}, 14, 1, 10'000}));

TEST(OrderGraph, HasNoMoreEdgesThanAskedFor) {
  const auto any = [](const Place&) { return true; };
  const OrderGraph::Shape shape{{4, 4}, {10, 10}, 2, 2, 220};
  EXPECT_TRUE(OrderGraph::of(shape, any));
  EXPECT_FALSE(OrderGraph::of({{4, 4}, {10, 10}, 2, 2, 219}, any));
}

}  // namespace
}  // namespace plait
