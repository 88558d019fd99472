#include <gtest/gtest.h>

#include "io/model/load_model.h"
#include "source_tree.h"

namespace plait {
namespace {

double parameters(const std::string& example) {
  return load_model(source_dir() + "/examples/models/" + example, std::nullopt).model.parameters();
}

TEST(ExampleModels, AreRead) {
  // Llama-3.2-3B's own sizes; GPT-2 medium with its vocabulary padded to 50304.
  EXPECT_EQ(parameters("llama-like.json"), 3'212'749'824);
  EXPECT_EQ(parameters("megatron-gpt-345m.sh"), 354'823'168 + 47 * 1024);
  // 6 x 2 x 4096 x 16384 + 4096 x 512 + 12 x (512 x 512 + 1024).
  EXPECT_EQ(parameters("uneven.json"), 805'306'368 + 2'097'152 + 12 * 263'168);
  // Two tables of 32000 x 1024, 16 x (2.5 h^2 attention + router + 8 x 3 h f + 2 h), final norm.
  const double block = 2.5 * 1024 * 1024 + 8 * 1024 + 8 * 3 * 1024.0 * 3584 + 2 * 1024;
  EXPECT_EQ(parameters("tiny-mixtral"), 2 * 32000 * 1024 + 16 * block + 1024);
}

}  // namespace
}  // namespace plait
