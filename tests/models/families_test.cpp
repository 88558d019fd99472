#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "io/model/changed_fields.h"
#include "io/model/huggingface/huggingface.h"
#include "io/model/load_model.h"
#include "io/model/zoo.h"
#include "model/transformer.h"
#include "runtime/lower/exec_op.h"
#include "runtime/lower/network_support.h"
#include "runtime/lower/tiny_models.h"
#include "source_tree.h"

namespace plait {
namespace {

// "" when `plait train` runs the network that the model describes.
std::string refusal(const Model& model) {
  const runtime::Lowered lowered = runtime::lower(model);
  return lowered.fault.empty() ? runtime::untrained_feature(model) : lowered.fault;
}

TransformerReading read(const std::string& config, std::optional<int> sequence = std::nullopt) {
  return read_huggingface(parse_json("config.json", config), sequence);
}

double owned(const runtime::ExecProgram& program) {
  double sum = 0;
  for (const runtime::ExecOp& op : program.ops)
    for (const runtime::Parameter& parameter : op.parameters)
      if (parameter.owned) sum += parameter.size();
  return sum;
}

// The program against the configuration, restated: what each op of the network must be.
void expect_as_described(const runtime::ExecProgram& program, const TransformerConfig& c) {
  using Kind = runtime::ExecOpKind;
  int attentions = 0, chosen = 0, turned = 0, block = 0;
  const std::set<int> full(c.window.full.begin(), c.window.full.end());
  for (const runtime::ExecOp& op : program.ops) {
    if (op.kind == Kind::norm) {
      EXPECT_EQ(op.epsilon, c.norm_epsilon);
      EXPECT_EQ(op.parameters.size(), !c.norm_affine                             ? 0u
                                      : c.norm == NormKind::rms || !c.norm_shift ? 1u
                                                                                 : 2u);
      EXPECT_EQ(op.function, c.norm == NormKind::rms ? Function::rms_norm : Function::layer_norm);
    }
    if (op.kind == Kind::activation || op.kind == Kind::experts_activation) {
      EXPECT_EQ(op.function, c.activation);
      EXPECT_EQ(op.gated, c.gated && op.name != "head.activation");
    }
    if (op.kind == Kind::top_k) {
      EXPECT_EQ(op.chosen, c.moe.top_k);
      EXPECT_EQ(op.normalised, c.moe.normalised);
      EXPECT_EQ(op.scale, c.moe.scale);
      ++chosen;
    }
    if (op.kind == Kind::rotary) {
      EXPECT_EQ(op.rotary.neighbours, c.rotary.neighbours);
      ++turned;
    }
    if (op.kind == Kind::tokens) {
      EXPECT_EQ(op.scale, c.embedding_scale);
    }
    if (op.kind == Kind::residual) {
      EXPECT_EQ(op.scale, c.residual_scale);
    }
    if (op.kind == Kind::logits) {
      EXPECT_EQ(op.scale, c.logit_scale);
      EXPECT_EQ(op.cap, c.logit_cap);
      EXPECT_EQ(op.parameters[0].owned, !c.tied);
    }
    if (op.name != "attention.core") continue;
    const bool decoder = c.decoder_layers > 0 && attentions++ >= c.layers;
    EXPECT_EQ(op.causal, c.decoder_layers > 0 ? decoder : c.causal);
    EXPECT_EQ(op.alibi, c.positions == Positions::alibi);
    EXPECT_EQ(op.cap, c.score_cap);
    const bool windowed =
        c.window.size > 0 && c.window.size < c.sequence && !full.contains(block++);
    EXPECT_EQ(op.window, windowed ? c.window.size : 0);
  }
  const int mixtures = static_cast<int>(std::ranges::count_if(
      program.ops, [](const runtime::ExecOp& op) { return op.kind == Kind::router; }));
  EXPECT_EQ(chosen, mixtures);
  if (c.moe.experts == 0) {
    EXPECT_EQ(mixtures, 0);
  }
  if (c.positions != Positions::rotary) {
    EXPECT_EQ(turned, 0);
  }
}

struct Described {
  std::string name;
  TransformerConfig config;
};

// Each model type by itself, the configs that parameters are counted of, and the zoo.
std::vector<Described> all_families() {
  std::vector<Described> all;
  for (const std::string& type : huggingface_model_types())
    all.push_back({type, read(R"({"model_type": ")" + type + R"("})").config});
  const JsonValue file = read_json_file(source_dir() + "/tests/models/transformers_counts.json");
  for (const JsonValue& row : file.at("rows").items())
    all.push_back({row.where() + " " + row.at("config").at("model_type").text(),
                   read_huggingface(row.at("config"), std::nullopt).config});
  for (const std::string& name : zoo_names())
    if (const auto config = zoo_transformer(name)) all.push_back({name, *config});
  return all;
}

TEST(Families, AreTrainedAsDescribedOrRefused) {
  int trained = 0;
  for (const auto& [name, config] : all_families()) {
    SCOPED_TRACE(name);
    const Model model = build_transformer(config);
    const runtime::Lowered lowered = runtime::lower(model);
    if (lowered.fault.empty()) {
      EXPECT_EQ(owned(lowered.program), model.parameters());
    }
    if (!refusal(model).empty()) continue;
    expect_as_described(lowered.program, config);
    ++trained;
  }
  EXPECT_GE(trained, 200);
}

// The model types whose defaults are not trained, with the reason; all others are.
TEST(Families, ThatAreNotTrainedAreTheseOnes) {
  const std::map<std::string, std::string> reasons = {
      {"olmo2", "normalises all heads together"},
      {"olmo3", "normalises all heads together"},
      {"olmoe", "normalises all heads together"},
      {"nemotron", "the activation 'relu2'"},
      {"deepseek_v2", "latent attention"},
      {"deepseek_v3", "latent attention"},
      {"kimi_k2", "latent attention"},
      {"gpt_oss", "attention sinks"},
      {"glm4_moe", "21 features of a head, which must be even"},
      {"phimoe", "SparseMixer"},
      {"llama4_text", "attention within chunks"},
      {"modernbert", "in both directions with ALiBi or within a window"},
      {"umt5", "a table of relative positions of its own"},
      {"pegasus", "a fixed table"},
      {"marian", "a fixed table"},
      {"m2m_100", "sinusoidal positions"},
      {"blenderbot-small", "a norm before the decoder's positions"},
  };
  for (const std::string& type : huggingface_model_types()) {
    const std::string reason =
        refusal(build_transformer(read(R"({"model_type": ")" + type + R"("})").config));
    const auto expected = reasons.find(type);
    if (expected == reasons.end()) {
      EXPECT_EQ(reason, "") << type;
    } else {
      EXPECT_NE(reason.find(expected->second), std::string::npos) << type << ": " << reason;
    }
  }
}

// A BLOOM, an MPT, a Mistral with a window and a Gemma 2 were once trained as plain transformers.
TEST(Families, KeepWhatTellsThemFromPlainTransformers) {
  const auto program = [](const std::string& config, int sequence) {
    return runtime::lower(build_transformer(read(config, sequence).config)).program;
  };
  const auto any = [](const runtime::ExecProgram& all, const auto& is) {
    return std::ranges::any_of(all.ops, is);
  };
  using Op = runtime::ExecOp;
  for (const char* type : {"bloom", "mpt"})
    EXPECT_TRUE(any(program(R"({"model_type": ")" + std::string(type) + R"("})", 64),
                    [](const Op& op) { return op.alibi; }));
  EXPECT_TRUE(any(program(R"({"model_type": "mistral", "sliding_window": 16})", 64),
                  [](const Op& op) { return op.window == 16; }));
  const runtime::ExecProgram gemma = program(R"({"model_type": "gemma2"})", 64);
  EXPECT_TRUE(any(gemma, [](const Op& op) { return op.cap == 50; }));
  EXPECT_TRUE(any(gemma, [](const Op& op) { return op.cap == 30; }));
}

// Fields that are not part of the network: how kernels are fused, in what precision they round, and
// what is only said. Dropout is an op that does nothing.
const std::set<std::string> kNotOfTheNetwork = {"fused_qkv", "wide_norm", "unknown_keys"};

// Small configurations between which every field matters somewhere.
std::vector<TransformerConfig> bases() {
  TransformerConfig relative = samples::tiny_t5();
  relative.layers = relative.decoder_layers = 1;
  TransformerConfig scaled = samples::tiny_llama();
  scaled.rotary.scaling = RotaryScaling::llama3;
  scaled.rotary.factor = 8;
  scaled.window.size = 4;
  TransformerConfig latent = samples::tiny_llama();
  latent.mla = {.q_rank = 4, .kv_rank = 4, .nope_dim = 4, .rope_dim = 4, .value_dim = 4};
  TransformerConfig grouped = samples::tiny_mixture();
  grouped.moe.groups = 2;
  TransformerConfig normed = samples::tiny_parallel(false);
  normed.qk_norm = QkNorm::per_head;
  TransformerConfig classifier = samples::tiny_bert();
  classifier.head = Head::classifier;
  classifier.classes = 3;
  return {samples::tiny_gpt(),
          samples::tiny_llama(),
          samples::tiny_bert(),
          samples::tiny_vit(),
          samples::tiny_mixture(),
          samples::tiny_shared(),
          relative,
          samples::tiny_parallel(true),
          scaled,
          latent,
          grouped,
          samples::tiny_parallel(false),
          normed,
          classifier};
}

TEST(Families, NoFieldOfAConfigurationIsIgnored) {
  std::set<std::string> all;
  std::set<std::string> heeded;
  for (const TransformerConfig& base : bases()) {
    const runtime::Lowered before = runtime::lower(build_transformer(base));
    const std::string feature = runtime::untrained_feature(build_transformer(base));
    for (const auto& [config, field] : samples::changed_in_one_field(base)) {
      all.insert(field);
      const Model model = build_transformer(config);
      const runtime::Lowered after = runtime::lower(model);
      const bool is_other = after.fault != before.fault || after.program != before.program ||
                            runtime::untrained_feature(model) != feature;
      // Latent attention is refused whatever its sizes are.
      if (is_other || (base.mla.kv_rank > 0 && field.starts_with("mla."))) heeded.insert(field);
    }
  }
  EXPECT_GE(all.size(), 85u);
  for (const std::string& field : all)
    EXPECT_EQ(heeded.contains(field), !kNotOfTheNetwork.contains(field)) << field;
}

}  // namespace
}  // namespace plait
