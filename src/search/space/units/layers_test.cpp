#include "search/space/units/layers.h"

#include <gtest/gtest.h>

#include "plan/sample_problems.h"

namespace plait {
namespace {

Model gpt() { return build_transformer(samples::gpt(4, 1024, 16, 1024)); }

TEST(Layers, AreWhatTheModelWasTakenApartFrom) {
  const Model model = gpt();
  const auto view = seen_by_layers(at_op_granularity(model));
  ASSERT_TRUE(view);
  EXPECT_EQ(view->model.units.size(), model.units.size());
  for (int u = 0; u < model.unit_count(); ++u) {
    EXPECT_EQ(view->model.unit(u).name, model.unit(u).name);
    EXPECT_EQ(view->model.unit(u).ops, model.unit(u).ops);
    EXPECT_EQ(view->model.unit(u).output, model.unit(u).output);
  }
  EXPECT_EQ(view->model.ties, model.ties);
}

TEST(Layers, AreNotLookedForWhereUnitsAreLayers) { EXPECT_FALSE(seen_by_layers(gpt())); }

TEST(Layers, GiveTheirPlansToTheOps) {
  const Model fine = at_op_granularity(gpt());
  const auto view = seen_by_layers(fine);
  ASSERT_TRUE(view);
  Plan plan;
  plan.stages.resize(2);
  plan.stages[0].spans = {{.units = {0, 3}}};
  plan.stages[1].spans = {{.units = {3, view->model.unit_count()}}};
  const Plan in_fine = in_ops(plan, *view);
  // The embedding's ops, two layers' ops, and then the third layer begins.
  const int cut = in_fine.stages[0].spans[0].units.end;
  EXPECT_EQ(in_fine.stages[0].spans[0].units.begin, 0);
  EXPECT_TRUE(fine.unit(cut).starts_layer);
  EXPECT_EQ(cut,
            static_cast<int>(view->model.unit(0).ops.size() + 2 * view->model.unit(1).ops.size()));
  EXPECT_EQ(in_fine.stages[1].spans[0].units, (UnitRange{cut, fine.unit_count()}));
}

// Ops that are only measured, as Aceso's: a layer takes what they take together, not what the one
// takes that it is named after.
TEST(Layers, TakeWhatTheirMeasuredOpsTake) {
  Problem fine;
  for (const char* name : {"norm", "product", "head"}) {
    const int kind = static_cast<int>(fine.model.kinds.size());
    fine.model.kinds.push_back({.name = name, .ops = {{.name = name}}, .starts_layer = kind != 1});
    for (const int micro_batch : {1, 2}) {
      ComputeSample& sample =
          fine.profile.compute[{.unit = name, .device_type = "V100", .micro_batch = micro_batch}];
      sample.forward = Seconds(1 + kind);
      sample.saved_activations = Bytes(10 + kind);
      sample.workspace = Bytes(100 + kind);
      sample.input = Bytes(5 + kind);
    }
  }
  // What did not fit in one of them did not fit.
  ComputeSample& large =
      fine.profile.compute[{.unit = "norm", .device_type = "V100", .micro_batch = 4}];
  large.out_of_memory = true;
  fine.profile.compute[{.unit = "product", .device_type = "V100", .micro_batch = 4}].forward =
      Seconds(9);
  fine.model.units = {0, 1, 0, 1, 2};
  const auto view = seen_by_layers(fine.model);
  ASSERT_TRUE(view);
  const Problem coarse = by_layers(fine, *view);
  EXPECT_EQ(coarse.model.unit_count(), 3);
  EXPECT_EQ(coarse.model.unit(0).name, "norm..product");
  const auto& samples = coarse.profile.compute;
  const ComputeSample& layer =
      samples.at({.unit = "norm..product", .device_type = "V100", .micro_batch = 2});
  EXPECT_EQ(layer.forward, Seconds(3));
  EXPECT_EQ(layer.saved_activations, Bytes(21));
  EXPECT_EQ(layer.workspace, Bytes(101));
  EXPECT_EQ(layer.input, Bytes(5));
  EXPECT_FALSE(
      samples.contains({.unit = "norm..product", .device_type = "V100", .micro_batch = 4}));
  EXPECT_EQ(samples.at({.unit = "head", .device_type = "V100"}).forward, Seconds(3));
}

}  // namespace
}  // namespace plait
