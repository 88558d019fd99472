#include "cluster/cluster.h"

#include <gtest/gtest.h>

namespace plait {
namespace {

using namespace literals;

// Two nodes in zone 0, one in zone 1, two devices each.
Cluster three_nodes() {
  Cluster cluster;
  cluster.device_types.resize(1);
  cluster.zones = {"x", "y"};
  cluster.zone_links = {{1, 0, {2_GBps, 500.0_us}}};
  for (int n = 0; n < 3; ++n) {
    Node node;
    node.zone = n / 2;
    node.intra = {300_GBps, 3.0_us};
    node.uplink = {BytesPerSecond(1e9 * (10 - n)), Seconds(1e-6 * (5 + n))};
    node.price = UsdPerSecond(n);
    cluster.nodes.push_back(node);
    cluster.devices.insert(cluster.devices.end(), 2, Device{0, n});
  }
  return cluster;
}

TEST(Cluster, DevicesOfOneNodeUseItsOwnLink) {
  EXPECT_EQ(link_between(three_nodes(), DeviceId(0), DeviceId(1)), (Link{300_GBps, 3.0_us}));
}

TEST(Cluster, NodesOfOneZoneUseTheSlowerUplink) {
  EXPECT_EQ(link_between(three_nodes(), DeviceId(0), DeviceId(2)),
            (Link{9_GBps, Seconds(1e-6 * 6)}));
}

TEST(Cluster, TheLinkOfTwoZonesCountsInBothDirections) {
  const Cluster cluster = three_nodes();
  EXPECT_EQ(link_between(cluster, DeviceId(0), DeviceId(4)), (Link{2_GBps, 500.0_us}));
  EXPECT_EQ(link_between(cluster, DeviceId(5), DeviceId(3)), (Link{2_GBps, 500.0_us}));
}

TEST(Cluster, PriceIsTheSumOfItsNodes) {
  EXPECT_EQ(three_nodes().price(), UsdPerSecond(0 + 1 + 2));
}

}  // namespace
}  // namespace plait
