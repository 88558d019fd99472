#include "io/cluster/cluster_json.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "base/sample_complaint.h"
#include "io/cluster/cluster_shorthand.h"
#include "io/cluster/device_json.h"
#include "source_tree.h"

namespace plait {
namespace {

using namespace literals;

LoadedCluster load(const std::string& text) {
  return read_cluster_json(parse_json("c.json", text), builtin_catalogue());
}

std::string complaint(const std::string& text) {
  return samples::complaint([&] { load(text); });
}

// A file with these members after the version.
std::string file(const std::string& members) { return "{\"plait_cluster\": 1, " + members + "}"; }
std::string nodes(const std::string& list) { return file("\"nodes\": [" + list + "]"); }

Cluster again(const Cluster& cluster) {
  const LoadedCluster loaded = load(cluster_to_json(cluster));
  EXPECT_TRUE(loaded.warnings.empty());
  return loaded.cluster;
}

TEST(ClusterJson, TakesFromTheCatalogueWhatTheFileDoesNotSay) {
  const Cluster cluster = load(nodes(R"({"device": "A100-80GB", "count": 2})")).cluster;
  Cluster same = read_cluster_shorthand("2xA100-80GB:8", builtin_catalogue()).cluster;
  same.name = "";
  EXPECT_EQ(cluster, same);
}

TEST(ClusterJson, ReadsEveryKey) {
  const LoadedCluster loaded = load(R"({
    "plait_cluster": 1,
    "name": "two sites",
    "device_types": [{"name": "big", "like": "A100-80GB", "memory_GiB": 100}],
    "zones": [{"name": "east"}, {"name": "west"}],
    "zone_links": [{"between": ["west", "east"], "bandwidth_Gbps": 10, "latency_us": 30000}],
    "nodes": [
      {"name": "a", "count": 2, "device": "big", "devices": 4, "zone": "west",
       "intra": {"bandwidth_GBps": 250}, "network": {"bandwidth_Gbps": 800, "latency_us": 7},
       "price_usd_per_hour": 18},
      {"name": "b", "zone": "east",
       "devices": [{"type": "A100-80GB", "count": 4}, {"type": "V100-16GB", "count": 2}]},
      {"instance": "g4dn.12xlarge", "spot": true, "zone": "east"}]})");
  const Cluster& cluster = loaded.cluster;
  EXPECT_TRUE(loaded.warnings.empty());
  EXPECT_EQ(cluster.name, "two sites");
  ASSERT_EQ(cluster.nodes.size(), 4u);
  EXPECT_EQ(cluster.nodes[1].name, "a-1");
  EXPECT_EQ(cluster.nodes[0].intra.bandwidth, 250_GBps);
  EXPECT_EQ(cluster.nodes[0].intra.latency, 3.0_us);  // the type's own
  EXPECT_EQ(cluster.nodes[0].uplink, (Link{100_GBps, 7.0_us}));
  EXPECT_EQ(cluster.nodes[0].price, UsdPerSecond(18.0 / 3600));
  EXPECT_EQ(cluster.nodes[0].zone, 1);
  EXPECT_EQ(cluster.type_of(DeviceId(0)).memory, 100_GiB);
  // A mixed node: 4 + 2 devices, and the V100's NVLink for all of them.
  EXPECT_EQ(cluster.nodes[2].intra.bandwidth, 150_GBps);
  EXPECT_EQ(cluster.type_of(DeviceId(11)).name, "A100-80GB");
  EXPECT_EQ(cluster.type_of(DeviceId(12)).name, "V100-16GB");
  EXPECT_EQ(cluster.nodes[3].name, "g4dn.12xlarge-0");
  EXPECT_EQ(cluster.nodes[3].price, UsdPerSecond(1.1736 / 3600));
  // Between the zones 10 Gbit/s and 30 ms, whatever the nodes have.
  EXPECT_EQ(link_between(cluster, DeviceId(0), DeviceId(8)),
            (Link{BytesPerSecond(1.25e9), 30000.0_us}));
  EXPECT_EQ(again(cluster), cluster);
}

TEST(ClusterJson, SaysWhichZoneLinkItAssumed) {
  const std::string zones = R"("zones": [{"name": "a"}, {"name": "b"}],
      "nodes": [{"device": "T4", "zone": "a"}, {"device": "T4", "zone": "b"}])";
  EXPECT_EQ(load(file(zones)).warnings,
            (std::vector<std::string>{
                "no link between zones 'a' and 'b' is given; assuming 50 Gbit/s and 1 ms"}));
  const LoadedCluster given =
      load(file(R"("default_zone_link": {"bandwidth_GBps": 1, "latency_us": 5}, )" + zones));
  EXPECT_TRUE(given.warnings.empty());
  EXPECT_EQ(given.cluster.zone_links, (std::vector<ZoneLink>{{0, 1, {1_GBps, 5.0_us}}}));
  EXPECT_TRUE(load(file(R"("default_zone_link": "none", )" + zones)).cluster.zone_links.empty());
}

TEST(ClusterJson, WhatIsWrittenReadsAsAnEqualCluster) {
  for (const char* text :
       {"H100", "2xA100-80GB:8+4xV100-16GB:4", "12xH100", "4xp4d.24xlarge+2xg5.24xlarge",
        "2xA100:8@x+2xT4:4@y+T4:1@z", "3xL4:3/33.3Gbps", "100xMI300X:8", "7xg6e.12xlarge",
        "2xA100:8+V100:8+3xA100:8"}) {
    const Cluster cluster = read_cluster_shorthand(text, builtin_catalogue()).cluster;
    EXPECT_EQ(again(cluster), cluster) << text;
  }
}

TEST(ClusterJson, NodesThatDifferOrSkipANumberAreWrittenOneByOne) {
  Cluster cluster = read_cluster_shorthand("6xT4:2", builtin_catalogue()).cluster;
  cluster.nodes[1].name = "other";
  cluster.nodes[4].uplink.bandwidth = 3_GBps;
  EXPECT_EQ(again(cluster), cluster);
  cluster.nodes[2].name = "quotes \" and \\ and \n";
  EXPECT_EQ(again(cluster), cluster);
}

TEST(ClusterJson, TheOrderOfTypesInsideANodeIsKept) {
  Cluster cluster = read_cluster_shorthand("T4:4+V100:4", builtin_catalogue()).cluster;
  cluster.devices[1].type = 1;
  cluster.devices[3].type = 1;
  EXPECT_EQ(again(cluster), cluster);
}

TEST(ClusterJson, AThousandEqualNodesAreOneEntry) {
  const std::string text =
      cluster_to_json(read_cluster_shorthand("1000xH100:8", builtin_catalogue()).cluster);
  EXPECT_LT(text.size(), 2000u);
}

TEST(ClusterJson, ATypeOfTheFileWinsOverTheCatalogue) {
  const Cluster cluster = load(file(R"("device_types": [
      {"name": "H100", "like": "H100", "memory_GiB": 60}], "nodes": [{"device": "h100"}])"))
                              .cluster;
  EXPECT_EQ(cluster.type_of(DeviceId(0)).memory, 60_GiB);
}

TEST(ClusterJson, EachMistakeHasItsMessage) {
  const std::string two_zones = R"("zones": [{"name": "a"}, {"name": "b"}], )";
  const std::pair<std::string, std::string> table[] = {
      {"{}",
       "c.json#: 'plait_cluster' is missing: a cluster file starts with {\"plait_cluster\": 1, "
       "\"nodes\": [...]}"},
      {"[]", "c.json#: must be an object, is a list"},
      {"{",
       "c.json: not valid JSON at line 1, column 1: syntax error while parsing object key - "
       "unexpected end of input; expected string literal"},
      {R"({"plait_cluster": 2, "nodes": []})",
       "c.json#/plait_cluster: must be a whole number from 1 to 1, is 2"},
      {R"({"10.0.0.1": {"instance_type": "A100", "inter_bandwidth": 10}})",
       "c.json#: is a Metis clusterfile; give it as `clusterfile` and its hostfile as `cluster`"},
      {file(R"("node": [])"), "c.json#: unknown key 'node' (did you mean 'nodes'?)"},
      {file(R"("name": "x")"), "c.json#: 'nodes' is missing"},
      {file(R"("name": 5, "nodes": [])"), "c.json#/name: must be a text, is 5"},
      {nodes(""), "c.json#/nodes: must name at least one node"},
      {nodes("5"), "c.json#/nodes/0: must be an object, is 5"},
      {nodes("{}"), "c.json#/nodes/0: 'device' is missing (or 'instance', or a list of 'devices')"},
      {nodes(R"({"device": "A100", "gpus": 8})"), "c.json#/nodes/0: unknown key 'gpus'"},
      {nodes(R"({"device": "A100", "device_": 8})"),
       "c.json#/nodes/0: unknown key 'device_' (did you mean 'device'?)"},
      {nodes(R"({"device": "X9000"})"),
       "c.json#/nodes/0/device: unknown device type 'X9000' (did you mean 'A6000'?); `plait "
       "devices` lists them"},
      {nodes(R"({"device": "A100", "devices": 0})"),
       "c.json#/nodes/0/devices: must be a whole number from 1 to 1000000, is 0"},
      {nodes(R"({"device": "A100", "devices": 2.5})"),
       "c.json#/nodes/0/devices: must be a whole number from 1 to 1000000, is 2.5"},
      {nodes(R"({"device": "A100", "devices": -8})"),
       "c.json#/nodes/0/devices: must be a whole number from 1 to 1000000, is -8"},
      {nodes(R"({"device": "A100", "devices": "8"})"),
       "c.json#/nodes/0/devices: must be a whole number from 1 to 1000000, is \"8\""},
      {nodes(R"({"device": "A100", "count": 0})"),
       "c.json#/nodes/0/count: must be a whole number from 1 to 1000000, is 0"},
      {nodes(R"({"device": "A100", "count": 1000000000})"),
       "c.json#/nodes/0/count: must be a whole number from 1 to 1000000, is 1000000000"},
      {nodes(R"({"device": "A100", "count": 1000000})"),
       "c.json#/nodes/0: more than 1000000 devices"},
      {nodes(R"({"devices": []})"), "c.json#/nodes/0/devices: must name at least one device"},
      {nodes(R"({"devices": [{"type": "A100", "count": 0}]})"),
       "c.json#/nodes/0/devices/0/count: must be a whole number from 1 to 1000000, is 0"},
      {nodes(R"({"devices": [{"type": "A100"}]})"),
       "c.json#/nodes/0/devices/0: 'count' is missing"},
      {nodes(R"({"device": "A100", "devices": [{"type": "A100", "count": 1}]})"),
       "c.json#/nodes/0: give 'device' or a list of 'devices', not both"},
      {nodes(R"({"device": "A100", "instance": "p4d.24xlarge"})"),
       "c.json#/nodes/0: give 'instance' or 'device' and 'devices', not both"},
      {nodes(R"({"instance": "p4d"})"),
       "c.json#/nodes/0/instance: unknown instance 'p4d' (did you mean 'p4d.24xlarge'?); `plait "
       "instances` lists them"},
      {nodes(R"({"instance": "p5.48xlarge", "spot": true})"),
       "c.json#/nodes/0/spot: no spot price of 'p5.48xlarge' is known; give price_usd_per_hour"},
      {nodes(R"({"device": "A100", "spot": true})"),
       "c.json#/nodes/0/spot: goes with 'instance' only"},
      {nodes(R"({"device": "A100", "network": {"bandwidth_GBps": 0}})"),
       "c.json#/nodes/0/network/bandwidth_GBps: must be positive, is 0"},
      {nodes(R"({"device": "A100", "network": {"bandwidth_GBps": 1e300}})"),
       "c.json#/nodes/0/network/bandwidth_GBps: must be from 1e-09 to 1000000000, is 1e+300"},
      {nodes(R"({"device": "A100", "network": {"bandwidth": 1}})"),
       "c.json#/nodes/0/network: unknown key 'bandwidth' (did you mean 'bandwidth_GBps'?)"},
      {nodes(R"({"device": "A100", "intra": {"latency_us": -1}})"),
       "c.json#/nodes/0/intra/latency_us: must be at least 0, is -1"},
      {nodes(R"({"device": "A100", "intra": 5})"),
       "c.json#/nodes/0/intra: must be an object, is 5"},
      {nodes(R"({"device": "A100", "price_usd_per_hour": -1})"),
       "c.json#/nodes/0/price_usd_per_hour: must be at least 0, is -1"},
      {nodes(R"({"device": "A100", "zone": "a"})"),
       "c.json#/nodes/0/zone: zone 'a' is not among \"zones\""},
      {nodes(R"({"name": "n", "device": "A100"}, {"name": "n", "device": "A100"})"),
       "c.json#/nodes/1: node name 'n' is used twice"},
      {file(R"("zones": [], "nodes": [{"device": "A100"}])"),
       "c.json#/zones: must name at least one zone, or be left out"},
      {file(R"("zones": [{"name": "a"}, {"name": "a"}], "nodes": [{"device": "A100"}])"),
       "c.json#/zones/1: zone 'a' is named twice"},
      {file(R"("zones": [{"name": ""}], "nodes": [{"device": "A100"}])"),
       "c.json#/zones/0: a zone needs a name"},
      {file(two_zones + R"("nodes": [{"device": "A100"}])"),
       "c.json#/nodes/0: 'zone' is missing: the file names more than one"},
      {file(two_zones + R"("nodes": [{"device": "A100", "zone": "a"}],
            "zone_links": [{"between": ["a", "c"]}])"),
       "c.json#/zone_links/0/between/1: zone 'c' is not among \"zones\""},
      {file(two_zones + R"("nodes": [{"device": "A100", "zone": "a"}],
            "zone_links": [{"between": ["a"]}])"),
       "c.json#/zone_links/0/between: must name two zones"},
      {file(two_zones + R"("nodes": [{"device": "A100", "zone": "a"}],
            "zone_links": [{"between": ["a", "a"]}])"),
       "c.json#/zone_links/0: links zone 'a' with itself; inside a zone the nodes' own network "
       "counts"},
      {file(two_zones + R"("nodes": [{"device": "A100", "zone": "a"}],
            "zone_links": [{"between": ["a", "b"]}, {"between": ["b", "a"]}])"),
       "c.json#/zone_links/1: zones 'b' and 'a' already have a link"},
      {file(R"("default_zone_link": "fast", "nodes": [{"device": "A100"}])"),
       "c.json#/default_zone_link: unknown value 'fast', must be one of none"},
      {file(R"("device_types": [{"name": "m", "like": "A100"}, {"name": "M", "like": "T4"}],
            "nodes": [{"device": "m"}])"),
       "c.json#/device_types/1: device type 'M' is described twice"},
      {file(R"("device_types": [{"name": "", "like": "A100"}], "nodes": [{"device": "m"}])"),
       "c.json#/device_types/0/name: must not be empty"},
      {R"({"plait_cluster": 1, "nodes": [{"device": "A100", "devices": NaN}]})",
       "c.json: not valid JSON at line 1, column 62: syntax error while parsing value - invalid "
       "literal; last read: '\"devices\": N'"},
  };
  for (const auto& [text, message] : table) EXPECT_EQ(complaint(text), message);
}

// Each is compared with all others, so that a hundred thousand took minutes.
TEST(ClusterJson, ThousandsOfTypesAndZonesAreRefusedAtOnce) {
  std::string types;
  std::string zones;
  for (int i = 0; i < 60'000; ++i) {
    types += fmt::format(R"({}{{"name": "d{}", "like": "T4"}})", i > 0 ? ", " : "", i);
    zones += fmt::format(R"({}{{"name": "z{}"}})", i > 0 ? ", " : "", i);
  }
  const std::string rest = R"(], "nodes": [{"device": "T4", "devices": 1}])";
  EXPECT_EQ(complaint(file(R"("device_types": [)" + types + rest)),
            "c.json#/device_types: has 60000 entries, at most 1000 are read");
  EXPECT_EQ(complaint(file(R"("zones": [)" + zones + rest)),
            "c.json#/zones: has 60000 entries, at most 1000 are read");
}

TEST(ClusterJson, ATruncatedFileIsRefusedWhereverItIsCut) {
  const std::string whole =
      cluster_to_json(read_cluster_shorthand("2xA100:8@x+T4:4@y", builtin_catalogue()).cluster);
  for (std::size_t size = 0; size + 2 < whole.size(); ++size)
    EXPECT_NE(complaint(whole.substr(0, size)), "") << size;
}

TEST(ClusterJson, ADamagedByteIsReadOrRefusedButNeverCrashes) {
  const std::string whole =
      cluster_to_json(read_cluster_shorthand("2xA100:8+T4:4", builtin_catalogue()).cluster);
  for (std::size_t i = 0; i < whole.size(); ++i)
    for (const char c : {'-', '0', '9', '"', '}', '\xff'}) {
      std::string damaged = whole;
      damaged[i] = c;
      complaint(damaged);
    }
}

// The indented blocks of the manual that start a JSON object.
std::vector<std::string> manual_blocks() {
  std::vector<std::string> blocks;
  for (const char* name : {"files.md", "files-cluster.md"}) {
    const std::string path = source_dir() + "/docs/" + name;
    if (!std::filesystem::exists(path)) continue;
    std::istringstream manual(read_text_file(path));
    bool open = false;
    for (std::string line; std::getline(manual, line);) {
      if (line == "    {") blocks.emplace_back();
      open = line.starts_with("    ") && (open || line == "    {");
      if (open) blocks.back() += line + "\n";
    }
  }
  return blocks;
}

TEST(ClusterJson, TheManualsExamplesAreRead) {
  int clusters = 0;
  int catalogues = 0;
  const auto path = std::filesystem::temp_directory_path() / "plait_manual_catalogue.json";
  for (const std::string& block : manual_blocks()) {
    if (block.find("\"plait_cluster\"") != block.npos) {
      EXPECT_EQ(complaint(block), "");
      ++clusters;
    }
    if (block.find("\"plait_catalogue\"") != block.npos) {
      write_text_file(path.string(), block);
      EXPECT_NO_THROW(load_catalogue({path.string()}));
      ++catalogues;
    }
  }
  std::filesystem::remove(path);
  EXPECT_EQ(clusters, 1);
  EXPECT_EQ(catalogues, 1);
}

TEST(ClusterJson, EveryExampleIsReadAndComesBackTheSame) {
  int examples = 0;
  const std::filesystem::path folder = source_dir() + "/examples/clusters";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    if (entry.path().filename() == "metis_clusterfile.json") continue;
    const LoadedCluster loaded = load_cluster(entry.path().string());
    EXPECT_TRUE(loaded.warnings.empty()) << entry.path();
    EXPECT_EQ(again(loaded.cluster), loaded.cluster) << entry.path();
    ++examples;
  }
  EXPECT_GE(examples, 6);
}

}  // namespace
}  // namespace plait
