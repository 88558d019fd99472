#include "runtime/lower/exec_op.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

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

// The ops keep their names; nothing that they cost is left.
Model without_costs(Model model) {
  for (LayerKind& kind : model.kinds) {
    kind.output = 0;
    for (Op& op : kind.ops) {
      Op blank;
      blank.name = op.name;
      op = blank;
    }
  }
  for (Tie& tie : model.ties) tie.parameters = 0;
  return model;
}

// As if the costs of another op were those of this one.
Model with_costs_exchanged(Model model) {
  for (LayerKind& kind : model.kinds)
    for (std::size_t i = 0; i + 1 < kind.ops.size(); ++i) {
      std::swap(kind.ops[i], kind.ops[i + 1]);
      std::swap(kind.ops[i].name, kind.ops[i + 1].name);
    }
  return model;
}

TEST(ExecProgram, CostsOfOpsDoNotChangeWhatIsTrained) {
  for (const Model& model : samples::tiny_models()) {
    const Lowered whole = lower(model);
    ASSERT_EQ(whole.fault, "") << model.name;
    for (const Model& changed : {without_costs(model), with_costs_exchanged(model)}) {
      EXPECT_NE(changed, model);
      const Lowered lowered = lower(changed);
      EXPECT_EQ(lowered.fault, "") << model.name;
      EXPECT_EQ(lowered.program, whole.program) << model.name;
    }
  }
}

TEST(ExecProgram, OwnsTheParametersThatAreCounted) {
  for (const Model& model : samples::tiny_models())
    EXPECT_EQ(owned(lower(model).program), model.parameters()) << model.name;
}

TEST(ExecProgram, NoNetworkIsGuessedFromOps) {
  Model model = build_transformer(samples::tiny_gpt());
  model.architecture = OpsOnly{};
  EXPECT_EQ(lower(model).fault,
            "the model is given as a list of ops, which does not say what the network is");
  model.architecture = NotRecorded{};
  EXPECT_EQ(lower(model).fault,
            "the plan file is from before plait saved what the network is, and its ops do not say "
            "it: make the plan again with plait plan");
  TransformerConfig other = samples::tiny_gpt();
  other.layers = 3;
  model.architecture = other;
  EXPECT_EQ(lower(model).fault, "the model has 6 units, where its architecture has 5");
}

TEST(ExecProgram, LayersMayDifferInWindowsAndPositions) {
  TransformerConfig config = samples::tiny_llama();
  config.window = {.size = 4, .full = {1}};
  config.rotary.local_base = 100;
  config.rotary.unturned = {2};
  const Lowered lowered = lower(build_transformer(config));
  ASSERT_EQ(lowered.fault, "");
  std::vector<std::int64_t> windows;
  std::vector<double> bases;
  for (const ExecOp& op : lowered.program.ops) {
    if (op.kind == ExecOpKind::attention) windows.push_back(op.window);
    if (op.name == "attention.rotary")
      bases.push_back(op.kind == ExecOpKind::rotary ? op.rotary.base : 0);
  }
  EXPECT_EQ(windows, (std::vector<std::int64_t>{4, 0, 4, 4}));
  EXPECT_EQ(bases, (std::vector<double>{100, 10'000, 0, 100}));
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
