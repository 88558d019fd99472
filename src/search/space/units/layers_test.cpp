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

}  // namespace
}  // namespace plait
