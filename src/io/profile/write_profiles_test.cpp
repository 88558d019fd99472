#include "io/profile/write_profiles.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "io/model/zoo.h"
#include "io/profile/import_profile.h"

namespace plait {
namespace {

std::string scratch(const std::string& name) {
  return (std::filesystem::temp_directory_path() / (std::to_string(getpid()) + name)).string();
}

Profile measured(const Model& model) {
  Profile profile;
  for (const int tensor : {1, 2})
    for (const LayerKind& kind : model.kinds) {
      ComputeSample sample;
      sample.forward = Seconds(1e-3 / tensor);
      sample.backward = Seconds(2e-3 / tensor);
      sample.saved_activations = Bytes(0x1p20);
      sample.optimizer = Seconds(1e-4);
      profile.compute[{.unit = kind.name, .device_type = "V100", .tensor = tensor}] = sample;
    }
  profile.collectives[{"all_reduce", "V100", 1, 2}] = {{Bytes(0x1p20), Seconds(1e-4)},
                                                       {Bytes(0x1p24), Seconds(1e-3)}};
  return profile;
}

TEST(WriteMetis, IsReadBackByTheImporter) {
  const Model model = zoo_model("gpt2-medium", 1024)->model;
  const std::string directory = scratch("metis");
  write_files(metis_files(measured(model), model, {}), directory);
  const Profile back = import_profile("", directory, model).profile;
  ASSERT_EQ(back.compute.size(), 2 * model.kinds.size());
  const ComputeSample& sample =
      back.compute.at({.unit = "decoder", .device_type = "V100", .tensor = 1});
  EXPECT_NEAR(sample.both->value, 3e-3, 1e-9);
  // With two devices the reductions, four of 2 MiB between the points of the curve, are inside.
  const ComputeSample& cut =
      back.compute.at({.unit = "decoder", .device_type = "V100", .tensor = 2});
  const double reduction = 1e-4 + (1e-3 - 1e-4) * (2.0 - 1) / (16 - 1);
  EXPECT_NEAR(cut.both->value, 1.5e-3 + 4 * reduction, 1e-9);
  std::filesystem::remove_all(directory);
}

TEST(WriteAceso, IsReadBackByTheImporter) {
  const Model model = zoo_model("gpt2-medium", 1024)->model;
  const std::string directory = scratch("aceso");
  write_files(aceso_files(measured(model), model, {}), directory);
  const Profile back = import_profile("", directory, model).profile;
  const ComputeSample& sample =
      back.compute.at({.unit = "decoder", .device_type = "V100", .tensor = 1});
  EXPECT_NEAR(sample.forward->value, 1e-3, 1e-8);
  // The importer adds the accumulation of gradients, which Aceso does not measure.
  EXPECT_GT(sample.backward->value, 2e-3);
  EXPECT_LT(sample.backward->value, 2.5e-3);
  EXPECT_EQ(back.collectives.at({"all_reduce", "V100", 1, 2}).size(), 2u);
  std::filesystem::remove_all(directory);
}

TEST(WriteAceso, OtherModelsAreRefused) {
  const Model model = zoo_model("llama-7b", 1024)->model;
  Profile profile = measured(model);
  EXPECT_NO_THROW(metis_files(profile, model, {}));
  const Model bert = zoo_model("bert-base", 128)->model;
  EXPECT_THROW(aceso_files(measured(bert), bert, {}), InputError);
  EXPECT_THROW(metis_files({}, model, {}), InputError);
}

TEST(NcclTests, TheTableIsReadAsACurve) {
  const std::string directory = scratch("nccl");
  std::filesystem::create_directories(directory);
  std::ofstream(directory + "/all_gather_perf.txt")
      << "# nThread 1 nGpus 1 minBytes 1024 maxBytes 2048 step: 2(factor)\n"
         "#  Rank  0 Group  0 Pid  11 on  node1 device  0 [0x07] NVIDIA A100-SXM4-80GB\n"
         "#  Rank  1 Group  0 Pid  12 on  node1 device  1 [0x08] NVIDIA A100-SXM4-80GB\n"
         "#  Rank  2 Group  0 Pid  13 on  node2 device  0 [0x07] NVIDIA A100-SXM4-80GB\n"
         "#  Rank  3 Group  0 Pid  14 on  node2 device  1 [0x08] NVIDIA A100-SXM4-80GB\n"
         "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
         "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)\n"
         "        1024            64     float    none      -1    30.50    0.03    0.03      0\n"
         "        2048           128     float    none      -1    31.00    0.07    0.06      0\n"
         "# Out of bounds values : 0 OK\n";
  const Profile profile = import_profile("nccl-tests", directory, {}).profile;
  const auto& curve = profile.collectives.at({"all_gather", "A100-80GB", 2, 2});
  ASSERT_EQ(curve.size(), 2u);
  EXPECT_EQ(curve[1].size, Bytes(2048));
  EXPECT_NEAR(curve[1].time.value, 31e-6, 1e-12);
  EXPECT_THROW(import_profile("metis", directory, {}), InputError);
  std::filesystem::remove_all(directory);
}

TEST(NcclTests, ALogOfSeveralProgramsHasACurveOfEach) {
  const std::string directory = scratch("nccl_log");
  std::filesystem::create_directories(directory);
  const std::string ranks =
      "#  Rank  0 Group  0 Pid  11 on  node1 device  0 [0x07] NVIDIA A100-SXM4-80GB\n"
      "#  Rank  1 Group  0 Pid  11 on  node1 device  1 [0x08] NVIDIA A100-SXM4-80GB\n"
      "#       size         count      type   redop    root     time   algbw   busbw #wrong\n";
  std::ofstream(directory + "/log.txt")
      << "# nccl-tests version 2.17.1 nccl-headers=22304 nccl-library=22304\n"
         "# Collective test starting: all_reduce_perf\n# nThread 1 nGpus 2\n"
      << ranks << "   1024   256   float   sum   -1   30.0   0.03   0.03   0\n"
      << "# Collective test concluded: all_reduce_perf\n"
         "# Collective test starting: alltoall_perf\n# nThread 1 nGpus 2\n"
      << ranks << "   1024   128   float   none   -1   40.0   0.03   0.03   N/A\n";
  const Profile profile = import_profile("nccl-tests", directory + "/log.txt", {}).profile;
  ASSERT_EQ(profile.collectives.size(), 2u);
  EXPECT_NEAR(profile.collectives.at({"all_reduce", "A100-80GB", 1, 2})[0].time.value, 30e-6,
              1e-12);
  EXPECT_NEAR(profile.collectives.at({"all_to_all", "A100-80GB", 1, 2})[0].time.value, 40e-6,
              1e-12);
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace plait
