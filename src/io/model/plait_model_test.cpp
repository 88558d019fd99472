#include "io/model/plait_model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/sample_complaint.h"
#include "io/model/load_model.h"
#include "io/model/zoo.h"

namespace plait {
namespace {

Model read(const std::string& text) {
  return read_plait_model(parse_json("m.json", text), std::nullopt).model;
}

std::string complaint(const std::string& text) {
  return samples::complaint([&] { read_model(parse_json("m.json", text), std::nullopt); });
}

TEST(PlaitModel, EveryZooModelSurvivesBeingSpeltOut) {
  for (const std::string& name : zoo_names()) {
    const Model model = zoo_model(name, std::nullopt)->model;
    Model ops = model;
    ops.architecture = OpsOnly{};
    EXPECT_EQ(read(write_plait_model(ops)), ops) << name;
  }
}

TEST(PlaitModel, EveryZooModelIsWrittenAsItsSwitches) {
  for (const std::string& name : zoo_names()) {
    const Model model = zoo_model(name, std::nullopt)->model;
    const std::string text = write_plait_model(model);
    EXPECT_EQ(text.find("\"kinds\""), std::string::npos) << name;
    EXPECT_EQ(read(text), model) << name;
  }
}

TEST(PlaitModel, TransformerSwitchesBuildTheModel) {
  const Model model = read(
      R"({"plait_model": 1, "name": "mine", "transformer": {"vocabulary": 32000, "layers": 32,
          "hidden": 4096, "heads": 32, "ffn": 11008, "gated": true, "norm": "rms", "tied": false,
          "qkv_bias": false, "projection_bias": false, "mlp_bias": false, "positions": "rotary",
          "dropout": false, "sequence": 2048}})");
  EXPECT_EQ(model.parameters(), 6'738'415'616);
  EXPECT_EQ(model.name, "mine");
  EXPECT_EQ(model.sequence_length, 2048);
}

TEST(PlaitModel, ProductsNeedOnlyTheirShape) {
  const Model model = read(
      R"({"plait_model": 1, "kinds": [{"name": "dense", "ops": [
           {"name": "w", "kind": "matmul", "split": "row", "rows": 10, "inner": 4, "columns": 6}]}],
          "units": [{"kind": "dense", "times": 3}]})");
  EXPECT_EQ(model.unit_count(), 3);
  const Op& op = model.kinds[0].ops[0];
  EXPECT_EQ(op.forward.value, 2 * 10 * 4 * 6);
  EXPECT_EQ(op.parameters, 24);
  EXPECT_EQ(op.saved, 40);
  EXPECT_EQ(op.moved, 100);
  EXPECT_EQ(op.forward_reduce, 60);
  EXPECT_TRUE(op.saved_is_sharded);
  EXPECT_EQ(model.kinds[0].output, 60);
}

TEST(PlaitModel, MistakesNameTheirPlace) {
  EXPECT_EQ(complaint("[]"), "m.json#: a model is an object: a config.json or a plait model file");
  EXPECT_EQ(complaint(R"({"plait_model": 2})"),
            "m.json#/plait_model: must be a whole number from 1 to 1, is 2");
  EXPECT_EQ(complaint(R"({"plait_model": 1})"),
            "m.json#: one of 'transformer', 'wide_resnet', 'transgan' or 'kinds' is needed");
  EXPECT_EQ(complaint(R"({"plait_model": 1, "transformer": {"hiden": 4}})"),
            "m.json#/transformer: unknown key 'hiden' (did you mean 'hidden'?)");
  EXPECT_EQ(complaint(R"({"plait_model": 1, "transformer": {"hidden": 4}})"),
            "m.json#/transformer: layers must be from 1 to 100000, is 0");
  EXPECT_EQ(complaint(R"({"plait_model": 1, "transformer": {"norm": "batch"}})"),
            "m.json#/transformer/norm: unknown value 'batch', must be one of layer, rms");
  EXPECT_EQ(complaint(R"({"plait_model": 1, "wide_resnet": {"image": 100}})"),
            "m.json#/wide_resnet: image must be a multiple of 32 and at most 16384");
  EXPECT_EQ(complaint(R"({"plait_model": 1, "kinds": [{"name": "a", "ops": []}], "units": []})"),
            "m.json#/kinds/0/ops: must have at least one op");
  const std::string kinds = R"("kinds": [{"name": "a", "ops": [{"name": "x", "kind": "norm"}]}])";
  EXPECT_EQ(complaint(R"({"plait_model": 1, )" + kinds + R"(, "units": ["b"]})"),
            "m.json#/units/0: unknown value 'b', must be one of a");
  EXPECT_EQ(
      complaint(R"({"plait_model": 1, )" + kinds +
                R"(, "units": [{"kind": "a", "times": 120000}, {"kind": "a", "times": 120000}]})"),
      "m.json#/units/1: more than 200100 units");
  EXPECT_EQ(complaint(R"({"plait_model": 1, )" + kinds +
                      R"(, "units": ["a"], "ties": [{"first": 0, "second": 1, "parameters": 1}]})"),
            "m.json#/ties/0/second: must be a whole number from 0 to 0, is 1");
}

// A saved file says more of an op than this one, and is read with as many values at most.
TEST(PlaitModel, MoreOpsThanASavedFileCanHoldAreRefused) {
  std::string kinds;
  for (int k = 0; k < 502; ++k) {
    kinds += fmt::format(R"({}{{"name": "k{}", "ops": [)", k > 0 ? ", " : "", k);
    for (int i = 0; i < 100; ++i)
      kinds += i > 0 ? R"(, {"name": "x", "kind": "norm"})" : R"({"name": "x", "kind": "norm"})";
    kinds += "]}";
  }
  EXPECT_EQ(complaint(R"({"plait_model": 1, "kinds": [)" + kinds + R"(], "units": ["k0"]})"),
            "m.json#/kinds/500: more than 50000 ops");
}

TEST(PlaitModel, ProductsAndAttentionNeedTheirShape) {
  const auto with = [](const std::string& op) {
    return complaint(R"({"plait_model": 1, "kinds": [{"name": "a", "ops": [{"name": "x", )" + op +
                     R"(}]}], "units": ["a"]})");
  };
  EXPECT_EQ(with(R"("kind": "attention", "rows": 8, "columns": 8, "count": 4)"),
            "m.json#/kinds/0/ops/0: 'x' needs 'rows', 'inner' and 'columns' above 0");
  EXPECT_EQ(with(R"("kind": "matmul", "forward_flops": 1e12)"),
            "m.json#/kinds/0/ops/0: 'x' needs 'rows', 'inner' and 'columns' above 0");
  EXPECT_EQ(with(R"("kind": "norm")"), "");
}

}  // namespace
}  // namespace plait
