#include "model/op_cuts.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "model/resnet.h"
#include "model/transformer.h"

namespace plait {
namespace {

using enum TensorLayout;

std::map<std::string, const LayerKind*> units_of(const Model& fine) {
  std::map<std::string, const LayerKind*> units;
  for (const LayerKind& kind : fine.kinds) units[kind.name] = &kind;
  return units;
}

// The statement of every op says the same about what is between two of them.
TEST(OpCuts, UsualLayoutsOfNeighboursMeet) {
  TransformerConfig gpt{.sequence = 64, .vocabulary = 512, .layers = 2, .hidden = 64};
  gpt.heads = 4;
  for (const Model& model : {build_transformer(gpt), build_wide_resnet({})})
    for (const bool positions : {false, true}) {
      const Model fine = at_op_granularity(model);
      for (int u = 1; u < fine.unit_count(); ++u) {
        const OpCut before = cuts_of(fine.unit(u - 1).ops[0], positions).front();
        const OpCut after = cuts_of(fine.unit(u).ops[0], positions).front();
        EXPECT_EQ(before.output, after.input) << fine.unit(u).name;
        EXPECT_EQ(before.output_gradient(), after.input_gradient) << fine.unit(u).name;
      }
    }
}

TEST(OpCuts, ProductsAreCutByOutputOrByInput) {
  TransformerConfig config{.sequence = 64, .vocabulary = 512, .layers = 1, .hidden = 64};
  config.heads = 4;
  const Model fine = at_op_granularity(build_transformer(config));
  auto units = units_of(fine);
  for (const char* name : {"decoder.attention.qkv", "decoder.mlp.up"}) {
    const auto cuts = cuts_of(units.at(name)->ops[0]);
    ASSERT_EQ(cuts.size(), 2u) << name;
    EXPECT_EQ(cuts[0], (OpCut{Split::column, whole, by_feature, whole}));
    EXPECT_EQ(cuts[1], (OpCut{Split::row, by_feature, partial_sums, by_feature}));
    EXPECT_EQ(cuts[1].output_gradient(), whole);
  }
  for (const char* name : {"decoder.attention.projection", "decoder.mlp.down"}) {
    const auto cuts = cuts_of(units.at(name)->ops[0]);
    ASSERT_EQ(cuts.size(), 2u) << name;
    EXPECT_EQ(cuts[0], (OpCut{Split::row, by_feature, whole, by_feature}));
    EXPECT_EQ(cuts[1], (OpCut{Split::column, whole, by_feature, partial_sums}));
  }
  for (const char* name : {"decoder.attention.norm", "decoder.attention.core", "head.head.logits"})
    EXPECT_EQ(ways_to_cut(*units.at(name)), 1) << name;
}

TEST(OpCuts, ConvolutionsAreCutByOutputOrByInputChannels) {
  const Model fine = at_op_granularity(build_wide_resnet({}));
  auto units = units_of(fine);
  // The third convolution of a block gathers what it leaves.
  EXPECT_EQ(cuts_of(units.at("stage1.conv3")->ops[0])[0],
            (OpCut{Split::column, whole, whole, whole}));
  for (const char* name : {"stage1.conv1", "stage1.conv2", "stage1.conv3"})
    EXPECT_EQ(ways_to_cut(*units.at(name)), 2) << name;
  EXPECT_EQ(ways_to_cut(*units.at("stem.conv1")), 1);  // never cut
}

// Branches that run beside each other share their sums.
TEST(OpCuts, ParallelBranchesAreCutAsUsual) {
  TransformerConfig config{.sequence = 64, .vocabulary = 512, .layers = 1, .hidden = 64};
  config.heads = 4;
  config.parallel = true;
  for (const bool shared : {false, true}) {
    config.shared_norm = shared;
    for (const LayerKind& unit : at_op_granularity(build_transformer(config)).kinds)
      EXPECT_EQ(ways_to_cut(unit), 1) << unit.name;
  }
}

TEST(OpCuts, TheOtherCutKeepsAnotherPartOfItsInput) {
  TransformerConfig config{.sequence = 64, .vocabulary = 512, .layers = 1, .hidden = 64};
  config.heads = 4;
  const Model fine = at_op_granularity(build_transformer(config));
  auto units = units_of(fine);
  const Op up = with_cut(units.at("decoder.mlp.up")->ops[0], 1);
  EXPECT_EQ(up.split, Split::row);
  EXPECT_TRUE(up.saved_is_sharded);
  EXPECT_EQ(up.backward_reduce, 0);
  const Op down = with_cut(units.at("decoder.mlp.down")->ops[0], 1);
  EXPECT_EQ(down.split, Split::column);
  EXPECT_FALSE(down.saved_is_sharded);
  EXPECT_EQ(down.forward_reduce, 0);
  EXPECT_EQ(with_cut(units.at("decoder.mlp.up")->ops[0], 0), units.at("decoder.mlp.up")->ops[0]);
}

}  // namespace
}  // namespace plait
