#include "io/model/zoo.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "io/model/load_model.h"

namespace plait {
namespace {

double parameters(const std::string& name) {
  return load_model(name, std::nullopt).model.parameters();
}

TEST(Zoo, HasTheParameterCountsThatAreKnown) {
  EXPECT_EQ(parameters("gpt2"), 124'439'808);
  EXPECT_EQ(parameters("gpt2-medium"), 354'823'168);
  EXPECT_EQ(parameters("gpt2-large"), 774'030'080);
  EXPECT_EQ(parameters("gpt2-xl"), 1'557'611'200);
  EXPECT_EQ(parameters("llama-2-7b"), 6'738'415'616);
  EXPECT_EQ(parameters("bert-large"), 335'174'458);
  EXPECT_EQ(parameters("Qwen/Qwen-7B-Chat"), 7'721'324'544);
  EXPECT_EQ(parameters("codellama/CodeLlama-7b-hf"), 6'738'546'688);
  // The hub's count of meta-llama/Meta-Llama-3-8B and of google/flan-t5-base (untied head).
  EXPECT_EQ(parameters("llama-3-8b"), 8'030'261'248);
  EXPECT_EQ(parameters("flan-t5-base"), 247'577'856);
}

TEST(Zoo, EveryEntryIsReadWithItsOwnNameAndWarnsOfWindowsOnly) {
  std::set<std::string> names;
  for (const ZooEntry& entry : zoo_entries()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    for (const std::string& alias : entry.aliases) EXPECT_TRUE(names.insert(alias).second) << alias;
    const auto loaded = zoo_model(entry.name, std::nullopt);
    ASSERT_TRUE(loaded) << entry.name;
    for (const std::string& warning : loaded->warnings)
      EXPECT_NE(warning.find("sliding window"), std::string::npos) << entry.name << ": " << warning;
    EXPECT_EQ(loaded->model.name, entry.name);
    EXPECT_FALSE(entry.source.empty()) << entry.name;
  }
}

TEST(Zoo, SuggestsTheNearestName) {
  try {
    load_model("lama-2-7b", std::nullopt);
    FAIL();
  } catch (const InputError& e) {
    EXPECT_STREQ(e.what(),
                 "model lama-2-7b: neither a file nor a known model (did you mean 'llama-2-7b'?); "
                 "`plait models` lists them, and any Hugging Face config.json is read");
  }
}

TEST(Zoo, RefusesOtherFamiliesByNameWithTheReason) {
  const std::pair<const char*, const char*> table[] = {
      {"mamba-2.8b", "'mamba' is not predicted: it is a state-space or recurrent network"},
      {"openai/clip-vit-large-patch14", "'clip' is not predicted: it is two encoders"},
      {"stable-diffusion-xl", "'diffusion' is not predicted: it is a part of a diffusion model"},
      {"acme/llama-9-8b", "no such file, and no model of that name is known (did you mean"},
      {"resnet50", "'resnet50' is not predicted: it is a network of images"},
      {"llava-1.5-7b", "not known; it reads images before a language model"},
      {"acme/config.json", "acme/config.json: no such file"}};
  for (const auto& [name, words] : table) try {
      load_model(name, std::nullopt);
      ADD_FAILURE() << name;
    } catch (const InputError& e) {
      EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
    }
}

TEST(Zoo, KnowsTheHubsSpelling) {
  EXPECT_EQ(parameters("meta-llama/Llama-2-7b-hf"), 6'738'415'616);
  EXPECT_EQ(parameters("Qwen/Qwen2.5-7B-Instruct"), parameters("qwen2.5-7b"));
  EXPECT_EQ(parameters("mistralai/Mixtral-8x7B-Instruct-v0.1"), parameters("mixtral-8x7b"));
  EXPECT_EQ(parameters("google/gemma-2-9b-it"), parameters("gemma-2-9b"));
}

// The hub's counts; of Llama 4 without what reads images.
TEST(Zoo, HasMixturesOfTheirPublishedSize) {
  EXPECT_NEAR(parameters("dbrx"), 131.6e9, 0.1e9);
  EXPECT_NEAR(parameters("llama-4-scout"), 107.8e9, 0.1e9);
  EXPECT_NEAR(parameters("llama-4-maverick"), 400.7e9, 0.1e9);
  EXPECT_NEAR(parameters("qwen3-coder-480b-a35b"), 480.2e9, 0.1e9);
}

TEST(Zoo, HearsSpacesAndHyphensButNotOtherNumbers) {
  EXPECT_EQ(parameters("Llama 3 8B"), parameters("llama-3-8b"));
  EXPECT_EQ(parameters("gpt_2_xl"), parameters("gpt2-xl"));
  // Not llama-33b, mistral-7b of another vocabulary, or opt-13b.
  for (const char* other : {"llama-3-3b", "mistral-7b-v0.3", "opt-1-3b", "bert-base-cased"})
    EXPECT_THROW(load_model(other, std::nullopt), InputError) << other;
}

TEST(Zoo, TakesTheCallersSequenceLength) {
  EXPECT_EQ(load_model("llama-2-7b", std::nullopt).model.sequence_length, 4096);
  EXPECT_EQ(load_model("Llama-2-7B", 1024).model.sequence_length, 1024);
}

}  // namespace
}  // namespace plait
