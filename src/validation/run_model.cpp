#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <regex>

#include "io/model/zoo.h"
#include "validation/run_parts.h"

namespace plait {
namespace {

constexpr int kGpt2Vocabulary = 50257;
constexpr int kUsualHead = 128;
constexpr int kGpt2Head = 64;           // of all its sizes
constexpr double kMostLayers = 10'000;  // to be inferred

// "LLAMA3.1-405B (proxy, 30 layers)" -> "LLAMA3.1-405B", "DeepSeekV3-L4" -> "DeepSeekV3": tables
// name a shortened model after the whole one. "google/vit-base" -> "vit-base": owners are left out.
std::string whole_model_name(const std::string& full) {
  const std::string name = full.substr(full.rfind('/') + 1);
  static const std::regex remark(R"(\s*\([^)]*\))");
  static const std::regex shortened(R"([-_ ]L\d+$)");
  return std::regex_replace(std::regex_replace(name, remark, ""), shortened, "");
}

// Families whose MLP is gated and whose norms are RMS norms, by their names.
bool is_llama_like(const std::string& name) {
  constexpr std::array kFamilies{"llama",    "qwen",  "deepseek", "mistral",  "mixtral",
                                 "internlm", "gemma", "yi-",      "baichuan", "phi-3"};
  return std::ranges::any_of(kFamilies, [&](const char* word) { return mentions(name, word); });
}

TransformerConfig family_of(const std::string& name) {
  TransformerConfig config;
  if (!is_llama_like(name)) return config;
  config.gated = true;
  config.activation = Function::silu;
  config.fused_qkv = false;
  config.norm = NormKind::rms;
  config.qkv_bias = config.projection_bias = config.mlp_bias = false;
  config.positions = Positions::rotary;
  config.tied = false;
  config.dropout = false;
  return config;
}

// Divides `hidden`, is divided by the tensor degree, and leaves heads of 128 (GPT-2: 64) or a
// little more.
int usual_heads(const std::string& model, int hidden, int tensor) {
  const bool is_gpt2 = mentions(model, "gpt2") || mentions(model, "gpt-2");
  for (int heads = hidden / (is_gpt2 ? kGpt2Head : kUsualHead); heads >= 1; --heads)
    if (hidden % heads == 0 && heads % tensor == 0) return heads;
  throw RowRefused(
      fmt::format("n_heads is not stated and tp {} cuts no usual number of heads of "
                  "hidden {}",
                  tensor, hidden));
}

// As many layers as the stated parameters have room for beside the embedding, in equal stages.
void set_layers_by_parameters(const RunRow& row, TransformerConfig& config,
                              Assumptions& assumptions) {
  const double hidden = config.hidden;
  const double ffn = row.ffn ? *row.ffn : 4 * hidden;
  const double layer = 4 * hidden * hidden + (config.gated ? 3 : 2) * hidden * ffn;
  const double table = hidden * row.vocabulary.value_or(kGpt2Vocabulary);
  const double stages = row.pipeline.value_or(1);
  const double each = std::round((*row.parameters - table) / layer / stages);
  if (each < 1 || each * stages > kMostLayers) return;
  config.layers = static_cast<int>(each * stages);
  assumptions.push_back(fmt::format("{} layers, by the parameters", config.layers));
}

void set_sizes(const RunRow& row, TransformerConfig& config, Assumptions& assumptions) {
  if (row.layers) config.layers = *row.layers;
  if (row.hidden && *row.hidden != config.hidden) {
    config.hidden = *row.hidden;
    config.heads = config.kv_heads = config.ffn = config.head_dim = 0;
  }
  if (config.layers == 0 && config.hidden > 0 && row.parameters)
    set_layers_by_parameters(row, config, assumptions);
  if (config.layers == 0) throw RowRefused("n_layers is not stated and the model is not known");
  if (config.hidden == 0) throw RowRefused("hidden is not stated and the model is not known");
  if (row.heads && *row.heads != config.heads) {
    config.heads = *row.heads;
    config.head_dim = 0;
  }
  if (config.heads == 0) {
    config.heads = usual_heads(row.model, config.hidden, row.tensor.value_or(1));
    assumptions.push_back(fmt::format("{} heads", config.heads));
  }
  if (row.kv_heads) config.kv_heads = *row.kv_heads;
  if (row.ffn) config.ffn = *row.ffn;
  if (config.patches.patch > 0) return;  // as many positions as patches
  if (row.sequence) config.sequence = *row.sequence;
  if (config.sequence == 0) throw RowRefused("seq_len is not stated and the model is not known");
  if (!row.sequence)
    assumptions.push_back(
        fmt::format("sequences of {}, as the model was trained", config.sequence));
}

// T5 is pre-trained on spans that are cut out: of 568 tokens 15 % in spans of 3 (Raffel et al.,
// 2020), which leaves an input of 512 and, with a mark for each span, targets of 114.
void set_targets(const RunRow& row, TransformerConfig& config, Assumptions& assumptions) {
  constexpr double kTargets = 114.0 / 512;
  if (config.decoder_layers == 0 || !mentions(row.task, "pretrain")) return;
  config.decoder_sequence = static_cast<int>(std::lround(kTargets * config.sequence));
  assumptions.push_back(
      fmt::format("targets of {} tokens, as T5 is trained", config.decoder_sequence));
}

void set_experts(const RunRow& row, TransformerConfig& config) {
  if (!row.experts || *row.experts <= 1) return;
  if (row.expert_ffn) config.moe.ffn = *row.expert_ffn;
  const bool known = config.moe.experts > 0 || (row.expert_ffn && row.top_k);
  if (!known || config.moe.ffn == 0)
    throw RowRefused("has experts whose width is not stated, and the model is not known");
  config.moe.experts = *row.experts;
  if (*row.experts % config.moe.groups != 0) config.moe.groups = config.moe.chosen_groups = 1;
  if (row.top_k) config.moe.top_k = *row.top_k;
}

// Mist's benchmarks train without dropout, biases and tied tables (its tuned_configs).
bool has_dropout(const RunRow& row, const TransformerConfig& config) {
  if (is_mist(row)) return false;
  return row.dropout.empty() ? config.dropout : !says_none(row.dropout);
}

void set_vocabulary(const RunRow& row, TransformerConfig& config, Assumptions& assumptions) {
  if (config.patches.patch > 0) return;
  if (row.no_head) {
    config.vocabulary = 1;
    config.head = Head::none;
    return;
  }
  if (row.vocabulary) {
    config.vocabulary = *row.vocabulary;
  } else if (config.vocabulary == 0) {
    config.vocabulary = kGpt2Vocabulary;
    assumptions.emplace_back("the vocabulary of GPT-2");
  }
}

// "GPT 13B", "13B model": names without a family, but for GPT's, are of that table of sizes where
// sequences are stated; "" = others.
std::string gpt_of_size(const std::string& name) {
  static const std::regex plain(
      R"(^(?:gpt-?3?|transformer|dense|model|llm|lm)?[\s_-]*(\d{1,4}(?:\.\d{1,3})?)\s*([BM])(?:[\s_-]+(?:gpt|model|llm|transformer))?$)",
      std::regex::icase);
  std::smatch match;
  if (!std::regex_match(name, match, plain)) return {};
  return fmt::format("gpt-3-{}{}", match[1].str(), match[2].str());
}

}  // namespace

bool is_transgan(const RunRow& row) { return mentions(row.model, "transgan"); }

TransformerConfig transformer_of(const RunRow& row, const Job& job, Assumptions& assumptions) {
  const std::string name = whole_model_name(row.model);
  auto known = zoo_transformer(name);
  // "Llama 2", whose size has a column of its own.
  if (!known && row.parameters)
    known = zoo_transformer(fmt::format("{} {:g}b", name, *row.parameters / 1e9));
  if (!known && !row.hidden && row.sequence) known = zoo_transformer(gpt_of_size(name));
  // "BERT-48L" is BERT with other sizes, which the row states.
  if (!known && mentions(name, "bert") && row.layers && row.hidden)
    known = zoo_transformer("bert-large");
  if (!known && !row.hidden && row.parameters) known = zoo_transformer_of(*row.parameters);
  constexpr std::array kOthers{"gan", "resnet", "dlrm", "bert", "vit-", "t5"};
  if (!known &&
      std::ranges::any_of(kOthers, [&](const char* word) { return mentions(name, word); }))
    throw RowRefused("is not a language model made of decoders, and its sizes are unknown");
  const bool same_width = known && (!row.hidden || *row.hidden == known->hidden);
  TransformerConfig config = same_width ? *known : family_of(name);
  if (!same_width) config.sequence = 0;
  if (same_width && !row.hidden) assumptions.push_back("the sizes of " + known->name);
  if (config.decoder_layers > 0 && row.pipeline.value_or(1) > 1)
    throw RowRefused("is an encoder-decoder in a pipeline, whose stages are not stated");
  const int whole = config.layers;
  set_sizes(row, config, assumptions);
  set_targets(row, config, assumptions);
  set_experts(row, config);
  // A shortened mixture keeps one of the leading layers without experts.
  if (config.layers < whole) config.moe.first_dense = std::min(config.moe.first_dense, 1);
  set_vocabulary(row, config, assumptions);
  config.name = row.model.empty() ? "model" : row.model;
  config.position_rows = 0;
  config.dropout = has_dropout(row, config) && job.attention == AttentionKernel::plain;
  if (is_mist(row))
    config.qkv_bias = config.projection_bias = config.mlp_bias = config.tied = false;
  const std::string fault = fault_of(config);
  if (!fault.empty()) throw RowRefused(fault);
  return config;
}

}  // namespace plait
