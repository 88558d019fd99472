#include "graph/mesh/route.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <set>

#include "graph/search/sample_meshes.h"

namespace plait::graph {
namespace {

constexpr int kRank = 2;
constexpr int kSide = 8;  // of the array, in both dimensions

using samples::mesh_of;

// The elements of a device: the axes of a dimension cut it, the coarsest first.
std::set<int> elements_of(const Mesh& mesh, const Placement& placement, int device) {
  std::vector<int> at(mesh.sizes.size());
  for (std::size_t a = mesh.sizes.size(); a-- > 0;) {
    at[a] = device % mesh.sizes[a];
    device /= mesh.sizes[a];
  }
  int from[kRank] = {0, 0};
  int length[kRank] = {kSide, kSide};
  for (int d = 0; d < kRank; ++d)
    for (const int a : placement.axes_of(d)) {
      length[d] /= mesh.sizes[a];
      from[d] += at[a] * length[d];
    }
  std::set<int> made;
  for (int i = 0; i < length[0]; ++i)
    for (int j = 0; j < length[1]; ++j) made.insert((from[0] + i) * kSide + from[1] + j);
  return made;
}

bool all_of_devices(const Mesh& mesh, const Placement& a, const Placement& b,
                    const std::function<bool(const std::set<int>&, const std::set<int>&)>& holds) {
  for (int device = 0; device < mesh.devices(); ++device)
    if (!holds(elements_of(mesh, a, device), elements_of(mesh, b, device))) return false;
  return true;
}

// What a step of each kind does to the elements of every device.
bool is_such_a_step(const Mesh& mesh, const Placement& before, const Leg& leg) {
  const auto inside = [](const std::set<int>& a, const std::set<int>& b) {
    return std::ranges::includes(a, b);
  };
  if (!leg.transfer) return all_of_devices(mesh, before, leg.after, inside);
  if (leg.transfer->kind == CollectiveKind::all_gather)
    return all_of_devices(mesh, leg.after, before, inside);
  return all_of_devices(mesh, before, leg.after,
                        [](const auto& a, const auto& b) { return a.size() == b.size(); });
}

Placement random_placement(const Mesh& mesh, std::mt19937& random) {
  std::vector<int> order;
  for (int a = 0; a < mesh.axes(); ++a)
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(random() % (order.size() + 1)), a);
  Placement made;
  std::int8_t next[kRank] = {0, 0};
  for (const int a : order) {
    made.dim[a] = static_cast<std::int8_t>(static_cast<int>(random() % (kRank + 1)) - 1);
    if (made.dim[a] >= 0) made.rank[a] = next[made.dim[a]]++;
  }
  return made;
}

TEST(Route, EveryStepIsOneCollectiveAndTheLastEndsWhereItShould) {
  std::mt19937 random(1);
  for (const std::vector<int>& sizes : {std::vector<int>{8}, {2, 4}, {4, 2}, {2, 2, 2}}) {
    const Mesh mesh = mesh_of(sizes);
    for (int i = 0; i < 500; ++i) {
      const Placement from = random_placement(mesh, random);
      const Placement to = random_placement(mesh, random);
      Placement now = from;
      Bytes sent;
      for (const Leg& leg : route(mesh, Bytes(64), from, to)) {
        EXPECT_TRUE(is_such_a_step(mesh, now, leg));
        if (leg.transfer)
          sent += traffic_of(mesh, leg.transfer->kind, leg.transfer->axes, leg.transfer->size);
        now = leg.after;
      }
      EXPECT_EQ(now, to);
      // Never more than gathering everything and dividing it again, and one permutation.
      EXPECT_LE(sent, Bytes(64 + 64 / static_cast<double>(mesh.size_of(from.axes()))));
    }
  }
}

Placement placed(std::initializer_list<std::pair<int, std::pair<int, int>>> axes) {
  Placement made;
  for (const auto& [axis, at] : axes) {
    made.dim[axis] = static_cast<std::int8_t>(at.first);
    made.rank[axis] = static_cast<std::int8_t>(at.second);
  }
  return made;
}

TEST(Route, AnAxisBeforeOneThatStaysIsBroughtToTheEndFirst) {
  // P(('x', 'y')) to P('y') on 2 x 4: 8 parts of 8 bytes change places, then pairs are gathered.
  const Mesh mesh = mesh_of({2, 4});
  const Placement before = placed({{0, {0, 0}}, {1, {0, 1}}});
  const Placement after = placed({{1, {0, 0}}});
  EXPECT_EQ(transfers(mesh, Bytes(64), before, after),
            (std::vector<Transfer>{{CollectiveKind::permute, 3U, Bytes(8)},
                                   {CollectiveKind::all_gather, 1U, Bytes(16)}}));
}

TEST(Route, EqualAxesThatChangePlacesArePermuted) {
  const Mesh mesh = mesh_of({2, 2, 2});
  EXPECT_EQ(transfers(mesh, Bytes(64), placed({{0, {0, 0}}, {1, {1, 0}}}),
                      placed({{0, {1, 0}}, {1, {0, 0}}})),
            (std::vector<Transfer>{{CollectiveKind::permute, 3U, Bytes(16)}}));
}

TEST(Route, TwoAxesMoveTogether) {
  // P(('x', 'y'), None) to P(None, ('x', 'y')): one exchange among all.
  const Mesh mesh = mesh_of({2, 4});
  EXPECT_EQ(transfers(mesh, Bytes(64), placed({{0, {0, 0}}, {1, {0, 1}}}),
                      placed({{0, {1, 0}}, {1, {1, 1}}})),
            (std::vector<Transfer>{{CollectiveKind::all_to_all, 3U, Bytes(8)}}));
}

}  // namespace
}  // namespace plait::graph
