#include "io/cluster/load_cluster.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/sample_complaint.h"
#include "io/format/json_reader.h"
#include "source_tree.h"

namespace plait {
namespace {

std::string complaint(const std::string& text, const ClusterOptions& options = {}) {
  return samples::complaint([&] { load_cluster(text, options); });
}

std::string example(const std::string& name) { return source_dir() + "/examples/clusters/" + name; }

TEST(LoadCluster, TellsTheThreeFormsApart) {
  EXPECT_EQ(load_cluster("2xA100-80GB:8").cluster.device_count(), 16);
  EXPECT_EQ(load_cluster(example("dgx_h100_pair.json")).cluster.device_count(), 16);
  ClusterOptions options;
  options.device = "A100-80GB";
  EXPECT_EQ(load_cluster(example("hostfile"), options).cluster.device_count(), 16);
  options.device = "";
  options.clusterfile = example("metis_clusterfile.json");
  EXPECT_EQ(load_cluster(example("metis_hostfile"), options).cluster.device_count(), 12);
}

TEST(LoadCluster, ATextThatBeginsWithABraceIsTheFileItself) {
  const std::string text = R"({"plait_cluster": 1, "nodes": [{"device": "T4", "devices": 4}]})";
  EXPECT_EQ(load_cluster(text).cluster.device_count(), 4);
  EXPECT_EQ(load_cluster(text).cluster.name, "cluster");
  EXPECT_EQ(complaint(R"( {"plait_cluster": 1, "node": []})"),
            "cluster#: unknown key 'node' (did you mean 'nodes'?)");
  ClusterOptions options;
  options.device = "T4";
  EXPECT_EQ(complaint(text, options), "cluster: is JSON; --device goes with a hostfile only");
}

TEST(LoadCluster, WhatWasMeasuredOnOneDeviceHoldsForOneAlone) {
  const auto h200 = [](const char* cluster) {
    return load_cluster(cluster).cluster.device_types.front();
  };
  const DeviceType h100 = load_cluster("8xH100").cluster.device_types.front();
  EXPECT_EQ(h200("H200").basis, "measured");
  EXPECT_NE(h200("H200").efficiency, h100.efficiency);
  EXPECT_EQ(h200("8xH200").basis, "copied from H100");
  EXPECT_EQ(h200("8xH200").efficiency, h100.efficiency);
}

TEST(LoadCluster, AFileWithoutANameIsCalledAfterItself) {
  const auto path = std::filesystem::temp_directory_path() / "plait_my_cluster.json";
  write_text_file(path.string(), R"({"plait_cluster": 1, "nodes": [{"device": "T4"}]})");
  EXPECT_EQ(load_cluster(path.string()).cluster.name, "plait_my_cluster");
  std::filesystem::remove(path);
}

TEST(LoadCluster, EachMistakeHasItsMessage) {
  const std::string forms =
      "a cluster is a JSON file, a hostfile, or a shorthand such as "
      "'2xA100-80GB:8+4xV100-16GB:4' (nodes x type : devices per node)";
  EXPECT_EQ(complaint(""), "`cluster`: is empty; " + forms);
  EXPECT_EQ(complaint("none.json"), "none.json: no such file; " + forms);
  EXPECT_EQ(complaint("./A100:8"), "./A100:8: no such file; " + forms);
  const std::string folder = source_dir() + "/examples";
  EXPECT_EQ(complaint(folder), folder + ": is a directory, a file is needed");

  ClusterOptions options;
  options.device = "T4";
  EXPECT_EQ(complaint("8xT4", options),
            "8xT4: no such hostfile; --device goes with a hostfile only");
  const std::string json = example("dgx_h100_pair.json");
  EXPECT_EQ(complaint(json, options), json + ": is JSON; --device goes with a hostfile only");
  options.device = "";
  options.clusterfile = "x.json";
  EXPECT_EQ(complaint("8xT4", options),
            "8xT4: no such hostfile; `clusterfile` goes with a hostfile only");
  EXPECT_EQ(complaint(json, options), json + ": is JSON; `clusterfile` goes with a hostfile only");
  EXPECT_EQ(complaint(example("hostfile"), options), "x.json: No such file or directory");

  const auto empty = std::filesystem::temp_directory_path() / "plait_empty_cluster";
  write_text_file(empty.string(), " \n\t");
  EXPECT_EQ(complaint(empty.string()), empty.string() + ": is empty");
  std::filesystem::remove(empty);
}

}  // namespace
}  // namespace plait
