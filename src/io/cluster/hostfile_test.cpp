#include "io/cluster/hostfile.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/sample_complaint.h"
#include "io/format/json_reader.h"
#include "source_tree.h"

namespace plait {
namespace {

using namespace literals;

// A folder that is gone at the end of the test.
class TemporaryFolder {
 public:
  TemporaryFolder() { std::filesystem::create_directories(path_); }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name, const std::string& text) const {
    std::string path = (path_ / name).string();
    write_text_file(path, text);
    return path;
  }

 private:
  std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("plait_hostfile_test_" + std::to_string(getpid()));
};

using samples::complaint;

ClusterOptions all(const std::string& device) {
  ClusterOptions options;
  options.device = device;
  return options;
}

Cluster read(const std::string& text, const std::string& device = "A100-80GB") {
  return read_hostfile("hosts", text, all(device)).cluster;
}

std::string names(const Cluster& cluster) {
  std::string out;
  std::vector<int> counts(cluster.nodes.size());
  for (const Device& device : cluster.devices) ++counts[device.node];
  for (std::size_t i = 0; i < counts.size(); ++i)
    out += cluster.nodes[i].name + ":" + std::to_string(counts[i]) + " ";
  return out;
}

TEST(Hostfile, ReadsDeepSpeedsForm) {
  EXPECT_EQ(names(read("worker-1 slots=8\nworker-2 slots=16\n")), "worker-1:8 worker-2:16 ");
}

TEST(Hostfile, ReadsTwoColumns) {
  EXPECT_EQ(names(read("10.0.0.1 8\n10.0.0.2 4")), "10.0.0.1:8 10.0.0.2:4 ");
}

TEST(Hostfile, ReadsMpichsForm) {
  EXPECT_EQ(names(read("a:8\nb:4 # the other\n")), "a:8 b:4 ");
  EXPECT_NE(complaint([] { read("a:many\n"); }).find("whole number"), std::string::npos);
  EXPECT_NE(complaint([] { read("fe80::1\n"); }).find("has no number of devices"),
            std::string::npos);
}

TEST(Hostfile, SlurmsListsAreSeveralHosts) {
  const Cluster cluster = read("gpu-[08-10,21]-ib slots=4\n[2001:db8::1] slots=4\n");
  ASSERT_EQ(cluster.nodes.size(), 5U);
  EXPECT_EQ(cluster.nodes[0].name, "gpu-08-ib");
  EXPECT_EQ(cluster.nodes[2].name, "gpu-10-ib");
  EXPECT_EQ(cluster.nodes[3].name, "gpu-21-ib");
  EXPECT_EQ(cluster.device_count(), 20);
  for (const char* bad : {"n[1-2 slots=4", "n[2-1] slots=4", "n[a] slots=4", "n[] slots=4",
                          "n[1-9999999] slots=4", "n[1][2] slots=4"})
    EXPECT_NE(complaint([&] { read(bad); }).find("is no list such as node[01-04,07]"),
              std::string::npos)
        << bad;
}

TEST(Hostfile, SkipsCommentsBlankLinesAndAnyBlanks) {
  EXPECT_EQ(
      names(read("# hosts\n\n  a\t \tslots=2   # the first\r\n\t\nb slots=3 max_slots=4\n\n")),
      "a:2 b:3 ");
}

TEST(Hostfile, TheDeviceGivesLinksAndPrice) {
  const Cluster cluster = read("a slots=4", "H100");
  EXPECT_EQ(cluster.nodes[0].uplink.bandwidth, 200_GBps);  // 4 * 400 Gbit/s
  EXPECT_EQ(cluster.nodes[0].price, cluster.device_types[0].price * 4);
}

TEST(Hostfile, AHostAgainIsANodeOnlyInTwoColumns) {
  EXPECT_EQ(names(read("0.0.0.4 4\n0.0.0.4 4\n0.0.0.4 4")), "0.0.0.4:4 0.0.0.4#2:4 0.0.0.4#3:4 ");
  EXPECT_EQ(complaint([] { read("a slots=4\nb slots=4\na slots=4"); }),
            "hosts:3: host 'a' appears twice");
}

TEST(Hostfile, EachMistakeHasItsMessage) {
  const std::pair<const char*, const char*> table[] = {
      {"", "hosts: names no host"},
      {"# nothing\n", "hosts: names no host"},
      {"a", "hosts:1: host 'a' has no number of devices; write 'a slots=8'"},
      {"a slots=",
       "hosts:1: the number of devices must be a whole number from 1 to 1000000, is ''"},
      {"a slots=0",
       "hosts:1: the number of devices must be a whole number from 1 to 1000000, is '0'"},
      {"a -4", "hosts:1: the number of devices must be a whole number from 1 to 1000000, is '-4'"},
      {"a 4.5",
       "hosts:1: the number of devices must be a whole number from 1 to 1000000, is '4.5'"},
      {"\na slots=99999999999",
       "hosts:2: the number of devices must be a whole number from 1 to 1000000, is '99999999999'"},
      {"a slots=8 8", "hosts:1: names the number of devices twice"},
      {"slots=8", "hosts:1: starts with a setting; the host name comes first: 'host slots=8'"},
      {"a gpus=8", "hosts:1: 'gpus=8' is not understood; a line is 'host slots=8' or 'host 8'"},
      {"\x7f\x45\x4c\x46 8", "hosts:1: the host name has characters that no host name has"},
      {"a slots=1000000\nb slots=1", "hosts:2: more than 1000000 devices"},
  };
  for (const auto& row : table) EXPECT_EQ(complaint([&] { read(row.first); }), row.second);
  EXPECT_EQ(complaint([] { read("a slots=8", ""); }),
            "hosts: a hostfile does not say what the devices are; add `device` A100-80GB (any name "
            "of `plait devices`), or `clusterfile`");
  EXPECT_EQ(complaint([] { read("a slots=8", "A100-88GB"); }),
            "`device`: unknown device type 'A100-88GB' (did you mean 'A100-80GB'?); `plait "
            "devices` lists them");
}

TEST(Clusterfile, GivesTypeMemoryAndLinks) {
  const TemporaryFolder folder;
  ClusterOptions options;
  options.clusterfile = folder.file("clusterfile.json", R"({
    "ip1": {"instance_type": "a100", "inter_bandwidth": 10, "intra_bandwidth": 46, "memory": 40},
    "ip2": {"instance_type": "V100", "inter_bandwidth": 5, "intra_bandwidth": 50, "memory": 16},
    "spare": {"instance_type": "T4", "inter_bandwidth": 5, "intra_bandwidth": 50, "memory": 15}})");
  const LoadedCluster loaded = read_hostfile("hosts", "ip2 slots=2\nip1 slots=4", options);
  const Cluster& cluster = loaded.cluster;
  EXPECT_TRUE(loaded.warnings.empty());
  EXPECT_EQ(names(cluster), "ip2:2 ip1:4 ");
  EXPECT_EQ(cluster.type_of(DeviceId(0)).name, "V100-16GB");
  EXPECT_EQ(cluster.type_of(DeviceId(2)).name, "A100-40GB");  // chosen by the 40 GB
  EXPECT_EQ(cluster.type_of(DeviceId(2)).memory, 40_GiB);     // as the file says
  EXPECT_EQ(cluster.nodes[1].intra.bandwidth, 46_GBps);
  EXPECT_EQ(cluster.nodes[1].uplink.bandwidth, 10_GBps);
  EXPECT_EQ(link_between(cluster, DeviceId(0), DeviceId(2)).bandwidth, 5_GBps);
}

TEST(Clusterfile, BytesPerSecondAreToldFromGigabytes) {
  const TemporaryFolder folder;
  ClusterOptions options;
  options.clusterfile = folder.file("clusterfile.json", R"({
    "a": {"instance_type": "A100", "inter_bandwidth": 312500000.0, "intra_bandwidth": 5312500000.0,
          "memory": 80}})");
  const LoadedCluster loaded = read_hostfile("hosts", "a slots=4", options);
  EXPECT_EQ(loaded.cluster.nodes[0].uplink.bandwidth, BytesPerSecond(312.5e6));
  EXPECT_EQ(loaded.cluster.nodes[0].intra.bandwidth, BytesPerSecond(5312.5e6));
  EXPECT_EQ(loaded.warnings,
            (std::vector<std::string>{options.clusterfile +
                                      "#/a/inter_bandwidth: 312500000 is taken as bytes/s, that is "
                                      "0.3125 GB/s; so are all other bandwidths over 1e6"}));
}

TEST(Clusterfile, AHostAgainIsAnotherNode) {
  const TemporaryFolder folder;
  ClusterOptions options;
  options.clusterfile =
      folder.file("clusterfile.json", R"({"a": {"instance_type": "A100", "inter_bandwidth": 10}})");
  EXPECT_EQ(names(read_hostfile("hosts", "a slots=4\na slots=4", options).cluster), "a:4 a#2:4 ");
}

TEST(Clusterfile, MemoryThatNoVariantHasMakesATypeOfItsOwn) {
  const TemporaryFolder folder;
  ClusterOptions options;
  options.clusterfile = folder.file("clusterfile.json", R"({
    "a": {"instance_type": "T4", "inter_bandwidth": 10, "memory": 8},
    "b": {"instance_type": "T4", "inter_bandwidth": 10, "memory": 15},
    "c": {"instance_type": "T4", "inter_bandwidth": 10, "memory": 14}})");
  const Cluster cluster =
      read_hostfile("hosts", "a slots=1\nb slots=1\nc slots=1", options).cluster;
  EXPECT_EQ(cluster.type_of(DeviceId(0)).name, "T4-8GiB");
  EXPECT_EQ(cluster.type_of(DeviceId(1)).name, "T4");
  EXPECT_EQ(cluster.type_of(DeviceId(2)).name, "T4-14GiB");
  EXPECT_EQ(cluster.type_of(DeviceId(2)).memory, 14_GiB);
}

TEST(Clusterfile, EachMistakeHasItsMessage) {
  const std::pair<const char*, const char*> table[] = {
      {R"({"b": {"instance_type": "A100", "inter_bandwidth": 10}})", ""},
      {R"({"a": {"instance_type": "A100"}})", "#/a: 'inter_bandwidth' is missing"},
      {R"({"a": {"inter_bandwidth": 10}})", "#/a: 'instance_type' is missing"},
      {R"({"a": {"instance_type": "A1OO", "inter_bandwidth": 10}})",
       "#/a/instance_type: unknown device type 'A1OO' (did you mean 'A10'?); `plait devices` lists "
       "them"},
      {R"({"a": {"instance_type": "A100", "inter_bandwidth": 0}})",
       "#/a/inter_bandwidth: must be positive, is 0"},
      {R"({"a": {"instance_type": "A100", "inter_bandwidth": 1e19}})",
       "#/a/inter_bandwidth: is more than any link in bytes/s"},
      {R"({"a": {"instance_type": "A100", "inter_bandwidth": 10, "memory": 85899345920}})",
       "#/a/memory: must be in GB, is 85899345920"},
      {R"({"a": {"instance_type": "A100", "inter_bandwith": 10}})",
       "#/a: unknown key 'inter_bandwith' (did you mean 'inter_bandwidth'?)"},
      {R"({"a": 5})", "#/a: must be an object, is 5"},
      {R"([])", "#: must be an object, is a list"},
      {R"({"plait_cluster": 1})",
       ": is a native cluster file; give it as `cluster`, without a hostfile"},
  };
  const TemporaryFolder folder;
  for (const auto& [text, message] : table) {
    ClusterOptions options;
    options.clusterfile = folder.file("c.json", text);
    const std::string expected = *message == '\0'
                                     ? "hosts:1: host 'a' is not in " + options.clusterfile
                                     : options.clusterfile + message;
    EXPECT_EQ(complaint([&] { read_hostfile("hosts", "a slots=8", options); }), expected);
  }
  ClusterOptions both = all("A100");
  both.clusterfile = "c.json";
  EXPECT_EQ(complaint([&] { read_hostfile("hosts", "a slots=8", both); }),
            "hosts: give `clusterfile` or `device`, not both");
}

TEST(Clusterfile, ReadsMetisOwnSamples) {
  const std::filesystem::path folder = source_dir() + "/../shared/data/metis";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no ../shared/data/metis";
  // Nodes x devices of each case: 2x4, 1x4+1x4, 2x4+2x4, 3x8+3x8+2x8, 2x4+2x4.
  const int devices[] = {8, 8, 16, 64, 16};
  const std::size_t types[] = {1, 2, 2, 3, 2};
  for (int i = 0; i < 5; ++i) {
    const std::filesystem::path sample = folder / ("case" + std::to_string(i + 1));
    ClusterOptions options;
    options.clusterfile = (sample / "clusterfile.json").string();
    const Cluster cluster = load_cluster((sample / "hostfile").string(), options).cluster;
    EXPECT_EQ(cluster.device_count(), devices[i]);
    EXPECT_EQ(cluster.device_types.size(), types[i]);
    EXPECT_EQ(cluster.device_types[0].name, "A100-80GB");
    EXPECT_EQ(cluster.device_types[0].memory, 80_GiB);
    EXPECT_EQ(cluster.nodes[0].intra.bandwidth, 46_GBps);
  }
}

}  // namespace
}  // namespace plait
