#include "io/cluster/catalogue.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "base/sample_complaint.h"
#include "io/cluster/device_json.h"

namespace plait {
namespace {

using namespace literals;

using samples::complaint;

// A file that is gone at the end of the test.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text)
      : path_((std::filesystem::temp_directory_path() /
               ("plait_catalogue_test_" + std::to_string(getpid())))
                  .string()) {
    write_text_file(path_, text);
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Catalogue with_file(const std::string& text) {
  const TemporaryFile file(text);
  return load_catalogue({file.path()});
}

TEST(Catalogue, EveryDeviceIsComplete) {
  for (const DeviceEntry& entry : builtin_catalogue().devices) {
    SCOPED_TRACE(entry.type.name);
    const DeviceType& type = entry.type;
    EXPECT_GT(type.memory, 7_GiB);
    EXPECT_LT(type.memory, 512_GiB);
    EXPECT_GT(type.memory_bandwidth, 200_GBps);
    EXPECT_GT(type.peak_of(DType::fp32), 5_Tflops);
    EXPECT_GT(type.peak_of(DType::fp16), type.peak_of(DType::fp32));
    EXPECT_GE(type.intra.bandwidth, 15_GBps);
    EXPECT_GT(type.intra.latency, Seconds(0));
    EXPECT_GE(type.per_node, 1);
    EXPECT_GT(entry.network.bandwidth, 1_GBps);
    EXPECT_FALSE(entry.source.empty());
    EXPECT_FALSE(entry.link_kind.empty());
  }
}

TEST(Catalogue, PeaksFollowTheHardware) {
  for (const DeviceEntry& entry : builtin_catalogue().devices) {
    SCOPED_TRACE(entry.type.name);
    const double fp16 = entry.type.peak[static_cast<int>(DType::fp16)].value;
    const double bf16 = entry.type.peak[static_cast<int>(DType::bf16)].value;
    const double fp8 = entry.type.peak[static_cast<int>(DType::fp8)].value;
    const double tf32 = entry.type.peak[static_cast<int>(DType::tf32)].value;
    // Dense tensor rates double with each halving of the width; a figure with sparsity would show
    // as a factor of 4. A missing format is 0.
    if (bf16 > 0) {
      EXPECT_EQ(bf16, fp16);
    }
    if (fp8 > 0) {
      EXPECT_NEAR(fp8 / fp16, 2, 0.03);
    }
    if (tf32 > 0) {
      EXPECT_NEAR(fp16 / tf32, 2, 0.05);
    }
  }
}

TEST(Catalogue, HoldsTheDevicesThatPeopleName) {
  for (const char* name : {"T4",
                           "P100",
                           "V100-16GB",
                           "V100-32GB",
                           "A10",
                           "A10G",
                           "L4",
                           "L40S",
                           "RTX3090",
                           "RTX4090",
                           "A100-40GB",
                           "A100-80GB",
                           "A800",
                           "H100",
                           "H100-PCIe",
                           "H100-NVL",
                           "H200",
                           "A100-40GB-PCIe",
                           "A100-80GB-PCIe",
                           "GH200",
                           "B200",
                           "B300",
                           "GB200",
                           "GB300",
                           "MI250X",
                           "MI300X",
                           "MI325X",
                           "MI350X",
                           "MI355X",
                           "RTX2080Ti",
                           "TITAN-RTX",
                           "A6000",
                           "A40",
                           "H800",
                           "H20",
                           "A30",
                           "RTX5090",
                           "RTX6000-Ada"}) {
    const DeviceEntry* entry = lookup_device(builtin_catalogue(), name);
    ASSERT_NE(entry, nullptr) << name;
    EXPECT_EQ(entry->type.name, name);
  }
}

TEST(Catalogue, NoNameMeansTwoThings) {
  std::set<std::string> seen;
  for (const std::string_view name : device_names(builtin_catalogue()))
    EXPECT_TRUE(seen.insert(plain_name(name)).second) << name;
  for (const std::string_view name : instance_names(builtin_catalogue()))
    EXPECT_TRUE(seen.insert(plain_name(name)).second) << name;
}

TEST(Catalogue, EveryInstanceIsComplete) {
  for (const Instance& instance : builtin_catalogue().instances) {
    SCOPED_TRACE(instance.name);
    EXPECT_NE(lookup_device(builtin_catalogue(), instance.device), nullptr);
    EXPECT_GE(instance.count, 1);
    EXPECT_GT(instance.network.bandwidth, Link{}.bandwidth);
    EXPECT_FALSE(instance.provider.empty());
    EXPECT_FALSE(instance.source.empty());
    EXPECT_EQ(instance.date.size(), 4u);  // a year
    EXPECT_LE(instance.spot, instance.price);
    if (instance.price.value > 0) {
      const double usd_per_device = in_usd_per_hour(instance.price) / instance.count;
      EXPECT_GT(usd_per_device, 0.3);
      EXPECT_LT(usd_per_device, 20);
    }
  }
}

TEST(Catalogue, FindsByAliasWhateverTheSpelling) {
  const Catalogue& catalogue = builtin_catalogue();
  const std::pair<const char*, const char*> table[] = {
      {"A100", "A100-80GB"},
      {"a100_40gb", "A100-40GB"},
      {"V100", "V100-16GB"},
      {"NVIDIA A100-SXM4-80GB", "A100-80GB"},
      {"H100-SXM", "H100"},
      {"NVIDIA H100 80GB HBM3", "H100"},
      {"Tesla T4", "T4"},
      {"NVIDIA GeForce RTX 3090", "RTX3090"},
      {"AMD Instinct MI300X", "MI300X"},
      {"Tesla V100-SXM2-16GB", "V100-16GB"},
      {"NVIDIA H200", "H200"},
      {"A100-PCIE-40GB", "A100-40GB-PCIe"},
      {"NVIDIA RTX A6000", "A6000"},
      {"mi355x", "MI355X"},
  };
  for (const auto& [given, name] : table)
    EXPECT_EQ(find_device(catalogue, given, "").type.name, name) << given;
  EXPECT_EQ(find_instance(catalogue, "ND96asr_v4", "").name, "Standard_ND96asr_v4");
  EXPECT_EQ(find_instance(catalogue, "P4D.24XLARGE", "").count, 8);
}

TEST(Catalogue, SuggestsTheNearestName) {
  EXPECT_EQ(complaint([] { find_device(builtin_catalogue(), "A100-81GB", "c.json#/x"); }),
            "c.json#/x: unknown device type 'A100-81GB' (did you mean 'A100-80GB'?); "
            "`plait devices` lists them");
  EXPECT_EQ(complaint([] { find_instance(builtin_catalogue(), "p4d.24large", "x"); }),
            "x: unknown instance 'p4d.24large' (did you mean 'p4d.24xlarge'?); `plait instances` "
            "lists them");
  EXPECT_EQ(complaint([] { find_device(builtin_catalogue(), "abacus", "x"); }),
            "x: unknown device type 'abacus'; `plait devices` lists them");
}

TEST(Catalogue, ADevicesPriceIsItsShareOfTheUsualInstance) {
  // p4d.24xlarge: 21.957642 USD/h for 8.
  const DeviceEntry& entry = find_device(builtin_catalogue(), "A100-40GB", "");
  EXPECT_NEAR(in_usd_per_hour(entry.type.price), 2.74470525, 1e-12);
}

TEST(Catalogue, EveryDeviceSaysWhereItsConstantsComeFrom) {
  for (const DeviceEntry& entry : builtin_catalogue().devices) {
    const std::string& basis = entry.type.basis;
    const std::string from = "copied from ";
    if (basis == "measured" || basis == "fitted") continue;
    ASSERT_TRUE(basis.starts_with(from)) << entry.type.name;
    const std::string other = basis.substr(from.size(), basis.find(',') - from.size());
    EXPECT_NE(lookup_device(builtin_catalogue(), other), nullptr) << entry.type.name;
  }
}

TEST(Catalogue, OneCloudHasOnePriceOfADevice) {
  // What one H100 of the same cloud costs in machines of one and of eight is the same; sizes that
  // differ in processors and memory may differ up to nine times.
  for (const Instance& a : builtin_catalogue().instances)
    for (const Instance& b : builtin_catalogue().instances) {
      if (a.provider != b.provider || a.device != b.device) continue;
      if (!(a.price > UsdPerSecond(0)) || !(b.price > UsdPerSecond(0))) continue;
      const double ratio = (a.price / a.count) / (b.price / b.count);
      const bool alike = a.device == "H100" || a.device == "H200" || a.device == "A100-80GB";
      EXPECT_LT(ratio, alike ? 1.1 : 9) << a.name << " " << b.name;
    }
}

TEST(Catalogue, ANodesNetworkGrowsWithItsDevicesWhereEachHasAnAdapter) {
  const DeviceEntry& h100 = find_device(builtin_catalogue(), "H100", "");
  EXPECT_EQ(usual_node(h100, 8).uplink.bandwidth, 400_GBps);  // 8 * 400 Gbit/s
  EXPECT_EQ(usual_node(h100, 2).uplink.bandwidth, 100_GBps);
  const DeviceEntry& t4 = find_device(builtin_catalogue(), "T4", "");
  EXPECT_EQ(usual_node(t4, 4).uplink.bandwidth, usual_node(t4, 1).uplink.bandwidth);
}

TEST(Catalogue, AFileAddsAndReplaces) {
  const Catalogue catalogue = with_file(R"({"plait_catalogue": 1,
    "devices": [{"name": "H100", "like": "H100", "memory_GiB": 64},
                {"name": "Mine", "memory_GiB": 10, "memory_bandwidth_GBps": 500,
                 "peak_TFLOPs": {"fp16": 50}, "link": {"bandwidth_Gbps": 80},
                 "efficiency": {"matmul": 0.5, "kernel_us": 7}}],
    "instances": [{"name": "my.box", "device": "mine", "count": 2, "usd_per_hour": 1}]})");
  EXPECT_EQ(find_device(catalogue, "H100", "").type.memory, 64_GiB);
  EXPECT_EQ(find_device(catalogue, "H100", "").type.memory_bandwidth, 3350_GBps);
  EXPECT_EQ(catalogue.devices.size(), builtin_catalogue().devices.size() + 1);
  const DeviceEntry& mine = find_device(catalogue, "mine", "");
  EXPECT_EQ(mine.type.intra.bandwidth, 10_GBps);
  EXPECT_EQ(mine.type.efficiency.matmul, 0.5);
  EXPECT_EQ(mine.type.efficiency.kernel, 7.0_us);
  EXPECT_EQ(mine.type.efficiency.attention, Efficiency{}.attention);
  EXPECT_EQ(find_instance(catalogue, "my.box", "").device, "Mine");
}

TEST(Catalogue, ANewPriceOfTheUsualInstanceIsANewPriceOfTheDevice) {
  const Catalogue catalogue = with_file(R"({"plait_catalogue": 1,
    "devices": [{"name": "T4", "like": "T4", "price_usd_per_hour": 0.2}],
    "instances": [{"name": "p4d.24xlarge", "device": "A100-40GB", "count": 8, "usd_per_hour": 16},
                  {"name": "g4dn.12xlarge", "device": "T4", "count": 4, "usd_per_hour": 100}]})");
  EXPECT_EQ(find_device(catalogue, "A100-40GB", "").type.price, usd_per_hour(2));  // 16 / 8
  EXPECT_EQ(find_device(catalogue, "T4", "").type.price, usd_per_hour(0.2));       // as stated
}

TEST(Catalogue, EachMistakeInAFileHasItsMessage) {
  const std::string start = R"({"plait_catalogue": 1, "devices": [{"name": "X", )";
  const std::string whole = start + R"("memory_GiB": 1, "memory_bandwidth_GBps": 1,
      "peak_TFLOPs": {"fp16": 1}, "link": {"bandwidth_GBps": 1})";
  const std::pair<std::string, std::string> table[] = {
      {"[]", "#: must be an object, is a list"},
      {"{}", "#: 'plait_catalogue' is missing"},
      {R"({"plait_catalogue": 2})", "#/plait_catalogue: must be a whole number from 1 to 1, is 2"},
      {R"({"plait_catalogue": 1, "device": []})",
       "#: unknown key 'device' (did you mean 'devices'?)"},
      {start + R"("memory_GB": 1}]})",
       "#/devices/0: unknown key 'memory_GB' (did you mean 'memory_GiB'?)"},
      {start + R"("memory_GiB": 1}]})", "#/devices/0: 'memory_bandwidth_GBps' is missing"},
      {start + R"("memory_GiB": -1}]})", "#/devices/0/memory_GiB: must be positive, is -1"},
      {start + R"("memory_GiB": 1e300}]})",
       "#/devices/0/memory_GiB: must be from 1e-06 to 1000000000, is 1e+300"},
      {start + R"("memory_GiB": "80"}]})", "#/devices/0/memory_GiB: must be a number, is \"80\""},
      {start + R"("like": "H1000"}]})",
       "#/devices/0/like: unknown device type 'H1000' (did you mean 'H100'?); `plait devices` "
       "lists "
       "them"},
      {start + R"("like": "H100", "peak_TFLOPs": {}}]})",
       "#/devices/0/peak_TFLOPs: needs a positive peak for at least one dtype"},
      {start + R"("like": "H100", "peak_TFLOPs": {"fp17": 1}}]})",
       "#/devices/0/peak_TFLOPs: unknown key 'fp17' (did you mean 'fp16'?)"},
      {start + R"("like": "H100", "link": {"bandwidth_GBps": 1, "bandwidth_Gbps": 8}}]})",
       "#/devices/0/link: give bandwidth_GBps or bandwidth_Gbps, not both"},
      {whole + R"(, "efficiency": {"matmul": 1.2}}]})",
       "#/devices/0/efficiency/matmul: must be from 1e-06 to 1, is 1.2"},
      {whole + R"(, "efficiency": {"matmull": 0.2}}]})",
       "#/devices/0/efficiency: unknown key 'matmull' (did you mean 'matmul'?)"},
      {whole + R"(, "price_usd_per_hour": 1, "usual_instance": "p4d.24xlarge"}]})",
       "#/devices/0: give price_usd_per_hour or usual_instance, not both"},
      {whole + R"(, "per_node": 0}]})",
       "#/devices/0/per_node: must be a whole number from 1 to 1000000, is 0"},
      {whole + R"(, "network": {"per": "rack"}}]})",
       "#/devices/0/network/per: unknown value 'rack', must be one of node, device"},
      {R"({"plait_catalogue": 1, "instances": [{"name": "i", "device": "H100", "count": 0}]})",
       "#/instances/0/count: must be a whole number from 1 to 1000000, is 0"},
      {R"({"plait_catalogue": 1, "instances": [{"name": "i", "device": "H100", "count": 1,
          "usd_per_hour": -2}]})",
       "#/instances/0/usd_per_hour: must be at least 0, is -2"},
  };
  for (const auto& [text, message] : table) {
    const TemporaryFile file(text);
    EXPECT_EQ(complaint([&] { load_catalogue({file.path()}); }), file.path() + message);
  }
}

TEST(DeviceJson, EveryTypeOfTheCatalogueComesBackTheSame) {
  for (const DeviceEntry& entry : builtin_catalogue().devices) {
    const JsonValue object = parse_json("t", device_type_json(entry.type));
    EXPECT_EQ(read_device_type(object, nullptr), entry.type) << entry.type.name;
  }
}

TEST(DeviceJson, EveryPriceAndRateThatWasReadComesBackTheSame) {
  // 1/3 and its multiples exercise all bits of the significand.
  for (int i = 1; i < 20'000; ++i) {
    const double number = i / 3.0;
    const UsdPerSecond price = usd_per_hour(number);
    EXPECT_EQ(usd_per_hour(in_usd_per_hour(price)), price);
    const BytesPerSecond rate = gigabytes_per_second(number);
    EXPECT_EQ(gigabytes_per_second(in_gigabytes_per_second(rate)), rate);
  }
}

}  // namespace
}  // namespace plait
