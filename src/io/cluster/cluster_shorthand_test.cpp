#include "io/cluster/cluster_shorthand.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/sample_complaint.h"

namespace plait {
namespace {

using namespace literals;

Cluster read(const std::string& text) {
  return read_cluster_shorthand(text, builtin_catalogue()).cluster;
}

std::string complaint(const std::string& text) {
  return samples::complaint([&] { read(text); });
}

std::vector<int> devices_per_node(const Cluster& cluster) {
  std::vector<int> out(cluster.nodes.size());
  for (const Device& device : cluster.devices) ++out[device.node];
  return out;
}

TEST(Shorthand, AnInstanceMaySayHowManyDevicesItHas) {
  EXPECT_EQ(read("2xp4d.24xlarge:8").device_count(), 16);
}

TEST(ClusterShorthand, CountsNodesAndDevices) {
  const Cluster cluster = read("4xA100-80GB:8");
  EXPECT_EQ(cluster.device_count(), 32);
  EXPECT_EQ(devices_per_node(cluster), (std::vector<int>{8, 8, 8, 8}));
  EXPECT_EQ(cluster.device_types.size(), 1u);
  EXPECT_EQ(cluster.device_types[0].name, "A100-80GB");
  EXPECT_EQ(cluster.nodes[3].name, "A100-80GB-3");
  // 8 adapters of 200 Gbit/s = 8 * 25 GB/s.
  EXPECT_EQ(cluster.nodes[0].uplink.bandwidth, 200_GBps);
  EXPECT_EQ(cluster.nodes[0].intra.bandwidth, 300_GBps);
}

TEST(ClusterShorthand, DevicesOfWhichFewerAreUsualInANodeAreSaidToBeSeveral) {
  const auto warnings = [](const char* text) {
    return read_cluster_shorthand(text, builtin_catalogue()).warnings;
  };
  const std::vector<std::string> read_as{
      "8xRTX4090 is read as 2 nodes of 4, joined by 25 Gbit/s; RTX4090:8 is one node"};
  EXPECT_EQ(warnings("8xRTX4090"), read_as);
  for (const char* clear : {"RTX4090:8", "4xRTX4090", "16xRTX4090", "64xH100", "2xRTX4090:4"})
    EXPECT_TRUE(warnings(clear).empty()) << clear;
}

TEST(ClusterShorthand, BlanksAndOtherSignsForTimesChangeNothing) {
  const Cluster cluster = read("4xA100-80GB:8+2xT4:4");
  for (const char* text : {" 4 x A100-80GB : 8 + 2 X T4 :4 ", "4*A100-80GB:8+2*T4:4",
                           "4\u00d7A100-80GB:8 + 2 \u00d7 T4:4"}) {
    Cluster other = read(text);
    other.name = cluster.name;
    EXPECT_EQ(other, cluster) << text;
  }
}

TEST(ClusterShorthand, NodesMayBeCalledSo) {
  const Cluster cluster = read("2xH100:8");
  for (const char* text : {"2x8 H100", "2 nodes of 8 H100", "2 nodes x 8 H100", "2 nodes of 8xH100",
                           "2 Servers with 8 NVIDIA H100"}) {
    Cluster other = read(text);
    other.name = cluster.name;
    EXPECT_EQ(other, cluster) << text;
  }
}

TEST(ClusterShorthand, ABlankAfterTheNumberCountsDevices) {
  EXPECT_EQ(devices_per_node(read("12 H100")), devices_per_node(read("12xH100")));
  EXPECT_EQ(read("1xp4d.24xlarge@a+1xa2-highgpu-8g@b").zones.size(), 2u);
}

TEST(ClusterShorthand, PartsJoinedByCommasAreToldWhatJoinsThem) {
  EXPECT_EQ(complaint("4xA100-80GB:8,2xT4:4"),
            "`cluster` '4xA100-80GB:8,2xT4:4': kinds of node are joined by '+', not by ',' or ';'");
}

TEST(ClusterShorthand, MixesTypesInOrder) {
  const Cluster cluster = read(" 2xA100-80GB:8 + 4xV100-16GB:4 ");
  EXPECT_EQ(devices_per_node(cluster), (std::vector<int>{8, 8, 4, 4, 4, 4}));
  EXPECT_EQ(cluster.type_of(DeviceId(15)).name, "A100-80GB");
  EXPECT_EQ(cluster.type_of(DeviceId(16)).name, "V100-16GB");
}

TEST(ClusterShorthand, AnAliasIsTheSameType) {
  const Cluster cluster = read("A100:8+a100_80gb:8+NVIDIA A100-SXM4-80GB:8");
  EXPECT_EQ(cluster.device_types.size(), 1u);
  EXPECT_EQ(cluster.nodes[2].name, "A100-80GB-2");
}

TEST(ClusterShorthand, WithoutANodeSizeFillsUsualNodes) {
  EXPECT_EQ(devices_per_node(read("H100")), (std::vector<int>{1}));
  EXPECT_EQ(devices_per_node(read("8xH100")), (std::vector<int>{8}));
  EXPECT_EQ(devices_per_node(read("12xH100")), (std::vector<int>{8, 4}));
  EXPECT_EQ(devices_per_node(read("64xGB200")), (std::vector<int>{64}));
}

TEST(ClusterShorthand, SystemsOfTheMakersAreNodes) {
  EXPECT_EQ(devices_per_node(read("2xDGX-H100")), (std::vector<int>{8, 8}));
  EXPECT_EQ(devices_per_node(read("HGX B200:4")), (std::vector<int>{4}));
  EXPECT_EQ(read("DGX-A100").type_of(DeviceId(0)).name, "A100-80GB");
  EXPECT_TRUE(complaint("DGX-X9").find("'DGX-X9' is not a file") != std::string::npos);
}

TEST(ClusterShorthand, ARackHasAsManyDevicesAsItsNameSays) {
  EXPECT_EQ(devices_per_node(read("GB200-NVL72")), (std::vector<int>{72}));
  EXPECT_EQ(devices_per_node(read("2xGB300 NVL36")), (std::vector<int>{36, 36}));
  EXPECT_EQ(devices_per_node(read("2xH100-NVL")), (std::vector<int>{2}));  // a card of that name
  EXPECT_EQ(read("GB200-NVL72").type_of(DeviceId(0)).name, "GB200");
}

TEST(ClusterShorthand, NumbersMayStandBehindOrTwice) {
  EXPECT_EQ(devices_per_node(read("A100x16")), (std::vector<int>{8, 8}));
  EXPECT_EQ(devices_per_node(read("4090x2")), (std::vector<int>{2}));
  EXPECT_EQ(read("4090x2").type_of(DeviceId(0)).name, "RTX4090");
  EXPECT_EQ(devices_per_node(read("2x4xH100")), (std::vector<int>{4, 4}));
  EXPECT_EQ(devices_per_node(read("p4d.24xlargex2")), (std::vector<int>{8, 8}));
  EXPECT_NE(complaint("2x4xH10").find("'4xH10' is not a file"), std::string::npos);
}

TEST(ClusterShorthand, NodesLargerThanServersAreSaidToBeOne) {
  const LoadedCluster large = read_cluster_shorthand("H100:64", builtin_catalogue());
  ASSERT_EQ(large.warnings.size(), 1U);
  EXPECT_EQ(large.warnings[0],
            "H100:64 is one node of 64, joined as 8 are in a server; 64xH100 is 8 nodes of 8");
  EXPECT_TRUE(read_cluster_shorthand("A100:16", builtin_catalogue()).warnings.empty());
  EXPECT_TRUE(read_cluster_shorthand("GB200:72", builtin_catalogue()).warnings.empty());
}

TEST(ClusterShorthand, InstancesBringTheirPriceAndNetwork) {
  const Cluster cluster = read("4xp4d.24xlarge+2xg5.24xlarge");
  EXPECT_EQ(devices_per_node(cluster), (std::vector<int>{8, 8, 8, 8, 4, 4}));
  // 4 * 21.957642 + 2 * 8.144 USD/h.
  EXPECT_NEAR(cluster.price().value * 3600, 104.118568, 1e-9);
  EXPECT_EQ(cluster.nodes[0].uplink.bandwidth, 50_GBps);  // 400 Gbit/s
  EXPECT_EQ(cluster.nodes[0].name, "p4d.24xlarge-0");
}

TEST(ClusterShorthand, NetworkMayBeGiven) {
  for (const char* rate : {"400Gbps", "400G", "400GbE", "0.4Tbps", "50GBps"})
    EXPECT_EQ(read(fmt::format("2xA100-80GB:8/{}", rate)).nodes[0].uplink.bandwidth, 50_GBps);
  EXPECT_EQ(read("2xA100-80GB:8/50GBps@east").nodes[1].uplink.bandwidth, 50_GBps);
  EXPECT_EQ(read("2xA100-80GB:8/400Gb/s").nodes[1].uplink.bandwidth, 50_GBps);
  EXPECT_EQ(read("2xA100-80GB:8 / 50GB/s @ east").nodes[1].uplink.bandwidth, 50_GBps);
}

TEST(ClusterShorthand, ZonesAreJoinedByAnAssumedLink) {
  const LoadedCluster loaded =
      read_cluster_shorthand("2xA100:8@us-east+2xA100:8@us-west", builtin_catalogue());
  const Cluster& cluster = loaded.cluster;
  EXPECT_EQ(cluster.zones, (std::vector<std::string>{"us-east", "us-west"}));
  ASSERT_EQ(cluster.zone_links.size(), 1u);
  EXPECT_EQ(link_between(cluster, DeviceId(0), DeviceId(16)).latency, 1000.0_us);
  ASSERT_EQ(loaded.warnings.size(), 1u);
  EXPECT_EQ(loaded.warnings[0],
            "no link between zones 'us-east' and 'us-west' is given; assuming 50 Gbit/s and 1 ms");
}

TEST(ClusterShorthand, AMillionDevicesAreReadOneMoreIsNot) {
  EXPECT_EQ(read("125000xH100:8").device_count(), 1'000'000);
  EXPECT_EQ(complaint("125000xH100:8+H100"), "`cluster` 'H100': more than 1000000 devices");
  EXPECT_EQ(complaint("1000000xH100:1000000"),
            "`cluster` '1000000xH100:1000000': more than 1000000 devices");
}

TEST(ClusterShorthand, EachMistakeHasItsMessage) {
  const std::pair<const char*, const char*> table[] = {
      {"4xA100:8@10Gbps",
       "`cluster` '4xA100:8@10Gbps': '@' names a zone; the network of a node stands behind '/': "
       "4xA100:8/10Gbps"},
      {"0xA100:8",
       "`cluster` '0xA100:8': the number before 'x' must be a whole number from 1 to 1000000, is "
       "'0'"},
      {"-4xA100:8",
       "`cluster` '-4xA100:8': the number before 'x' must be a whole number from 1 to 1000000, is "
       "'-4'"},
      {"2.5xA100:8",
       "`cluster` '2.5xA100:8': the number before 'x' must be a whole number from 1 to 1000000, "
       "is '2.5'"},
      {"99999999999999999999xA100:8",
       "`cluster` '99999999999999999999xA100:8': the number before 'x' must be a whole number from "
       "1 to 1000000, is '99999999999999999999'"},
      {"4xA100:0",
       "`cluster` '4xA100:0': the number of devices per node must be a whole number from 1 to "
       "1000000, is '0'"},
      {"4xA100:",
       "`cluster` '4xA100:': the number of devices per node must be a whole number from 1 to "
       "1000000, is ''"},
      {"4xA100:eight",
       "`cluster` '4xA100:eight': the number of devices per node must be a whole number from 1 to "
       "1000000, is 'eight'"},
      {"1xp4d.24xlarge+1xa2-highgpu-8g",
       "`cluster` '1xa2-highgpu-8g': 'a2-highgpu-8g' is of GCP and 'p4d.24xlarge' of AWS, which "
       "are not in one network: give each a zone (p4d.24xlarge@a + a2-highgpu-8g@b)"},
      {"4x", "`cluster` '4x': a device type or instance name is missing"},
      {":8", "`cluster` ':8': a device type or instance name is missing"},
      {"A100:8+", "`cluster` 'A100:8+': a part between '+' is empty"},
      {"A100:8++V100:8", "`cluster` 'A100:8++V100:8': a part between '+' is empty"},
      {"A100:8@", "`cluster` 'A100:8@': a zone name is missing after '@'"},
      {"A100:8@x+A100:8",
       "`cluster` 'A100:8': names no zone but another part does; add '@zone' to it"},
      {"A100:8/fast",
       "`cluster` 'A100:8/fast': the network after '/' must be like 400Gbps (bits) or 50GBps "
       "(bytes), is 'fast'"},
      {"A100:8/-1Gbps",
       "`cluster` 'A100:8/-1Gbps': the network after '/' must be like 400Gbps (bits) or 50GBps "
       "(bytes), is '-1Gbps'"},
      {"A100:8/nanGbps",
       "`cluster` 'A100:8/nanGbps': the network after '/' must be like 400Gbps (bits) or 50GBps "
       "(bytes), is 'nanGbps'"},
      {"p4d.24xlarge:4",
       "`cluster` 'p4d.24xlarge:4': instance 'p4d.24xlarge' always has 8 devices; leave ':4' "
       "out, or write 4xp4d.24xlarge for 4 of them"},
      {"4xMI30X:8",
       "`cluster` '4xMI30X:8': 'MI30X' is not a file, device type or instance (did you mean "
       "'MI300X'?); `plait devices` and `plait instances` list the names, a `catalogue` adds types "
       "of your own, and '4xA100-80GB:8' is 4 nodes of 8"},
      {"32xTPUv4",
       "`cluster` '32xTPUv4': 'TPUv4' is not predicted: the types that are known are GPUs "
       "(`plait devices`); a `catalogue` file describes others, and plait profile measures the "
       "machine that it runs on"},
      {"2xp4d",
       "`cluster` '2xp4d': 'p4d' is not a file, device type or instance (did you mean "
       "'p4d.24xlarge'?); `plait devices` and `plait instances` list the names, a `catalogue` adds "
       "types of your own, and '4xA100-80GB:8' is 4 nodes of 8"},
  };
  for (const auto& [text, message] : table) EXPECT_EQ(complaint(text), message);
  for (const char* slice : {"v5e-16", "v4-32", "v5p", "v6e-8", "v5litepod-8"})
    EXPECT_NE(complaint(slice).find("is not predicted: the types that are known"),
              std::string::npos)
        << slice;
  EXPECT_EQ(complaint("V100-16GB"), "");
}

}  // namespace
}  // namespace plait
