// What tells networks apart without changing the shape of their weights: scales, caps, windows, how
// positions are turned, how experts are weighed. Defaults are those of `transformers`.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "base/error.h"
#include "io/model/huggingface/fields.h"

namespace plait {
namespace {

constexpr int kMostListedLayers = 100'000;

bool is_one_of(const std::string& type, std::initializer_list<std::string_view> types) {
  return std::ranges::find(types, type) != types.end();
}

// A number by model type, for those that differ from the usual one.
struct TypeNumber {
  std::string_view type;
  double value;
};

double number_of(const std::string& type, std::span<const TypeNumber> table, double usual) {
  const auto found = std::ranges::find(table, type, &TypeNumber::type);
  return found == table.end() ? usual : found->value;
}

constexpr TypeNumber kEpsilons[] = {
    {"bert", 1e-12},       {"roberta", 1e-12},  {"xlm-roberta", 1e-12}, {"distilbert", 1e-12},
    {"electra", 1e-12},    {"albert", 1e-12},   {"vit", 1e-12},         {"deit", 1e-12},
    {"llama", 1e-6},       {"mistral", 1e-6},   {"qwen2", 1e-6},        {"qwen3", 1e-6},
    {"qwen2_vl", 1e-5},    {"qwen2_moe", 1e-6}, {"qwen3_moe", 1e-6},    {"qwen3_vl_text", 1e-6},
    {"gemma", 1e-6},       {"gemma2", 1e-6},    {"gemma3_text", 1e-6},  {"granite", 1e-6},
    {"smollm3", 1e-6},     {"seed_oss", 1e-6},  {"deepseek", 1e-6},     {"deepseek_v2", 1e-6},
    {"deepseek_v3", 1e-6}, {"kimi_k2", 1e-6},   {"t5", 1e-6},           {"mt5", 1e-6},
    {"umt5", 1e-6},        {"glm", 1.5625e-7},  {"glm4", 1.5625e-7},
};
constexpr TypeNumber kRotaryBases[] = {
    {"mixtral", 1e6},     {"phimoe", 1e6},      {"smollm3", 2e6},
    {"gpt_oss", 150'000}, {"gemma3_text", 1e6}, {"llama4_text", 500'000},
};
constexpr TypeNumber kWindows[] = {
    {"mistral", 4096}, {"gemma2", 4096}, {"gemma3_text", 4096}, {"cohere2", 4096},
    {"olmo3", 4096},   {"gpt_neo", 256}, {"gpt_oss", 128},
};

double positive(const HfFields& fields, HfFields::Keys keys, double usual) {
  const auto value = fields.find(keys);
  return value ? value->positive() : usual;
}

// Layer norms of some families have the epsilon of PyTorch, whatever the config says.
void read_epsilon(const HfFields& fields, const std::string& type, TransformerConfig& c) {
  const auto value = fields.find({"rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon",
                                  "norm_eps", "norm_epsilon", "layernorm_epsilon"});
  c.norm_epsilon = value ? value->at_least(0) : number_of(type, kEpsilons, 1e-5);
}

void read_rotary_scaling(const JsonValue& scaling, TransformerConfig& c) {
  Rotary& rotary = c.rotary;
  const std::string kind = scaling.text_or("rope_type", scaling.text_or("type", "default"));
  const auto number = [&](std::string_view key, double usual) {
    const auto value = scaling.find(key);
    return value ? value->positive() : usual;
  };
  if (kind == "default" || kind == "mrope") return;
  if (kind == "linear") {
    rotary.scaling = RotaryScaling::linear;
    rotary.factor = number("factor", 1);
  } else if (kind == "llama3") {
    rotary.scaling = RotaryScaling::llama3;
    rotary.factor = number("factor", 8);
    rotary.low_factor = number("low_freq_factor", 1);
    rotary.high_factor = number("high_freq_factor", 4);
    rotary.trained_positions =
        scaling.integer_or("original_max_position_embeddings", 1, kMaxHfSize, 8192);
  } else {
    c.not_modelled.push_back(fmt::format("rotary positions that are scaled by '{}'", kind));
  }
}

// `rope_parameters` of `transformers` 5, also by kind of layer, or `rope_theta` and `rope_scaling`.
void read_angles(const HfFields& fields, const std::string& type, TransformerConfig& c) {
  c.rotary.base =
      positive(fields, {"rope_theta", "rotary_emb_base"}, number_of(type, kRotaryBases, 10'000));
  if (type == "gemma3_text") c.rotary.local_base = 10'000;
  c.rotary.local_base = positive(fields, {"rope_local_base_freq"}, c.rotary.local_base);
  auto parameters = fields.find({"rope_parameters", "rope_scaling"});
  if (parameters && !parameters->is_object())
    throw InputError(parameters->where(), "must be an object");
  if (parameters)
    if (const auto local = parameters->find("sliding_attention"))
      if (const auto base = local->find("rope_theta")) c.rotary.local_base = base->positive();
  if (parameters)
    if (const auto full = parameters->find("full_attention")) parameters = full;
  if (parameters) {
    if (const auto base = parameters->find("rope_theta")) c.rotary.base = base->positive();
    read_rotary_scaling(*parameters, c);
  } else if (type == "gpt_oss") {
    c.not_modelled.emplace_back("rotary positions that are scaled by 'yarn'");
  }
}

// Every `interval`-th layer has no positions, where no list says it (1 = has them).
void read_unturned_layers(const HfFields& fields, const std::string& type, TransformerConfig& c) {
  if (type == "cohere2") c.rotary.unturned = c.window.full;
  if (!is_one_of(type, {"smollm3", "llama4_text"}) || c.layers > kMostListedLayers) return;
  const auto list = fields.find({"no_rope_layers"});
  const std::vector<JsonValue> marks = list ? list->items() : std::vector<JsonValue>{};
  const int interval = fields.size({"no_rope_layer_interval"}, 4);
  for (int layer = 0; layer < c.layers; ++layer) {
    const bool turned = layer < static_cast<int>(marks.size()) ? marks[layer].integer(0, 1) == 1
                                                               : (layer + 1) % interval != 0;
    if (!turned) c.rotary.unturned.push_back(layer);
  }
}

void read_rotary(const HfFields& fields, const std::string& type, TransformerConfig& c) {
  if (c.positions != Positions::rotary) return;
  read_angles(fields, type, c);
  c.rotary.neighbours = is_one_of(type, {"gptj", "codegen", "cohere", "cohere2", "glm", "glm4",
                                         "llama4_text", "deepseek_v2", "deepseek_v3", "kimi_k2"});
  read_unturned_layers(fields, type, c);
}

// GPT-Neo's [[["global", "local"], 12]]: the pattern 12 times.
std::vector<std::string> neo_layers(const HfFields& fields, int layers) {
  std::vector<std::string> out;
  if (const auto list = fields.find({"attention_layers"})) {
    for (const JsonValue& kind : list->items()) out.push_back(kind.text());
    return out;
  }
  if (const auto patterns = fields.find({"attention_types"})) {
    for (const JsonValue& pattern : patterns->items()) {
      const std::vector<JsonValue> both = pattern.items();
      if (both.size() != 2) throw InputError(pattern.where(), "must be a pattern and a number");
      for (int i = both[1].integer(0, kMostListedLayers); i > 0; --i)
        for (const JsonValue& kind : both[0].items())
          if (static_cast<int>(out.size()) < layers) out.push_back(kind.text());
    }
    return out;
  }
  for (int layer = 0; layer < layers; ++layer)
    out.emplace_back(layer % 2 == 0 ? "global" : "local");
  return out;
}

// The kind of attention of each layer: what the config lists, else the family's pattern.
std::vector<std::string> layer_types(const HfFields& fields, const std::string& type, int layers) {
  if (type == "gpt_neo") return neo_layers(fields, layers);
  std::vector<std::string> out;
  if (const auto list = fields.find({"layer_types"})) {
    fields.find({"sliding_window_pattern"});  // says the same
    for (const JsonValue& kind : list->items()) out.push_back(kind.text());
    return out;
  }
  const bool qwen = type.starts_with("qwen");
  const int first = qwen ? fields.count({"max_window_layers"}, 28) : 0;
  const int every = is_one_of(type, {"gemma2", "gpt_oss"}) ? 2
                    : type == "gemma3_text" ? fields.size({"sliding_window_pattern"}, 6)
                    : is_one_of(type, {"cohere2", "olmo3"})
                        ? fields.size({"sliding_window_pattern"}, 4)
                        : 0;
  for (int layer = 0; layer < layers; ++layer) {
    const bool full = layer < first || (every > 0 && (layer + 1) % every == 0);
    out.emplace_back(full ? "full_attention" : "sliding_attention");
  }
  return out;
}

bool uses_windows(const HfFields& fields, const std::string& type) {
  const bool usual = !type.starts_with("qwen") && type != "smollm3";
  return fields.flag({"use_sliding_window"}, usual);
}

void read_window(const HfFields& fields, const std::string& type, TransformerConfig& c) {
  const int usual = static_cast<int>(number_of(type, kWindows, 0));
  const bool null = fields.is_null("sliding_window");
  const int size =
      null ? 0 : fields.count({"sliding_window", "sliding_window_size", "window_size"}, usual);
  if (c.layers > kMostListedLayers) return;  // which is a fault
  const std::vector<std::string> types = layer_types(fields, type, c.layers);
  bool any = false;
  for (int layer = 0; layer < std::min<int>(c.layers, static_cast<int>(types.size())); ++layer) {
    const std::string& kind = types[layer];
    const bool local = kind == "sliding_attention" || kind == "local";
    any = any || local;
    if (kind == "full_attention" || kind == "global")
      c.window.full.push_back(layer);
    else if (!local)
      note(c, fmt::format("attention of the kind '{}'", kind));
  }
  if (any && size > 0 && uses_windows(fields, type))
    c.window.size = size;
  else if (type != "cohere2")
    c.window = {};
}

void read_scales(const HfFields& fields, const std::string& type, TransformerConfig& c) {
  const double width = std::sqrt(static_cast<double>(c.hidden));
  if (type.starts_with("gemma")) c.embedding_scale = width;
  if (c.decoder_layers > 0 && c.positions != Positions::relative &&
      fields.flag({"scale_embedding"}, is_one_of(type, {"plbart", "m2m_100"})))
    c.embedding_scale = width;
  if (is_one_of(type, {"gemma2", "gemma3_text"})) {
    c.attention_scale = 1 / std::sqrt(positive(fields, {"query_pre_attn_scalar"}, 256));
    const bool second = type == "gemma2";
    const auto cap = [&](std::string_view key, double usual) {
      return fields.is_null(key) ? 0 : positive(fields, {key}, second ? usual : 0);
    };
    c.score_cap = cap("attn_logit_softcapping", 50);
    c.logit_cap = cap("final_logit_softcapping", 30);
  }
  if (type == "gpt_neo") c.attention_scale = 1;
  if (is_one_of(type, {"gpt2", "gpt_bigcode"})) {
    if (!fields.flag({"scale_attn_weights"}, true)) c.attention_scale = 1;
    if (fields.flag({"scale_attn_by_inverse_layer_idx"}, false))
      note(c, "scores that are divided by the number of the layer");
  }
  if (is_one_of(type, {"cohere", "cohere2"}))
    c.logit_scale = positive(fields, {"logit_scale"}, 0.0625);
  if (type == "granite") {
    c.embedding_scale = positive(fields, {"embedding_multiplier"}, 1);
    c.logit_scale = 1 / positive(fields, {"logits_scaling"}, 1);
    c.residual_scale = positive(fields, {"residual_multiplier"}, 1);
    c.attention_scale = positive(fields, {"attention_multiplier"}, 1);
  }
  if (c.positions == Positions::relative && c.decoder_layers > 0 &&
      fields.flag({"scale_decoder_outputs", "tie_word_embeddings"}, true))
    c.logit_scale = 1 / width;
}

void read_routing(const HfFields& fields, const std::string& type, TransformerConfig& c) {
  if (c.moe.experts == 0) return;
  if (is_one_of(type, {"qwen2_moe", "qwen3_moe", "qwen3_vl_moe_text", "olmoe", "deepseek",
                       "deepseek_v2"}))
    c.moe.normalised = fields.flag({"norm_topk_prob"}, false);
  if (is_one_of(type, {"deepseek", "deepseek_v2"}))
    c.moe.scale = positive(fields, {"routed_scaling_factor"}, 1);
  const bool grouped = fields.text({"topk_method"}, "greedy") != "greedy";
  if ((type == "deepseek_v2" && grouped) || fields.count({"n_group"}, 1) > 1)
    note(c, fmt::format("a choice of {} groups of experts", fields.count({"topk_group"}, 1)));
  if (fields.text({"scoring_func"}, "softmax") != "softmax" ||
      is_one_of(type, {"deepseek_v3", "kimi_k2", "glm4_moe", "llama4_text"}))
    note(c, "experts that are chosen by a sigmoid");
  if (type == "phimoe") note(c, "experts that are chosen by SparseMixer");
  if (type == "gpt_oss") note(c, "a clamped gate in the experts");
  if (const auto jitter = fields.find({"router_jitter_noise"}); jitter && jitter->at_least(0) > 0)
    if (type != "phimoe") note(c, "noise in the router");
  if (c.not_modelled.empty()) return;
  // How experts are weighed changes neither time nor memory, and the network is not trained.
  for (const std::string_view key :
       {"norm_topk_prob", "routed_scaling_factor", "topk_group", "topk_method"})
    fields.find({key});
}

// A switch of a family that changes the network when it is on.
struct Switch {
  std::string_view type;
  std::string_view key;
  const char* feature;
};
constexpr Switch kSwitches[] = {
    {"bloom", "apply_residual_connection_post_layernorm", "residuals taken after the norm"},
    {"falcon", "alibi", "ALiBi that is scaled with the scores"},
    {"mvp", "use_prompt", "learnt prompts"},
};

void read_attention_switches(const HfFields& fields, const std::string& type,
                             TransformerConfig& c) {
  for (const Switch& known : kSwitches)
    if (type == known.type && fields.flag({known.key}, false)) note(c, known.feature);
  if (const auto clip = fields.find({"clip_qkv"}); clip && clip->number() > 0)
    note(c, "queries, keys and values that are clipped");
  if (fields.text({"position_embedding_type"}, "absolute") != "absolute")
    note(c,
         "relative positions of the kind '" + fields.text({"position_embedding_type"}, "") + "'");
  if (type == "mpt" && fields.find({"logit_scale"})) note(c, "logits that are scaled");
  if (type == "distilbert" && fields.flag({"sinusoidal_pos_embds"}, false))
    c.positions = Positions::sinusoidal;
  if (type == "blenderbot-small") note(c, "a norm before the decoder's positions");
  if (type == "llama4_text") {
    note(c, "attention within chunks");
    if (fields.flag({"use_qk_norm"}, true)) note(c, "queries and keys of length 1");
  }
  const auto attention = fields.find({"attn_config"});
  if (type != "mpt" || !attention || !attention->is_object()) return;
  if (!attention->boolean_or("alibi", true)) note(c, "positions other than ALiBi");
  if (attention->integer_or("alibi_bias_max", 1, 1 << 20, 8) != 8)
    note(c, "another slope of ALiBi");
  if (attention->find("clip_qkv")) note(c, "queries, keys and values that are clipped");
  if (attention->boolean_or("qk_ln", false)) note(c, "a norm of queries and keys");
  if (attention->boolean_or("prefix_lm", false)) note(c, "a prefix that sees all of itself");
  if (const auto scale = attention->find("softmax_scale")) c.attention_scale = scale->positive();
}

}  // namespace

void note(TransformerConfig& c, std::string feature) {
  if (std::ranges::find(c.not_modelled, feature) == c.not_modelled.end())
    c.not_modelled.push_back(std::move(feature));
}

void read_features(const HfFields& fields, const std::string& type, TransformerConfig& c) {
  read_epsilon(fields, type, c);
  read_attention_switches(fields, type, c);
  if (c.patches.patch == 0 && c.decoder_layers == 0 && c.causal) read_window(fields, type, c);
  read_rotary(fields, type, c);
  read_scales(fields, type, c);
  read_routing(fields, type, c);
}

}  // namespace plait
