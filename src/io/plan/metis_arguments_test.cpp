#include "io/plan/metis_arguments.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "io/format/test_folder.h"

namespace plait {
namespace {

// run/ with hostfile, clusterfile.json, profile/ and a command line.
class MetisRun {
 public:
  explicit MetisRun(const std::string& command) {
    std::filesystem::create_directories(folder_.path("run/profile"));
    folder_.write("run/hostfile", "10.0.0.1 slots=4\n");
    folder_.write("run/clusterfile.json", "{}");
    folder_.write("run/arguments.txt", command);
  }
  MetisArguments read() const { return read_metis_arguments(path("arguments.txt")); }
  std::string path(const std::string& name) const { return folder_.path("run/" + name); }

  std::string complaint() const {
    try {
      read();
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }

 private:
  samples::TestFolder folder_;
};

constexpr const char* kCommand =
    "python3 cost_het_cluster.py --model_name=GPT --model_size=small --num_layers=10 --gbs=128 "
    "--hidden_size=1024 --sequence_length=512 --vocab_size=51200 --attention_head_size=16 "
    "--hostfile_path=hostfile --clusterfile_path=clusterfile.json --profile_data_path=profile "
    "--max_profiled_tp_degree=4 --max_profiled_batch_size=2 --min_group_scale_variance=0.5 "
    "--max_permute_len=10 --home_dir=. --log_path=logs";

TEST(MetisArguments, AreReadFromTheProgramsCommandLine) {
  const MetisRun run(kCommand);
  const MetisArguments a = run.read();
  EXPECT_EQ(a.name, "GPT-small");
  EXPECT_EQ(a.layers, 10);
  EXPECT_EQ(a.batch, 128);
  EXPECT_EQ(a.hidden, 1024);
  EXPECT_EQ(a.sequence, 512);
  EXPECT_EQ(a.vocabulary, 51200);
  EXPECT_EQ(a.heads, 16);
  EXPECT_EQ(a.hostfile, run.path("hostfile"));
  EXPECT_EQ(a.clusterfile, run.path("clusterfile.json"));
  EXPECT_EQ(a.profile, run.path("profile"));
  EXPECT_EQ(a.max_tensor, 4);
  EXPECT_EQ(a.max_micro_batch, 2);
  EXPECT_EQ(a.group_scale_variance, 0.5);
  EXPECT_EQ(a.max_permute_len, 10);
}

// The script finds the files in HOME_DIR and knows the sizes of GPT 1.5B.
TEST(MetisArguments, AreReadFromTheScriptsCommandLine) {
  const MetisRun run(
      "cd scripts\nsource ./cost_het_cluster.sh MODEL_NAME=GPT MODEL_SIZE=1.5B NUM_LAYERS=12 "
      "GBS=64 "
      "HOME_DIR='.' MAX_PROFILED_TP=2 MAX_PROFILED_BATCH_SIZE=4 SCALE_VARIANCE=1 "
      "MAX_PERMUTE_LEN=6\n");
  const MetisArguments a = run.read();
  EXPECT_EQ(a.layers, 12);
  EXPECT_EQ(a.hidden, 4096);
  EXPECT_EQ(a.sequence, 1024);
  EXPECT_EQ(a.heads, 32);
  EXPECT_EQ(std::filesystem::path(a.hostfile).lexically_normal(), run.path("hostfile"));
  EXPECT_EQ(a.max_tensor, 2);
  EXPECT_EQ(a.max_permute_len, 6);
}

TEST(MetisArguments, FillInTheVariablesOfAScript) {
  const MetisRun run(
      "HOME_DIR=.\nGBS=32\npython3 cost_het_cluster.py \\\n  --num_layers 4 --gbs ${GBS} "
      "--hidden_size 64 \\\n  --sequence_length=128 --vocab_size=1000 "
      "--hostfile_path=${HOME_DIR}/hostfile --clusterfile_path=$HOME_DIR/clusterfile.json "
      "--profile_data_path \"${HOME_DIR}/profile\"  # measured in May\n");
  const MetisArguments a = run.read();
  EXPECT_EQ(a.batch, 32);
  EXPECT_EQ(a.profile, run.path("./profile"));
}

// "run/hostfile" said by a file in run/ means the hostfile beside it.
TEST(MetisArguments, FindPathsFromTheFilesFolderAndThoseAboveIt) {
  std::string command = kCommand;
  for (const char* name : {"hostfile_path=", "clusterfile_path=", "profile_data_path="})
    command.insert(command.find(name) + std::string(name).size(), "run/");
  const MetisRun run(command);
  EXPECT_EQ(run.read().hostfile, run.path("hostfile"));
}

TEST(MetisArguments, MakeAModelOfAsManyUnits) {
  const MetisRun run(kCommand);
  const LoadedModel loaded = metis_model(run.read(), std::nullopt);
  EXPECT_EQ(loaded.model.unit_count(), 10);
  EXPECT_EQ(loaded.model.unit(0).name, "embedding");
  EXPECT_EQ(loaded.model.unit(9).name, "head");
  EXPECT_EQ(loaded.model.sequence_length, 512);
  EXPECT_TRUE(loaded.warnings.empty());
}

TEST(MetisArguments, SayWhatIsMissingOrWrong) {
  const auto complaint = [](const std::string& from, const std::string& to) {
    std::string command = kCommand;
    command.replace(command.find(from), from.size(), to);
    return MetisRun(command).complaint();
  };
  EXPECT_NE(complaint("--gbs=128", "").find("--gbs is missing"), std::string::npos);
  EXPECT_NE(complaint("--hidden_size=1024", "").find("--hidden_size is missing"),
            std::string::npos);
  EXPECT_NE(complaint("--num_layers=10", "--num_layers=x").find(" --num_layers: must be"),
            std::string::npos);
  EXPECT_NE(complaint("--num_layers=10", "--num-layers=x").find(" --num-layers: must be"),
            std::string::npos);
  EXPECT_NE(complaint("--num_layers=10", "--num_layers=2").find("at least 3"), std::string::npos);
  EXPECT_NE(complaint("=hostfile", "=nohosts").find("there is no nohosts"), std::string::npos);
  EXPECT_NE(complaint("variance=0.5", "variance=2").find("from 0 to 1"), std::string::npos);
  EXPECT_NE(complaint("--gbs=128", "--gbs=many").find("whole number"), std::string::npos);
}

}  // namespace
}  // namespace plait
