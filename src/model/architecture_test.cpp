#include "model/architecture.h"

#include <gtest/gtest.h>

#include "model/gan.h"
#include "model/resnet.h"
#include "model/transformer.h"

namespace plait {
namespace {

TransformerConfig tiny() {
  TransformerConfig c{.name = "tiny", .sequence = 8, .vocabulary = 11, .layers = 2, .hidden = 8};
  c.heads = 2;
  return c;
}

TEST(Architecture, BuildersKeepWhatTheyWereGiven) {
  TransformerConfig config = tiny();
  const Model model = build_transformer(config);
  config.name.clear();  // the model has it
  EXPECT_EQ(model.architecture, Architecture(config));
  EXPECT_EQ(model.name, "tiny");
  EXPECT_TRUE(
      std::holds_alternative<WideResnetConfig>(build_wide_resnet({.classes = 7}).architecture));
  EXPECT_TRUE(std::holds_alternative<TransganConfig>(build_transgan({}).architecture));
  EXPECT_TRUE(std::holds_alternative<OpsOnly>(Model{}.architecture));
}

TEST(Architecture, IsTheSameAtOpGranularity) {
  for (const Model& model :
       {build_transformer(tiny()), build_wide_resnet({}), build_transgan({})}) {
    const Model fine = at_op_granularity(model);
    EXPECT_EQ(fine.architecture, model.architecture);
    EXPECT_EQ(architecture_fault(fine), "");
    EXPECT_EQ(architecture_fault(model), "");
  }
}

TEST(Architecture, TellsModelsOfEqualOpsApart) {
  TransformerConfig wide = tiny();
  wide.rotary.base = 500'000;
  EXPECT_NE(build_transformer(wide), build_transformer(tiny()));
}

TEST(Architecture, DoesNotFitOtherUnits) {
  Model longer = build_transformer(tiny());
  longer.units.insert(longer.units.begin() + 1, longer.units[1]);
  EXPECT_EQ(architecture_fault(longer), "the model has 5 units, where its architecture has 4");
  Model renamed = build_transformer(tiny());
  renamed.kinds[1].ops[0].name = "attention.other";
  EXPECT_EQ(architecture_fault(renamed),
            "the model has a unit 1 ('decoder') that is not the one of its architecture "
            "('decoder')");
  Model untied = build_transformer(tiny());
  untied.ties.clear();
  EXPECT_EQ(architecture_fault(untied), "the model has other ties than its architecture");
  Model other = build_transformer(tiny());
  other.sequence_length = 16;
  EXPECT_NE(architecture_fault(other), "");
}

TEST(Architecture, CostsMayDifferFromTheBuilders) {
  Model model = build_transformer(tiny());
  for (LayerKind& kind : model.kinds)
    for (Op& op : kind.ops) op.moved *= 2;
  EXPECT_EQ(architecture_fault(model), "");
}

TEST(Architecture, NoHeadIsTurnedBeyondItsSize) {
  TransformerConfig config = tiny();
  config.positions = Positions::rotary;
  config.rotary_dim = 6;  // heads of 4
  EXPECT_EQ(fault_of(config), "rotary_dim (6) must be at most the size of a head (4)");
}

}  // namespace
}  // namespace plait
