#include "io/profile/aceso_models.h"

#include <gtest/gtest.h>

#include <set>

#include "base/sample_complaint.h"
#include "io/profile/aceso_mapping.h"
#include "io/profile/import_aceso.h"
#include "model/resnet.h"

namespace plait {
namespace {

TEST(AcesoModels, HaveTheirOpsByName) {
  const auto ops = [](const std::string& name, std::optional<int> layers = std::nullopt) {
    const AcesoModel model = aceso_model_named("aceso:" + name, layers);
    return aceso_op_list(model.family, model.layers).size();
  };
  EXPECT_EQ(ops("gpt_1_3B"), 13U * 24 + 3);
  EXPECT_EQ(ops("t5_770M"), 34U * 24 + 5);
  EXPECT_EQ(ops("resnet_1B"), 8U * 16 + 6);
  EXPECT_EQ(ops("resnet_13B"), 8U * 33 + 6);
  EXPECT_EQ(ops("scale-layer", 1024), 13'315U);
  EXPECT_EQ(aceso_model_named("aceso:t5_22B", {}).table, "t5_11B");
  EXPECT_EQ(aceso_model_named("aceso:t5_22B", {}).sequence(), 2048);
  EXPECT_EQ(samples::complaint([] { aceso_model_named("aceso:scale-layer", {}); }),
            "model aceso:scale-layer: needs a number of `layers`, for example 64");
}

// Thirteen ops of a layer are ten of plait's: attention's four are one.
TEST(AcesoModels, EveryOpOfALayerIsOneOfPlaits) {
  for (const char* family : {"gpt", "t5"}) {
    const std::vector<std::string> ops = aceso_op_list(family, {1});
    ASSERT_EQ(aceso_mappings(family).size(), ops.size());
    double shares = 0;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      EXPECT_EQ(aceso_mappings(family)[i].aceso, ops[i]);
      if (aceso_mappings(family)[i].op == "attention.core")
        shares += aceso_mappings(family)[i].share;
    }
    EXPECT_NEAR(shares, family == std::string("gpt") ? 1 : 2, 1e-12);
  }
}

// Every op of a ResNet is in one of plait's, and every product of plait's is one of them.
TEST(AcesoModels, EveryOpOfAResnetIsOneOfPlaits) {
  const Model fine = at_op_granularity(build_wide_resnet({}));
  std::set<std::string> met;
  for (const std::string& op : aceso_op_list("resnet", {3, 4, 6, 3})) {
    int units = 0;
    for (const LayerKind& kind : fine.kinds)
      if (is_unit_of("resnet", op, kind)) {
        ++units;
        met.insert(kind.name);
      }
    EXPECT_EQ(units, 1) << op;
  }
  for (const LayerKind& kind : fine.kinds) {
    const OpKind own = kind.ops.front().kind;
    const bool is_product = own == OpKind::convolution || own == OpKind::matmul;
    EXPECT_TRUE(!is_product || met.contains(kind.name)) << kind.name;
  }
  EXPECT_EQ(resnet_layer("block-2-0-conv1"), "stage3_first");
  EXPECT_EQ(resnet_layer("block-2-10-relu"), "stage3");
}

}  // namespace
}  // namespace plait
