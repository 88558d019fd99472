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
  EXPECT_NE(complaint(file("lora.txt", "model_name_or_path: x/Llama-3-8B\nlora_rank: 8\n"))
                .find("this names a model"),
            std::string::npos);
  EXPECT_NE(complaint(file("cut.json", R"({"model_type": )")).find("not valid JSON"),
            std::string::npos);
  fs::create_directories(folder_ / "bare");
  EXPECT_EQ(complaint((folder_ / "bare").string()), "bare: is a directory without a config.json");
}

}  // namespace
}  // namespace plait
