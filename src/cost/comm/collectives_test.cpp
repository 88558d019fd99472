#include "cost/comm/collectives.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "plan/sample_problems.h"

namespace plait {
namespace {

constexpr double kTolerance = 1e-12;

std::vector<DeviceId> devices(int first, int stride, int count) {
  std::vector<DeviceId> ids;
  for (int i = 0; i < count; ++i) ids.push_back(DeviceId(first + i * stride));
  return ids;
}

Cluster two_nodes() { return samples::cluster_of(samples::plain_device(), 2, 8); }

TEST(Collectives, ARingInANodeHasAHopLessThanMembers) {
  const Cluster cluster = two_nodes();
  const Group group = group_of(cluster, devices(0, 1, 8));
  // 7/8 of 80 MB at 100 GB/s, 0.7 ms, and 7 hops of 5 us; twice for an all-reduce.
  const double one_way = 0.7e-3 + 35e-6;
  EXPECT_NEAR(all_gather(group, Bytes(80e6)).value, one_way, kTolerance);
  EXPECT_NEAR(reduce_scatter(group, Bytes(80e6)).value, one_way, kTolerance);
  EXPECT_NEAR(all_reduce(group, Bytes(80e6)).value, 2 * one_way, kTolerance);
}

TEST(Collectives, AcrossNodesTheNetworkIsTheNarrowestAndATreeTheShortest) {
  const Cluster cluster = two_nodes();
  const Group group = group_of(cluster, devices(0, 1, 16));
  // A node's network carries 200 GB/s, so the link of 100 GB/s inside is narrower; 15/16 of 160 MB
  // take 1.5 ms. Four hops of a tree, 5 us of wire and 15 us of protocol each.
  EXPECT_NEAR(all_gather(group, Bytes(160e6)).value, 1.5e-3 + 4 * 20e-6, kTolerance);
}

TEST(Collectives, GroupsOfANodeShareItsNetwork) {
  const Cluster cluster = two_nodes();
  // Device 0 and device 8, while seven more such pairs reduce: 200 / 8 GB/s for half of 50 MB.
  const Group pair = group_of(cluster, devices(0, 8, 2), 8);
  EXPECT_NEAR(all_gather(pair, Bytes(50e6)).value, 25e6 / 25e9 + 20e-6, kTolerance);
}

TEST(Collectives, OneMemberAndNothingToSendTakeNoTime) {
  const Cluster cluster = two_nodes();
  EXPECT_EQ(all_reduce({}, Bytes(1e9)).value, 0);
  EXPECT_EQ(all_to_all({}, Bytes(1e9), {2}).value, 0);
  EXPECT_EQ(all_reduce(group_of(cluster, devices(0, 1, 8)), Bytes(0)).value, 0);
}

TEST(Collectives, ANodeIsSentEveryTokenOnce) {
  const Cluster cluster = two_nodes();
  const Group group = group_of(cluster, devices(0, 1, 16));
  // Every member sends 16 MB, four copies of each token: 15/16 of it over links of 100 GB/s, 0.15
  // ms. One of 16 tokens has none of its four experts on the other node; of the rest a copy leaves:
  // 3.75 MB of each of 8 members through 200 GB/s, 0.15 ms.
  EXPECT_NEAR(all_to_all(group, Bytes(16e6), {4}).value, 0.15e-3 + 0.15e-3 + 2 * 5e-6, kTolerance);
  // With one copy all of it may have to leave: half of 16 MB.
  EXPECT_NEAR(all_to_all(group, Bytes(16e6), {1}).value, 0.15e-3 + 0.32e-3 + 2 * 5e-6, kTolerance);
}

TEST(Collectives, TheCalibratedPartOfTheLinksIsReached) {
  DeviceType type = samples::plain_device();
  type.efficiency.intra = 0.5;
  type.efficiency.inter = 0.25;
  const Cluster cluster = samples::cluster_of(type, 2, 8);
  EXPECT_EQ(group_of(cluster, devices(0, 1, 8)).intra.bandwidth, BytesPerSecond(50e9));
  EXPECT_EQ(group_of(cluster, devices(0, 1, 16)).inter.bandwidth, BytesPerSecond(50e9));
}

TEST(Collectives, WithoutASwitchAGroupHasTheLinksToItsMembers) {
  // Seven links to the seven neighbours in a node of 8: a pair has one, a group of four three.
  DeviceType mesh = samples::plain_device();
  mesh.switched = false;
  const Cluster cluster = samples::cluster_of(mesh, 2, 8);
  const auto bandwidth = [&](int members) {
    return group_of(cluster, devices(0, 1, members)).intra.bandwidth.value;
  };
  EXPECT_NEAR(bandwidth(2), 100e9 / 7, 1);
  EXPECT_NEAR(bandwidth(4), 100e9 * 3 / 7, 1);
  EXPECT_NEAR(bandwidth(8), 100e9, 1);
  EXPECT_NEAR(link_between(cluster, DeviceId(0), DeviceId(3)).bandwidth.value, 100e9 / 7, 1);
}

TEST(Collectives, SmallOnesGoRoundAllMembers) {
  const Cluster cluster = two_nodes();
  // 14 hops of 5 us inside the nodes, two of 5 us of wire and 5 us of protocol between them.
  const Ring ring(group_of(cluster, devices(0, 1, 16)));
  EXPECT_NEAR(ring.ring_latency().value, 14 * 5e-6 + 2 * 10e-6, kTolerance);
}

TEST(Collectives, LinksInsideANodeCarryEveryByte) {
  const Cluster cluster = two_nodes();
  // Device 0, 1, 8 and 9 share a node's 200 GB/s with three other such groups: 50 of 100 GB/s.
  std::vector<DeviceId> ids{DeviceId(0), DeviceId(1), DeviceId(8), DeviceId(9)};
  EXPECT_NEAR(links_share(group_of(cluster, ids, 4)), 0.5, kTolerance);
  EXPECT_EQ(links_share(group_of(cluster, devices(0, 1, 8))), 1);
  EXPECT_EQ(links_share(group_of(cluster, devices(0, 8, 2), 8)), 0);
}

// Against all choices of groups, with copies that go anywhere in them.
TEST(Collectives, TokensOfChosenGroupsVisitFewerNodes) {
  const auto seconds = [](int nodes, const Visits& visits) {
    Group group;
    group.nodes = nodes;
    group.per_node = 1;
    group.members = nodes;
    group.inter = {BytesPerSecond(1), Seconds(0)};
    group.intra = {BytesPerSecond(1), Seconds(0)};
    return all_to_all(group, Bytes(visits.copies), visits).value;  // nodes visited but its own
  };
  for (const int nodes : {2, 4, 8})
    for (const int chosen : {1, 3, 4, 8}) {
      constexpr int kGroups = 8;
      constexpr double kCopies = 5;
      double visited = 0;
      double choices = 0;
      for (unsigned mask = 0; mask < 1U << kGroups; ++mask) {
        if (std::popcount(mask) != chosen) continue;
        const unsigned of_first_node = mask & ((1U << (kGroups / nodes)) - 1);
        const double part = std::popcount(of_first_node) / static_cast<double>(chosen);
        visited += 1 - std::pow(1 - part, kCopies);
        ++choices;
      }
      EXPECT_NEAR(seconds(nodes, {kCopies, kGroups, static_cast<double>(chosen)}),
                  (nodes - 1) * visited / choices, 1e-12)
          << nodes << " nodes, " << chosen << " groups";
    }
  // A group of several nodes: half of the groups, then one of its two nodes.
  EXPECT_NEAR(seconds(16, {1, 8, 4}), 15 / 16.0, 1e-12);
  EXPECT_NEAR(seconds(16, {5, 8, 8}), seconds(16, {5}), 1e-12);
}

}  // namespace
}  // namespace plait
