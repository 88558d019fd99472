#include "io/profile/layer_lists.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/gan.h"
#include "model/transformer.h"
#include "plan/sample_problems.h"

namespace plait {
namespace {

Model gpt(int layers) { return build_transformer(samples::gpt(layers, 256, 4, 128)); }

LayerList list_of(const std::vector<double>& seconds) {
  LayerList list{
      .where = "list", .device_type = "T4", .tensor = 1, .micro_batch = 1, .entries = {}};
  for (const double value : seconds) {
    ComputeSample sample;
    sample.forward = Seconds(value);
    list.entries.push_back(sample);
  }
  return list;
}

double forward_of(const MappedLists& mapped, const std::string& unit) {
  return mapped.profile.compute.at({unit, "T4"}).forward->value;
}

MappedLists map(const std::vector<double>& seconds, const Model& model, ListLayout layout = {}) {
  const std::vector<LayerList> lists{list_of(seconds)};
  return map_lists(lists, model, layout);
}

TEST(LayerLists, OneEntryForEachUnitAndTheMeanOfAKind) {
  const MappedLists mapped = map({1, 2, 4, 3}, gpt(2));
  EXPECT_DOUBLE_EQ(forward_of(mapped, "embedding"), 1);
  EXPECT_DOUBLE_EQ(forward_of(mapped, "decoder"), 3);
  EXPECT_DOUBLE_EQ(forward_of(mapped, "head"), 3);
  EXPECT_TRUE(mapped.notes.empty());
}

TEST(LayerLists, WhatStandsBeforeAndAfterIsAdded) {
  // AMP's form: two entries before the layers, four after them.
  const MappedLists mapped = map({0.5, 0.25, 8, 8, 1, 2, 3, 4}, gpt(2), {.before = 2, .after = 4});
  EXPECT_DOUBLE_EQ(forward_of(mapped, "embedding"), 0.75);
  EXPECT_DOUBLE_EQ(forward_of(mapped, "decoder"), 8);
  EXPECT_DOUBLE_EQ(forward_of(mapped, "head"), 10);
}

TEST(LayerLists, AnotherNumberOfEqualLayersTellsTheCostOfOne) {
  const MappedLists mapped = map({1, 8, 8, 8, 2}, gpt(12));
  EXPECT_DOUBLE_EQ(forward_of(mapped, "decoder"), 8);
  ASSERT_EQ(mapped.notes.size(), 1U);
  EXPECT_NE(mapped.notes[0].find("3 layers were measured"), std::string::npos);
}

TEST(LayerLists, LayersAloneLeaveTheRestAnalytic) {
  const MappedLists mapped = map({8, 8, 8}, gpt(3));
  EXPECT_DOUBLE_EQ(forward_of(mapped, "decoder"), 8);
  EXPECT_FALSE(mapped.profile.compute.contains({"head", "T4"}));
}

TEST(LayerLists, TwoStacksWithoutAHead) {
  TransformerConfig config;
  config.name = "t5";
  config.layers = 2;
  config.decoder_layers = 2;
  config.hidden = 256;
  config.heads = 4;
  config.vocabulary = 1000;
  config.sequence = 128;
  const MappedLists mapped = map({1, 4, 4, 2, 8, 8}, build_transformer(config));
  EXPECT_DOUBLE_EQ(forward_of(mapped, "encoder"), 4);
  EXPECT_DOUBLE_EQ(forward_of(mapped, "decoder"), 8);
  EXPECT_DOUBLE_EQ(forward_of(mapped, "decoder_embedding"), 2);
}

TEST(LayerLists, TheLargestEntriesAreTheBlocksOfAGan) {
  // TransGAN of AMP: 12 + 12 blocks, 3 entries before, 26 between, 3 after.
  std::vector<double> seconds(3, 0.1);
  seconds.insert(seconds.end(), 12, 2);
  seconds.insert(seconds.end(), 26, 0.1);
  seconds.insert(seconds.end(), 12, 4);
  seconds.insert(seconds.end(), 3, 0.1);
  const MappedLists mapped = map(seconds, build_transgan({}));
  EXPECT_DOUBLE_EQ(forward_of(mapped, "block_9x9"), 2);
  EXPECT_DOUBLE_EQ(forward_of(mapped, "block_288x288"), 4);
  EXPECT_NEAR(forward_of(mapped, "latent"), 0.3, 1e-12);
  double all = 0;  // nothing is lost
  for (const int unit : build_transgan({}).units)
    all += forward_of(mapped, build_transgan({}).kinds[unit].name);
  EXPECT_NEAR(all, 12 * 2 + 12 * 4 + 32 * 0.1, 1e-9);
}

TEST(LayerLists, WhatDoesNotFitIsRefusedWithWhatWasExpected) {
  try {
    map({1, 8, 1, 8, 2, 9, 1}, gpt(12));
    FAIL() << "was accepted";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("expected 14 entries"), std::string::npos);
  }
  const std::vector<LayerList> unequal{list_of({1, 2, 4, 3}), list_of({1, 2, 4})};
  EXPECT_THROW(map_lists(unequal, gpt(2), {}), InputError);
}

}  // namespace
}  // namespace plait
