#include "io/model/load_model.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "io/format/json_reader.h"

namespace plait {
namespace {

namespace fs = std::filesystem;

class LoadModel : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              ("plait_load_model_" +
               std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& text) {
    std::string path = (folder_ / name).string();
    write_text_file(path, text);
    return path;
  }

  std::string complaint(const std::string& path) {
    try {
      load_model(path, std::nullopt);
    } catch (const InputError& e) {
      std::string what = e.what();
      const std::size_t at = what.find(folder_.string());
      return at == what.npos ? what : what.replace(at, folder_.string().size() + 1, "");
    }
    return "no complaint";
  }

  fs::path folder_;
};

TEST_F(LoadModel, DecidesByContent) {
  const std::string hub = file("config.json", R"({"model_type": "gpt2"})");
  EXPECT_EQ(load_model(hub, std::nullopt).model.parameters(), 124'439'808);
  EXPECT_EQ(load_model(folder_.string(), std::nullopt).model.parameters(), 124'439'808);
  const std::string own = file("own.json", R"({"plait_model": 1, "wide_resnet": {}})");
  EXPECT_EQ(load_model(own, std::nullopt).model.unit(0).name, "stem");
  const std::string flags =
      file("run", "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32");
  EXPECT_EQ(load_model(flags, std::nullopt).model.unit_count(), 4);
}

TEST_F(LoadModel, ATextThatBeginsWithABraceIsTheFileItself) {
  const std::string text =
      R"({"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257,)"
      R"( "n_positions": 1024})";
  EXPECT_EQ(load_model(text, std::nullopt).model.unit_count(),
            load_model("gpt2", std::nullopt).model.unit_count());
  EXPECT_TRUE(complaint(R"({"model_type": "gpt2", "n_layer": -1})").starts_with("model#/n_layer: "))
      << complaint(R"({"model_type": "gpt2", "n_layer": -1})");
}

TEST_F(LoadModel, MistakesSayWhatIsNeeded) {
  EXPECT_EQ(complaint((folder_ / "none.json").string()), "none.json: no such file");
  EXPECT_EQ(complaint(file("empty.json", " \n")), "empty.json: is empty");
  EXPECT_EQ(complaint(file("words.txt", "hello")),
            "words.txt: neither JSON (a config.json or a plait model file) nor Megatron-LM flags "
            "(--num-layers ...)");
  EXPECT_NE(complaint(file("ds.json", R"({"zero_optimization": {"stage": 3}})")).find("DeepSpeed"),
            std::string::npos);
  EXPECT_NE(
      complaint(file("lora.txt", "model_name_or_path: x/Llama-3-8B\nlora_rank: 8\n"))
          .find("`model` x/Llama-3-8B `micro_batch` 1 `micro_batches` 1 `data` GPUS `lora` 8"),
      std::string::npos);
  EXPECT_NE(complaint(file("cut.json", R"({"model_type": )")).find("not valid JSON"),
            std::string::npos);
  EXPECT_NE(complaint(file("titan.toml", "[model]\nname = 'llama3'\n")).find("TorchTitan"),
            std::string::npos);
  EXPECT_NE(complaint(file("neox.json", R"({"pipe_parallel_size": 1})")).find("GPT-NeoX"),
            std::string::npos);
  fs::create_directories(folder_ / "bare");
  EXPECT_EQ(complaint((folder_ / "bare").string()), "bare: is a directory without a config.json");
}

// What other programs' scripts say is not lost: the complaint has it as a request.
TEST_F(LoadModel, ScriptsOfOtherProgramsAreAnsweredWithWhatTheySay) {
  const auto said = [&](const std::string& script) {
    const std::string words = complaint(file("train.sh", script));
    return words.substr(words.find("; ") + 2);
  };
  EXPECT_EQ(said("torchrun --nproc_per_node=8 run_clm.py --model_name_or_path gpt2-xl \\\n"
                 "  --per_device_train_batch_size 4 --gradient_accumulation_steps 2 \\\n"
                 "  --deepspeed ds.json --bf16"),
            "what this script trains is priced by plait estimate `from` deepspeed ds.json `model` "
            "gpt2-xl `micro_batch` 4 `micro_batches` 2 `precision` bf16");
  EXPECT_EQ(said("accelerate launch --config_file \"fsdp.yaml\" train.py --model x/y-7B "
                 "--per-device-train-batch-size=2 --gradient_checkpointing True --bf16 False"),
            "what this script trains is priced by plait estimate `from` fsdp fsdp.yaml `model` "
            "x/y-7B `micro_batch` 2 `micro_batches` 1 `recompute` full");
  EXPECT_EQ(said("torchrun --nnodes 2 --nproc_per_node 8 train.py --fp16 # --bf16\n"),
            "what this script trains is priced by plait plan `framework` ddp `model` NAME "
            "`micro_batch` 1 `micro_batches` 1 `data` 16 `precision` fp16");
  EXPECT_EQ(said("torchrun --nproc_per_node 4 t.py --fsdp 'full_shard auto_wrap' --bf16 True"),
            "what this script trains is priced by plait plan `framework` fsdp `model` NAME "
            "`micro_batch` 1 `micro_batches` 1 `data` 4 `precision` bf16 `zero` 3");
  EXPECT_EQ(said("base_model: org/m-8B\nload_in_4bit: true\nadapter: qlora\nlora_r: 32\n"
                 "sequence_len: 4096\nmicro_batch_size: 2\ngradient_accumulation_steps: 4\n"
                 "deepspeed: deepspeed_configs/zero2.json\nbf16: auto\n"),
            "what this recipe trains is priced by plait estimate `from` deepspeed "
            "deepspeed_configs/zero2.json `model` org/m-8B `micro_batch` 2 `micro_batches` 4 "
            "`precision` bf16 `sequence` 4096 `qlora` 32");
}

}  // namespace
}  // namespace plait
