#include "runtime/lower/exec_op.h"

#include <gtest/gtest.h>

#include <map>

#include "io/model/load_model.h"
#include "model/resnet.h"
#include "runtime/lower/tiny_models.h"

namespace plait::runtime {
namespace {

TEST(ExecProgram, QueriesKeysAndValuesAreCutByHeads) {
  // 4 query heads of 2, 2 key and 2 value heads: device 1 of 2 has heads 2, 3 and 1 and 1.
  const std::vector<Part> parts{{8, 4}, {4, 2}, {4, 2}};
  EXPECT_EQ(shard_of(parts, 2, 1), (std::vector<Interval>{{4, 8}, {10, 12}, {14, 16}}));
  // On four devices, devices 2 and 3 share the second key head.
  EXPECT_EQ(shard_of(parts, 4, 2), (std::vector<Interval>{{4, 6}, {10, 12}, {14, 16}}));
}

TEST(ExecProgram, TheLastDevicesGetFewerWordsOfTheVocabulary) {
  EXPECT_EQ(shard_of({{10, 0}}, 4, 3), (std::vector<Interval>{{9, 10}}));
  EXPECT_EQ(shard_of({{5, 0}}, 4, 3), (std::vector<Interval>{{5, 5}}));
}

double owned(const ExecProgram& program) {
  double sum = 0;
  for (const ExecOp& op : program.ops)
    for (const Parameter& parameter : op.parameters)
      if (parameter.owned) sum += parameter.size();
  return sum;
}

TEST(ExecProgram, OpGranularityGivesTheSameSteps) {
  const Model model = load_model("gpt2", std::nullopt).model;
  const Lowered coarse = lower(model);
  const Lowered fine = lower(at_op_granularity(model));
  ASSERT_EQ(coarse.fault, "");
  ASSERT_EQ(fine.fault, "");
  ASSERT_EQ(coarse.program.ops.size(), fine.program.ops.size());
  for (std::size_t i = 0; i < fine.program.ops.size(); ++i) {
    EXPECT_EQ(coarse.program.ops[i].alive, fine.program.ops[i].alive);
    EXPECT_EQ(coarse.program.ops[i].parameters.size(), fine.program.ops[i].parameters.size());
  }
  EXPECT_EQ(owned(fine.program), model.parameters());
}

TEST(ExecProgram, BlocksThatShareWeightsLearnWhatTheFirstOwns) {
  const Model model = build_transformer(samples::tiny_shared());
  for (const Model& cut : {model, at_op_granularity(model)}) {
    const Lowered lowered = lower(cut);
    ASSERT_EQ(lowered.fault, "");
    EXPECT_EQ(owned(lowered.program), model.parameters());
    // Four blocks of ten tensors, norms included: the first block owns each, three use it again.
    std::map<std::string, int> uses;
    for (const ExecOp& op : lowered.program.ops)
      for (const Parameter& parameter : op.parameters) ++uses[parameter.name];
    for (const char* name : {"1.attention.qkv.weight", "1.attention.qkv.bias",
                             "1.attention.norm.weight", "1.mlp.norm.bias", "1.mlp.down.bias"})
      EXPECT_EQ(uses[name], 4) << name;
    EXPECT_FALSE(uses.contains("2.mlp.up.weight"));
  }
}

TEST(ExecProgram, ImagesMayHaveSeveralLearntTokens) {
  TransformerConfig config = samples::tiny_vit();
  config.patches.tokens = 2;
  const Lowered lowered = lower(build_transformer(config));
  ASSERT_EQ(lowered.fault, "");
  // 4 x 4 patches and two tokens.
  EXPECT_EQ(lowered.program.ops[1].kind, ExecOpKind::class_token);
  EXPECT_EQ(lowered.program.ops[1].alive[0].shape, (std::vector<std::int64_t>{18, 32}));
}

}  // namespace
}  // namespace plait::runtime
