#include "search/uniform/division/v_layers.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "model/layers.h"
#include "plan/sample_problems.h"
#include "search/uniform/division/chunk_descent.h"

namespace plait {
namespace {

// Every chunk but those at the two ends of the model has a layer, or there are no numbers at all.
TEST(VLayers, HaveAsManyLayersAsTheModelOrThereAreNone) {
  std::mt19937_64 random(25);
  std::uniform_real_distribution<double> time(0.5, 2);
  for (int stages = 2; stages <= 8; ++stages)
    for (int layers = 0; layers <= 24; ++layers) {
      std::vector<double> times(stages);
      for (double& own : times) own = time(random);
      const std::vector<int> out = layers_by_speed(layers, times);
      ASSERT_EQ(out.empty(), layers < 2 * (stages - 1));
      if (out.empty()) continue;
      EXPECT_EQ(std::accumulate(out.begin(), out.end(), 0), layers);
      for (int s = 1; s < stages; ++s) EXPECT_GE(out[s], 2);
    }
}

// Of 48 layers, with the decoder's embedding between two of them.
TEST(VLayers, ChunksNeverReachBeyondTheModel) {
  Model model = build_transformer(samples::gpt(48, 1024, 16, 512));
  model.kinds.push_back(model.kinds[model.units.front()]);
  model.kinds.back().name = "decoder_embedding";
  model.units.insert(model.units.begin() + 25, static_cast<int>(model.kinds.size()) - 1);
  const int layers = whole_layer_count(model);
  ASSERT_EQ(layers, 48);
  for (int stages = 20; stages <= 26; ++stages) {
    const std::vector<int> by_stage = layers_by_speed(layers, std::vector<double>(stages, 1.0));
    if (stages > 25) {
      EXPECT_TRUE(by_stage.empty());
      continue;
    }
    for (const std::vector<int>& chunks : halves_of_stages(by_stage)) {
      const std::vector<int> begins = begins_of_layers(model, chunks);
      for (const int begin : begins) EXPECT_LT(begin, model.unit_count());
    }
  }
  EXPECT_TRUE(begins_of_layers(model, {30, 30, 1}).empty());
  EXPECT_TRUE(begins_of_layers(model, std::vector<int>(50, 1)).empty());
}

}  // namespace
}  // namespace plait
