// Profiles come from other people's disks: whatever their bytes are, they are read or refused.
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "io/format/sample_npy.h"
#include "io/format/test_folder.h"
#include "io/profile/import_profile.h"
#include "io/profile/profile_json.h"
#include "model/transformer.h"

namespace plait {
namespace {

Model small_gpt() {
  TransformerConfig config;
  config.name = "gpt2";
  config.layers = 2;
  config.hidden = 256;
  config.heads = 4;
  config.vocabulary = 1000;
  config.sequence = 128;
  return build_transformer(config);
}

struct Seed {
  std::string file;
  std::string bytes;
};

std::vector<Seed> seeds() {
  std::string ops =
      "op_name,forward-compute,backward-compute,input_size,output_size,weights,activations,"
      "fwd_reserved,bwd_reserved\n";
  for (const char* op : {"encoder-embedding", "enc-1st-layernorm", "final-layernorm"})
    ops += std::string(op) + ",1.5,2.5,1,1,1,1,0,0\n";
  Profile profile;
  profile.compute[{"decoder", "T4"}].forward = Seconds(1);
  profile.collectives[{"send", "T4", 1, 1}] = {{Bytes(1), Seconds(1)}};
  return {{"gpt2_G4_1.npy", samples::npy({1, 1, 5, 7, 1, 1, 1, 1})},
          {"gpt2XL_A100_1.npy", samples::npy({1, 5, 7, 1})},
          {"DeviceType.T4_tp1_bs1.json",
           R"({"execution_time": {"layer_compute_total_ms": [1, 6, 4, 2]},
               "execution_memory": {"layer_memory_total_mb": [1, 2, 2, 1]}})"},
          {"gpt_1_3B_mbs1_tp1_algo0.csv", ops},
          {"p2p_intra_node.csv", "1,2\n10,20\n"},
          {"native.json", profile_file_to_json(profile)}};
}

std::string mutated(std::mt19937_64& random, std::string bytes) {
  if (random() % 3 == 0) bytes.resize(random() % (bytes.size() + 1));
  const int changes = static_cast<int>(random() % 8);
  for (int i = 0; i < changes && !bytes.empty(); ++i) {
    const std::size_t at = random() % bytes.size();
    switch (random() % 4) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes.erase(at, 1 + random() % 4);
        break;
      case 2:
        bytes.insert(at, std::to_string(static_cast<long long>(random())));
        break;
      default:
        bytes[at] = "-.,\"{}[]e9\n\0"[random() % 12];
    }
  }
  return bytes;
}

TEST(ImportFuzz, DamagedFilesAreReadOrRefusedNeverACrash) {
  std::mt19937_64 random(7);
  const Model model = small_gpt();
  for (const Seed& seed : seeds()) {
    const samples::TestFolder folder;
    if (seed.file.starts_with("p2p"))  // read beside the ops of a database
      folder.write("gpt_1_3B_mbs1_tp1_algo0.csv", seeds()[3].bytes);
    int refused = 0;
    for (int i = 0; i < 400; ++i) {
      folder.write(seed.file, mutated(random, seed.bytes));
      try {
        if (seed.file == "native.json")
          read_profile_file(folder.path(seed.file));
        else
          import_profile("", folder.path(), model);
      } catch (const InputError&) {
        ++refused;
      }
    }
    EXPECT_GT(refused, 100) << seed.file;
  }
}

}  // namespace
}  // namespace plait
