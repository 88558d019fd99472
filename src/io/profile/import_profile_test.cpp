#include "io/profile/import_profile.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "io/cluster/load_cluster.h"
#include "io/format/sample_npy.h"
#include "io/format/test_folder.h"
#include "io/model/zoo.h"
#include "io/profile/import_aceso.h"
#include "io/profile/import_metis.h"
#include "io/profile/profile_json.h"
#include "model/gan.h"
#include "model/resnet.h"
#include "source_tree.h"

namespace plait {
namespace {

const std::string kShared = source_dir() + "/../shared/data/";

bool has_shared(const std::string& folder) { return std::filesystem::exists(kShared + folder); }

Model gpt(int layers, const std::string& name = "gpt2") {
  TransformerConfig config;
  config.name = name;
  config.layers = layers;
  config.hidden = 256;
  config.heads = 4;
  config.vocabulary = 1000;
  config.sequence = 128;
  return build_transformer(config);
}

std::string complaint(const std::string& from, const std::string& path, const Model& model) {
  try {
    import_profile(from, path, model);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

const char* const kMetis = R"({
  "model": {"parameters": {"parameters_per_layer_bytes": [100, 300, 300, 100]}},
  "execution_time": {"forward_backward_time_ms": 18, "optimizer_time_ms": 8,
                     "batch_generator_time_ms": 1, "layer_compute_total_ms": [1, 6, 4, 2]},
  "execution_memory": {"layer_memory_total_mb": [10, 20, 20, 10]}})";

TEST(ImportMetis, TimesAreOfForwardAndBackwardAndTheRestIsTheHeads) {
  const samples::TestFolder folder;
  folder.write("DeviceType.A100_tp2_bs4.json", kMetis);
  const LoadedProfile loaded = import_profile("", folder.path(), gpt(2));
  EXPECT_EQ(loaded.profile.provenance.source, "metis");
  const ComputeSample& layer = loaded.profile.compute.at({"decoder", "A100", 2, 4, 0, 0});
  EXPECT_DOUBLE_EQ(layer.both->value, 5e-3);  // the mean of 6 and 4 ms
  EXPECT_TRUE(layer.communication_inside);
  EXPECT_DOUBLE_EQ(layer.memory->value, 20 * 0x1p20);
  // 300 of 800 parameters, and not doubled.
  EXPECT_DOUBLE_EQ(layer.optimizer->value, 3e-3);
  // 18 ms less the 13 of the layers are the loss.
  const ComputeSample& head = loaded.profile.compute.at({"head", "A100", 2, 4, 0, 0});
  EXPECT_DOUBLE_EQ(head.both->value, 7e-3);
  const ComputeSample& embedding = loaded.profile.compute.at({"embedding", "A100", 2, 4, 0, 0});
  EXPECT_DOUBLE_EQ(embedding.both->value, 2e-3);  // with the batch generator
}

TEST(ImportMetis, ReadmeFormNeedsNoMoreThanTheLayers) {
  const samples::TestFolder folder;
  folder.write("DeviceType.T4_tp1_bs1.json",
               R"({"execution_time": {"layer_compute_total_ms": [1, 6, 4, 2]}})");
  const LoadedProfile loaded = import_profile("metis", folder.path(), gpt(2));
  EXPECT_DOUBLE_EQ(loaded.profile.compute.at({"head", "T4"}).both->value, 2e-3);
}

TEST(ImportMetis, ListsOfUnequalLengthAreRefused) {
  const samples::TestFolder folder;
  folder.write("DeviceType.T4_tp1_bs1.json",
               R"({"execution_time": {"layer_compute_total_ms": [1, 6, 4, 2]},
                   "execution_memory": {"layer_memory_total_mb": [1, 2]}})");
  EXPECT_NE(complaint("", folder.path(), gpt(2)).find("has 2 entries"), std::string::npos);
}

TEST(ImportMetis, NamesOfOtherFilesAreNotRecognised) {
  MetisFile file;
  EXPECT_TRUE(parse_metis_name("DeviceType.A100-80GB_tp2_bs16.json", file));
  EXPECT_EQ(file.device_type, "A100-80GB");
  EXPECT_EQ(file.micro_batch, 16);
  EXPECT_FALSE(parse_metis_name("DeviceType.A100_tp0_bs1.json", file));
  EXPECT_FALSE(parse_metis_name("DeviceType.A100_tp1_bs1.json.bak", file));
  EXPECT_FALSE(parse_metis_name("clusterfile.json", file));
}

TEST(ImportAmp, ListsAreForwardTimesWithCommunicationOfAnIdleDevice) {
  const samples::TestFolder folder;
  folder.write("gpt2_G4_2.npy", samples::npy({1e-3, 0, 5e-3, 7e-3, 0, 0, 2e-3, 1e-3}));
  const LoadedProfile loaded = import_profile("", folder.path(), gpt(2));
  EXPECT_EQ(loaded.profile.provenance.source, "amp");
  const ComputeSample& layer = loaded.profile.compute.at({"decoder", "T4", 2, 1, 0, 0});
  EXPECT_DOUBLE_EQ(layer.forward->value, 6e-3);
  EXPECT_TRUE(layer.communication_inside);
  EXPECT_TRUE(layer.synchronised);
  EXPECT_FALSE(layer.backward);
  EXPECT_DOUBLE_EQ(loaded.profile.compute.at({"head", "T4", 2, 1, 0, 0}).forward->value, 3e-3);
}

TEST(ImportAmp, TheModelsNameSaysWhichOfSeveralListsIsMeant) {
  const samples::TestFolder folder;
  folder.write("gpt2_G4_1.npy", samples::npy({1, 1, 5, 7, 1, 1, 1, 1}));
  folder.write("other_G4_1.npy", samples::npy({1, 1, 50, 70, 1, 1, 1, 1}));
  const LoadedProfile loaded = import_profile("amp", folder.path(), gpt(2, "GPT2-350M-class"));
  EXPECT_DOUBLE_EQ(loaded.profile.compute.at({"decoder", "T4"}).forward->value, 6);
  const LoadedProfile named = import_profile("amp", folder.path("other"), gpt(2, "mine"));
  EXPECT_DOUBLE_EQ(named.profile.compute.at({"decoder", "T4"}).forward->value, 60);
  EXPECT_NE(complaint("amp", folder.path(), gpt(2, "mine")).find("gpt2, other"), std::string::npos);
}

TEST(ImportAmp, NegativeTimesAreRefused) {
  const samples::TestFolder folder;
  folder.write("gpt2_G4_1.npy", samples::npy({1, 1, -5, 7, 1, 1, 1, 1}));
  EXPECT_NE(complaint("", folder.path(), gpt(2)).find("value 2 is a negative time"),
            std::string::npos);
}

TEST(ImportFasop, ListsHaveOneEntryBeforeAndOneAfterTheLayers) {
  const samples::TestFolder folder;
  folder.write("gpt2XL_A10_1.npy", samples::npy({1e-3, 5e-3, 7e-3, 3e-3}));
  const LoadedProfile loaded = import_profile("", folder.path(), gpt(2));
  EXPECT_EQ(loaded.profile.provenance.source, "fasop");
  EXPECT_DOUBLE_EQ(loaded.profile.compute.at({"decoder", "A10"}).forward->value, 6e-3);
  EXPECT_DOUBLE_EQ(loaded.profile.compute.at({"head", "A10"}).forward->value, 3e-3);
}

std::string aceso_csv(const std::vector<std::string>& ops, double forward) {
  std::string text =
      "op_name,forward-compute,backward-compute,input_size,output_size,weights,activations,"
      "fwd_reserved,bwd_reserved\n";
  for (const std::string& op : ops)
    text += op + "," + std::to_string(forward) + ",200,1,1,2,1,0,0\n";
  return text;
}

const std::vector<std::string> kGptOps{
    "encoder-embedding",     "enc-1st-layernorm",     "enc-attention-qkv",
    "enc-attention-score",   "enc-attention-softmax", "enc-attention-dropout",
    "enc-attention-context", "enc-attention-dense",   "enc-post-attention-dropout",
    "enc-2nd-layernorm",     "enc-MLP-GEMM-1",        "enc-MLP-gelu",
    "enc-MLP-GEMM-2",        "enc-post-MLP-dropout",  "final-layernorm",
    "gpt-post-process"};

TEST(ImportAceso, OpsAddUpToLayersAndLinksAreCurves) {
  const samples::TestFolder folder;
  folder.write("gpt_1_3B_mbs2_tp4_algo0.csv", aceso_csv(kGptOps, 100));
  folder.write("prim_gpt_1_3B_all_gather_2gpus.csv", "data_size(MB),time(ms)\n1,2\n4,5\n");
  folder.write("p2p_intra_node.csv", "1,2\n10,20\n");
  const LoadedProfile loaded = import_profile("", folder.path(), gpt(2));
  const ComputeSample& layer = loaded.profile.compute.at({"decoder", "V100", 4, 2, 0, 0});
  EXPECT_NEAR(layer.forward->value, 13 * 100e-6, 1e-12);
  EXPECT_GT(*layer.backward, Seconds(13 * 200e-6));  // gradient sums are added
  EXPECT_TRUE(layer.communication_inside);
  // The whole tensor is two parts of 1 MB.
  const auto& gather = loaded.profile.collectives.at({"all_gather", "V100", 1, 2});
  EXPECT_DOUBLE_EQ(gather[0].size.value, 2 * 0x1p20);
  EXPECT_DOUBLE_EQ(gather[0].time.value, 2e-3);
  const auto& send = loaded.profile.collectives.at({"send", "V100", 1, 1});
  EXPECT_DOUBLE_EQ(send[1].time.value, 2 * 0x1p20 / 20e9);
}

// Norms have the activation inside; the sum with the residual is one op with the last activation.
TEST(ImportAceso, OpsOfAResnetAreThoseOfItsBlocks) {
  const samples::TestFolder folder;
  const WideResnetConfig config{.blocks = {1, 2}, .channels = 64};
  folder.write("resnet_1B_mbs16_tp1_algo0.csv", aceso_csv(aceso_op_list("resnet", {1, 2}), 100));
  const Model fine = at_op_granularity(build_wide_resnet(config));
  const LoadedProfile loaded = import_profile("", folder.path(), fine);
  const auto forward = [&](const std::string& unit) {
    return loaded.profile.compute.at({unit, "V100", 1, 16, 0, 0}).forward->value;
  };
  EXPECT_NEAR(forward("stem.conv1"), 1e-4, 1e-12);
  EXPECT_NEAR(forward("stage1_first.downsample"), 1e-4, 1e-12);
  EXPECT_NEAR(forward("stage1_first.add_relu"), 1e-4, 1e-12);
  EXPECT_NEAR(forward("stage2.add_relu"), 2e-4, 1e-12);
  EXPECT_EQ(forward("stage2.relu1"), 0);
  double sum = 0;
  for (const int kind : fine.units) sum += forward(fine.kinds[kind].name);
  EXPECT_NEAR(sum, (8 * 3 + 6) * 1e-4, 1e-12);
  // Layers of the same model add up to the same.
  const Model coarse = build_wide_resnet(config);
  const LoadedProfile layers = import_profile("", folder.path(), coarse);
  double layer_sum = 0;
  for (const int kind : coarse.units)
    layer_sum +=
        layers.profile.compute.at({coarse.kinds[kind].name, "V100", 1, 16, 0, 0}).forward->value;
  EXPECT_NEAR(layer_sum, sum, 1e-12);
}

TEST(ImportAceso, MissingAndUnmeasuredOpsAreNamedNeverAMillion) {
  const samples::TestFolder folder;
  std::vector<std::string> fewer = kGptOps;
  fewer.erase(fewer.begin() + 11);
  folder.write("gpt_1_3B_mbs1_tp1_algo0.csv", aceso_csv(fewer, 100));
  EXPECT_NE(complaint("", folder.path(), gpt(2)).find("enc-MLP-gelu"), std::string::npos);
  folder.write("gpt_1_3B_mbs1_tp1_algo0.csv", aceso_csv(kGptOps, 1e7));
  EXPECT_NE(complaint("", folder.path(), gpt(2)).find("did not fit"), std::string::npos);
  // Where the op fits with another micro-batch, that one point is missing.
  folder.write("gpt_1_3B_mbs2_tp1_algo0.csv", aceso_csv(kGptOps, 100));
  const LoadedProfile loaded = import_profile("", folder.path(), gpt(2));
  EXPECT_TRUE(loaded.profile.compute.at({"decoder", "V100", 1, 1, 0, 0}).out_of_memory);
  EXPECT_FALSE(loaded.profile.compute.at({"decoder", "V100", 1, 1, 0, 0}).forward);
  EXPECT_NEAR(loaded.profile.compute.at({"decoder", "V100", 1, 2, 0, 0}).forward->value, 13e-4,
              1e-12);
  folder.write("gpt_1_3B_mbs1_tp1_algo0.csv", "op_name,forward-compute\nx,1\n");
  EXPECT_NE(complaint("", folder.path(), gpt(2)).find("has no column"), std::string::npos);
}

TEST(ImportProfile, UnknownFormsAndNamesAreRefusedWithTheKnownOnes) {
  const samples::TestFolder folder;
  folder.write("notes.txt", "nothing");
  EXPECT_NE(complaint("", folder.path(), gpt(2)).find("Metis"), std::string::npos);
  EXPECT_NE(complaint("metsi", folder.path(), gpt(2)).find("metis"), std::string::npos);
  EXPECT_NE(complaint("", folder.path("absent"), gpt(2)).find("no such file"), std::string::npos);
}

TEST(LoadProfile, ANativeFileTakesTheClustersNamesAndSaysWhatWasNotMeasured) {
  const samples::TestFolder folder;
  Profile profile;
  profile.compute[{"decoder", "A100"}].forward = Seconds(1);
  folder.write("mine.json", profile_file_to_json(profile));
  const Cluster cluster = load_cluster("1xA100-80GB:8+1xT4:4").cluster;
  const LoadedProfile loaded = load_profile(folder.path("mine.json"), gpt(2), cluster);
  EXPECT_TRUE(loaded.profile.compute.contains({"decoder", "A100-80GB"}));
  ASSERT_EQ(loaded.warnings.size(), 1U);
  EXPECT_NE(loaded.warnings[0].find("T4 was not measured"), std::string::npos);
  EXPECT_THROW(load_profile(folder.path("mine.json"), build_transgan({}), cluster), InputError);
}

// What the systems themselves publish.
TEST(ImportProfile, PublishedProfilesAreRead) {
  if (!has_shared("amp")) GTEST_SKIP() << "no published profiles at " << kShared;
  const Model gpt2 = build_transformer(*zoo_transformer("gpt2-medium"));
  const LoadedProfile amp = import_profile("", kShared + "amp", gpt2);
  EXPECT_EQ(amp.profile.compute.size(), 3U * 3 * 2);  // kinds, tp 1, 2 and 4, T4 and V100
  // 24 layers of 5.470 ms in the mean.
  EXPECT_NEAR(amp.profile.compute.at({"decoder", "T4"}).forward->value, 5.470e-3, 1e-6);
  const LoadedProfile gan = import_profile("", kShared + "amp", build_transgan({}));
  EXPECT_NEAR(gan.profile.compute.at({"block_288x288", "V100-16GB"}).forward->value, 4.0e-3, 1e-5);
  const Model xl = build_transformer(*zoo_transformer("gpt2-xl"));
  const LoadedProfile fasop = import_profile("", kShared + "fasop/gpt2XL", xl);
  EXPECT_NEAR(fasop.profile.compute.at({"decoder", "A10"}).forward->value, 2.342e-3, 1e-6);
  EXPECT_NO_THROW(import_profile("", kShared + "metis/case1/profile", gpt(8)));
  EXPECT_NO_THROW(
      import_profile("", kShared + "aceso/profiled-time-miniset/gpt_1_3B_mbs", gpt(24)));
}

}  // namespace
}  // namespace plait
