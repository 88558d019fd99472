#include "runtime/torch/train/unit_module.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "runtime/lower/tiny_models.h"

namespace plait::runtime {
namespace {

UnitModule::Range range_of(const ExecProgram& program, int unit) {
  return {program.begin[unit], program.begin[unit + 1]};
}

TEST(UnitModule, EveryFamilyHasTheParametersThatPlanningCounts) {
  for (const Model& model : samples::tiny_models()) {
    const Lowered lowered = lower(model);
    ASSERT_EQ(lowered.fault, "") << model.name;
    AbsentGroup alone;
    const ParameterSource source = separate_parameters({}, at::kFloat, 1);
    std::map<std::string, at::Tensor> distinct;
    for (int u = 0; u < model.unit_count(); ++u) {
      const UnitModule unit(lowered.program, range_of(lowered.program, u), {}, alone, source);
      for (const LocalParameter& p : unit.parameters()) distinct[p.parameter.name] = p.value;
    }
    double count = 0;
    for (const auto& [name, value] : distinct) count += static_cast<double>(value.numel());
    EXPECT_EQ(count, model.parameters()) << model.name;
  }
}

TEST(UnitModule, AnUntrainedModelGuesses) {
  at::manual_seed(1);
  for (const Model& model : samples::tiny_models()) {
    const ExecProgram program = lower(model).program;
    AbsentGroup alone;
    const int end = static_cast<int>(program.ops.size());
    UnitModule whole(program, {0, end}, {}, alone, separate_parameters({}, at::kFloat, 1));
    const Batch batch = noise_batch(program, 4, at::kFloat, 7);
    const Bundle out = whole.forward({}, batch);
    ASSERT_EQ(out.size(), 1u) << model.name;
    const at::Tensor loss = out.at("loss");
    ASSERT_EQ(loss.sizes(), (std::vector<std::int64_t>{4, 1}));
    // Cross-entropy of equal chances; BERT's next sentence adds log 2.
    const double chance = std::log(static_cast<double>(program.classes)) +
                          (program.next_sentence ? std::log(2.0) : 0);
    EXPECT_NEAR(loss.mean().item<double>(), chance, program.images ? 1.5 : 0.1) << model.name;
    loss.sum().backward();
    for (const LocalParameter& p : whole.parameters())
      EXPECT_TRUE(p.value.grad().defined()) << model.name << " " << p.parameter.name;
  }
}

TEST(UnitModule, OneShardAloneHasTheShapesThatCrossCuts) {
  for (const Model& coarse : samples::tiny_models()) {
    const Model model = at_op_granularity(coarse);
    const ExecProgram program = lower(model).program;
    const ShardSpec shard{.tensor = 2, .rank = 1, .sequence_parallel = !program.images};
    AbsentGroup group(2, 1);
    const ParameterSource source = separate_parameters(shard, at::kFloat, 1);
    const Batch batch = noise_batch(program, 2, at::kFloat, 7);
    Bundle bundle;
    for (int u = 0; u < model.unit_count(); ++u) {
      UnitModule unit(program, range_of(program, u), shard, group, source);
      if (u > 0 && program.ops[program.begin[u] - 1].may_cut_after) {
        const Bundle expected = unit.sample_input(2, at::kFloat);
        ASSERT_EQ(expected.size(), bundle.size()) << model.name << " before unit " << u;
        for (const auto& [name, tensor] : expected)
          EXPECT_EQ(tensor.sizes(), bundle.at(name).sizes()) << model.name << " " << name;
      }
      bundle = unit.forward(std::move(bundle), batch);
    }
    EXPECT_EQ(bundle.size(), 1u);
  }
}

TEST(UnitModule, StartsFromTheSameWeightsWhateverTheCut) {
  const ExecProgram program = lower(build_transformer(samples::tiny_llama())).program;
  for (const ExecOp& op : program.ops)
    for (const Parameter& p : op.parameters) {
      const at::Tensor whole = initial_value(p, 3);
      EXPECT_TRUE(whole.equal(initial_value(p, 3)));
      for (int rank = 0; rank < 4; ++rank)
        EXPECT_EQ(local_part(whole, p, {.tensor = 4, .rank = rank}).sizes(),
                  local_shape(p, {.tensor = 4, .rank = rank}))
            << p.name;
    }
}

}  // namespace
}  // namespace plait::runtime
