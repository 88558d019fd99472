#include "io/model/architecture_json.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "io/model/changed_fields.h"
#include "io/model/zoo.h"

namespace plait {
namespace {

Architecture again(const Architecture& architecture) {
  return restore_architecture(parse_json("a", dump_architecture(architecture)));
}

TEST(ArchitectureJson, EveryZooModelReadsBack) {
  for (const std::string& name : zoo_names()) {
    const Architecture architecture = zoo_model(name, std::nullopt)->model.architecture;
    EXPECT_EQ(again(architecture), architecture) << name;
  }
  EXPECT_EQ(again(OpsOnly{}), Architecture(OpsOnly{}));
  EXPECT_EQ(dump_architecture(NotRecorded{}), "");
}

template <typename Config>
void expect_fields_to_read_back(const Config& base, std::size_t least) {
  std::set<std::string> fields;
  for (const auto& [config, field] : samples::changed_in_one_field(base)) {
    EXPECT_EQ(again(config), Architecture(config)) << field;
    EXPECT_NE(again(config), Architecture(base)) << field;
    fields.insert(field);
  }
  EXPECT_GE(fields.size(), least);
}

TEST(ArchitectureJson, EveryFieldReadsBack) {
  TransformerConfig config{.name = "", .vocabulary = 61, .layers = 4, .hidden = 32};
  config.heads = 4;
  config.positions = Positions::rotary;
  config.moe = {.experts = 4, .ffn = 16};
  config.patches = {.image = 16, .patch = 4};
  config.mla = {.q_rank = 4, .kv_rank = 4, .nope_dim = 4, .rope_dim = 4, .value_dim = 4};
  expect_fields_to_read_back(config, 80);
  config.gated = true;  // whose activation is silu unless it is said
  expect_fields_to_read_back(config, 80);
  expect_fields_to_read_back(WideResnetConfig{.name = ""}, 4);
  expect_fields_to_read_back(TransganConfig{.name = ""}, 4);
}

TEST(ArchitectureJson, MistakesNameTheirPlace) {
  const auto complaint = [](const std::string& text) -> std::string {
    try {
      restore_architecture(parse_json("a", text));
    } catch (const InputError& e) {
      return e.what();
    }
    return "no complaint";
  };
  EXPECT_EQ(complaint(R"({"transformer": {"layer": 3}})"),
            "a#/transformer: unknown key 'layer' (did you mean 'layers'?)");
  EXPECT_EQ(
      complaint(R"({"transformer": {"layers": 1}, "ops_only": true})"),
      "a#: needs one of 'transformer', 'wide_resnet', 'transgan' and 'ops_only', and no other");
  EXPECT_EQ(complaint(R"({"transformer": {"rotary": {"base": -1}}})"),
            "a#/transformer/rotary/base: must be at least 0, is -1");
  EXPECT_EQ(complaint(R"({"wide_resnet": {"width": 0}})"),
            "a#/wide_resnet: width must be from 1 to 1024");
}

}  // namespace
}  // namespace plait
