#include "io/plan/aceso_onto_model.h"

#include <gtest/gtest.h>

#include "base/sample_complaint.h"
#include "io/profile/aceso_models.h"
#include "io/profile/import_aceso.h"
#include "model/resnet.h"
#include "plan/check.h"
#include "plan/sample_problems.h"

namespace plait {
namespace {

using samples::complaint;

// A configuration of two stages on two devices each; the second one begins at op `cut`.
AcesoPlan configuration(const std::string& family, const std::vector<int>& layers, int cut) {
  AcesoPlan out;
  Model& model = out.problem.model;
  model.name = family + "_tiny";
  for (const std::string& op : aceso_op_list(family, layers)) {
    model.units.push_back(static_cast<int>(model.kinds.size()));
    model.kinds.push_back({.name = op, .ops = {{.name = op}}});
  }
  out.plan.micro_batches = 4;
  out.plan.stages = {{.spans = {{.units = {0, cut}, .tensor = 2, .data = 1}},
                      .devices = {DeviceId{0}, DeviceId{1}}},
                     {.spans = {{.units = {cut, model.unit_count()}, .tensor = 1, .data = 2}},
                      .devices = {DeviceId{2}, DeviceId{3}}}};
  return out;
}

int op_named(const AcesoPlan& read, const std::string& name) {
  for (int u = 0; u < read.problem.model.unit_count(); ++u)
    if (read.problem.model.unit(u).name == name) return u;
  return -1;
}

Model gpt(int layers) {
  return at_op_granularity(build_transformer(samples::gpt(layers, 64, 4, 32)));
}

std::string first_of_second_stage(const MappedAcesoPlan& mapped, const Model& fine) {
  return fine.unit(mapped.plan.stages[1].spans.front().units.begin).name;
}

TEST(AcesoOntoModel, CutsBetweenOpsOfBothStay) {
  const Model fine = gpt(2);
  AcesoPlan read = configuration("gpt", {2}, 1 + 13 + 9);
  ASSERT_EQ(read.problem.model.unit(1 + 13 + 9).name, "enc-MLP-GEMM-1");
  const MappedAcesoPlan mapped = map_aceso_plan(read, fine, "c.json");
  EXPECT_TRUE(mapped.moves.empty());
  EXPECT_EQ(mapped.moved, read.plan);
  EXPECT_EQ(first_of_second_stage(mapped, fine), "decoder.mlp.up");
  EXPECT_EQ(mapped.plan.stages[1].spans.back().units.end, fine.unit_count());
  EXPECT_EQ(mapped.plan.stages[0].spans.front().tensor, 2);
  EXPECT_EQ(mapped.plan.stages[1].spans.front().data, 2);
  EXPECT_EQ(mapped.plan.stages[0].devices, read.plan.stages[0].devices);
}

// Scores, softmax, dropout and the weighted sum are one op.
TEST(AcesoOntoModel, CutsInsideAttentionMoveToItsNearerEnd) {
  const Model fine = gpt(2);
  const struct {
    const char* before;
    const char* then;
  } cases[] = {{"enc-attention-softmax", "decoder.attention.core"},
               {"enc-attention-context", "decoder.attention.projection"}};
  for (const auto& [before, then] : cases) {
    AcesoPlan read = configuration("gpt", {2}, 20);
    read = configuration("gpt", {2}, op_named(read, before));
    const MappedAcesoPlan mapped = map_aceso_plan(read, fine, "c.json");
    ASSERT_EQ(mapped.moves.size(), 1u) << before;
    EXPECT_EQ(first_of_second_stage(mapped, fine), then);
    EXPECT_NE(mapped.moved, read.plan);
    EXPECT_EQ(mapped.moved.stages[1].spans.back().units.end, read.problem.model.unit_count());
  }
}

TEST(AcesoOntoModel, SplitsAndRecomputeGoWithTheOps) {
  const Model fine = gpt(1);
  AcesoPlan read = configuration("gpt", {1}, 14);
  Stage& stage = read.plan.stages[0];
  stage.spans = {{.units = {0, 2}, .tensor = 2},
                 {.units = {2, 3}, .tensor = 2, .split = 1},
                 {.units = {3, 7}, .tensor = 2, .recompute = Recompute::full},
                 {.units = {7, 14}, .tensor = 2}};
  const MappedAcesoPlan mapped = map_aceso_plan(read, fine, "c.json");
  for (const Span& span : mapped.plan.stages[0].spans)
    for (int u = span.units.begin; u < span.units.end; ++u) {
      const std::string& name = fine.unit(u).name;
      EXPECT_EQ(span.split, name == "decoder.attention.qkv" ? 1 : 0) << name;
      const bool core = name == "decoder.attention.core";
      EXPECT_EQ(span.recompute, core ? Recompute::full : Recompute::none) << name;
    }
}

TEST(AcesoOntoModel, ResnetsAreMappedBlockByBlock) {
  const Model fine = at_op_granularity(build_wide_resnet({}));
  AcesoPlan read = configuration("resnet", {3, 4, 6, 3}, 20);
  read = configuration("resnet", {3, 4, 6, 3}, op_named(read, "block-2-0-conv1"));
  const MappedAcesoPlan mapped = map_aceso_plan(read, fine, "c.json");
  EXPECT_TRUE(mapped.moves.empty());
  EXPECT_EQ(first_of_second_stage(mapped, fine), "stage3_first.conv1");
}

TEST(AcesoOntoModel, OtherNetworksAreRefused) {
  const AcesoPlan read = configuration("gpt", {2}, 14);
  EXPECT_EQ(complaint([&] { map_aceso_plan(read, gpt(1), "c.json"); }),
            "c.json: is of gpt_tiny, whose op 14 (enc-1st-layernorm) gpt does not have");
  EXPECT_TRUE(complaint([&] {
                map_aceso_plan(read, gpt(3), "c.json");
              }).starts_with("c.json: is of gpt_tiny, which has nothing for unit "));
}

}  // namespace
}  // namespace plait
