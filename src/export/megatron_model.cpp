// A transformer in the flags of Megatron-LM.
#include "export/megatron_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <variant>

#include "base/error.h"
#include "base/printable.h"
#include "io/model/megatron_flags.h"
#include "plan/names.h"

namespace plait {
namespace {

std::string number(double value) { return fmt::format("{}", value); }

// The table is padded to a multiple of this, times the tensor degree.
int padding(const Problem& problem) {
  if (problem.job.vocabulary_multiple > 0) return problem.job.vocabulary_multiple;
  return problem.job.framework.traits.pads_vocabulary ? 128 : 1;
}

class Flags {
 public:
  void add(const char* flag) { words_.push_back({flag}); }
  void add(const char* flag, int value) { words_.push_back({flag, {std::to_string(value)}}); }
  void add(const char* flag, double value) { words_.push_back({flag, {number(value)}}); }
  void add(const char* flag, const std::string& value) { words_.push_back({flag, {value}}); }
  void when(bool on, const char* flag) {
    if (on) add(flag);
  }
  std::vector<FlagWords> take() { return std::move(words_); }

 private:
  std::vector<FlagWords> words_;
};

bool is_t5(const TransformerConfig& c) { return c.decoder_layers > 0; }

void add_sizes(const TransformerConfig& c, Flags& flags) {
  if (is_t5(c)) {
    flags.add("--encoder-num-layers", c.layers);
    flags.add("--decoder-num-layers", c.decoder_layers);
  } else {
    flags.add("--num-layers", c.layers);
  }
  flags.add("--hidden-size", c.hidden);
  flags.add("--ffn-hidden-size", c.ffn);
  flags.add("--num-attention-heads", c.heads);
  if (c.mla.kv_rank == 0) {
    if (c.kv_heads != c.heads) {
      flags.add("--group-query-attention");
      flags.add("--num-query-groups", c.kv_heads);
    }
    if (c.head_dim * c.heads != c.hidden) flags.add("--kv-channels", c.head_dim);
  }
  flags.add(is_t5(c) ? "--encoder-seq-length" : "--seq-length", c.sequence);
  if (is_t5(c)) flags.add("--decoder-seq-length", c.decoder_sequence);
  const bool table = c.positions == Positions::learned;
  flags.add("--max-position-embeddings",
            table ? std::max(c.position_rows, c.sequence) : c.sequence);
}

void add_switches(const TransformerConfig& c, Flags& flags) {
  flags.when(c.gated && c.activation == Function::silu, "--swiglu");
  // Its fused kernel is the approximation by tanh; without it, or without biases, GELU is exact.
  flags.when(!c.gated && c.mlp_bias && c.activation == Function::gelu, "--no-bias-gelu-fusion");
  flags.when(!c.mlp_bias, "--disable-bias-linear");
  flags.when(!c.mlp_bias && c.qkv_bias, "--add-qkv-bias");
  flags.add("--normalization", std::string(c.norm == NormKind::rms ? "RMSNorm" : "LayerNorm"));
  flags.add("--norm-epsilon", c.norm_epsilon);
  flags.when(c.qk_norm == QkNorm::per_head, "--qk-layernorm");
  flags.when(!c.tied, "--untie-embeddings-and-output-weights");
  const double dropout = c.dropout ? 0.1 : 0;
  flags.add("--hidden-dropout", dropout);
  flags.add("--attention-dropout", dropout);
}

void add_positions(const TransformerConfig& c, Flags& flags) {
  const char* kind = c.positions == Positions::rotary     ? "rope"
                     : c.positions == Positions::relative ? "relative"
                     : c.positions == Positions::none     ? "none"
                                                          : "learned_absolute";
  flags.add("--position-embedding-type", std::string(kind));
  if (c.positions == Positions::relative) {
    flags.add("--relative-attention-num-buckets", c.relative_buckets);
    flags.add("--relative-attention-max-distance", c.relative_distance);
  }
  if (c.positions != Positions::rotary) return;
  flags.add("--rotary-base", number(c.rotary.base));
  const int head = c.head_dim;
  if (c.rotary_dim > 0 && c.rotary_dim != head)
    flags.add("--rotary-percent", static_cast<double>(c.rotary_dim) / head);
  flags.when(c.rotary.neighbours, "--rotary-interleaved");
  if (c.rotary.scaling == RotaryScaling::llama3) {
    flags.add("--use-rope-scaling");
    flags.add("--rope-scaling-factor", c.rotary.factor);
  }
  if (c.rotary.scaling == RotaryScaling::linear)
    flags.add("--rotary-seq-len-interpolation-factor", static_cast<int>(c.rotary.factor));
}

// "([0]*3+[1]*58)": 1 for layers of which it holds.
template <typename Holds>
std::string layer_pattern(int layers, const Holds& holds) {
  std::vector<std::string> runs;
  for (int layer = 0; layer < layers;) {
    int end = layer;
    while (end < layers && holds(end) == holds(layer)) ++end;
    runs.push_back(fmt::format("[{}]*{}", holds(layer) ? 1 : 0, end - layer));
    layer = end;
  }
  return fmt::format("({})", fmt::join(runs, "+"));
}

// Megatron-LM counts the positions before the own one, and those after it.
void add_window(const TransformerConfig& c, Flags& flags) {
  if (c.window.size == 0) return;
  flags.add("--window-size", fmt::format("{},0", c.window.size - 1));
  const auto windowed = [&](int layer) { return !std::ranges::count(c.window.full, layer); };
  if (!c.window.full.empty())
    flags.add("--window-attn-skip-freq", layer_pattern(c.layers, windowed));
}

void add_experts(const TransformerConfig& c, Flags& flags) {
  if (c.moe.experts == 0) return;
  flags.add("--num-experts", c.moe.experts);
  flags.add("--moe-router-topk", c.moe.top_k);
  flags.add("--moe-ffn-hidden-size", c.moe.ffn);
  if (!c.moe.dense.empty())
    flags.add("--moe-layer-freq",
              layer_pattern(c.layers, [&](int layer) { return is_mixture(c, layer); }));
  if (c.moe.shared_ffn > 0) flags.add("--moe-shared-expert-intermediate-size", c.moe.shared_ffn);
  flags.when(c.moe.shared_gate, "--moe-shared-expert-gate");
  flags.when(!c.moe.normalised, "--moe-router-pre-softmax");
  if (c.moe.scale != 1) flags.add("--moe-router-topk-scaling-factor", c.moe.scale);
  flags.add("--moe-grouped-gemm");
  flags.add("--moe-token-dispatcher-type", std::string("alltoall"));
}

void add_latent_attention(const TransformerConfig& c, Flags& flags) {
  if (c.mla.kv_rank == 0) return;
  flags.add("--multi-latent-attention");
  if (c.mla.q_rank > 0) flags.add("--q-lora-rank", c.mla.q_rank);
  flags.add("--kv-lora-rank", c.mla.kv_rank);
  flags.add("--qk-head-dim", c.mla.nope_dim);
  flags.add("--qk-pos-emb-head-dim", c.mla.rope_dim);
  flags.add("--v-head-dim", c.mla.value_dim);
  flags.add("--rope-type", std::string("rope"));            // without it positions are scaled
  flags.when(c.qk_norm == QkNorm::none, "--qk-layernorm");  // of the latents
}

std::string as_text(const MegatronModel& model) {
  std::string out = model.entry;
  if (model.family == MegatronFamily::gpt) out += " --tokenizer-type NullTokenizer";
  for (const FlagWords& words : model.flags)
    out += fmt::format(" {} '{}'", words.flag, fmt::join(words.values, " "));
  return out;
}

// What plait's own reader makes of the flags.
std::string lost_field(const TransformerConfig& config, const MegatronModel& model, int multiple) {
  try {
    const TransformerConfig read =
        read_megatron_flags("flags", as_text(model), std::nullopt).config;
    return difference(in_full(config, multiple), in_full(read, multiple));
  } catch (const InputError& error) {
    return error.what();
  }
}

std::string refusal_of(const Problem& problem, const TransformerConfig& config) {
  if (!config.not_modelled.empty())
    return fmt::format("the network has {}, which plait has no words for",
                       printable(config.not_modelled.front()));
  if (config.patches.patch > 0)
    return "Megatron-LM's own training scripts are for words, the network is one of images";
  // pretrain_t5.py builds both stacks with the number of the encoder's layers.
  if (is_t5(config) && config.decoder_layers != config.layers)
    return fmt::format(
        "Megatron-LM's T5 has equally many layers in encoder and decoder, the network has {} and "
        "{}",
        config.layers, config.decoder_layers);
  if (config.rotary.base != std::floor(config.rotary.base))
    return "Megatron-LM has a whole number as the base of rotary positions";
  if (std::ranges::any_of(problem.model.kinds, &LayerKind::frozen))
    return "Megatron-LM has no flag that freezes the first layers";
  return "";
}

}  // namespace

TransformerConfig in_full(TransformerConfig c, int vocabulary_multiple) {
  c.name.clear();
  if (c.kv_heads == 0) c.kv_heads = c.heads;
  if (c.head_dim == 0) c.head_dim = c.hidden / std::max(1, c.heads);
  if (c.ffn == 0) c.ffn = 4 * c.hidden;
  if (c.decoder_layers > 0) {
    if (c.decoder_sequence == 0) c.decoder_sequence = c.sequence;
    if (c.decoder_heads == 0) c.decoder_heads = c.heads;
    if (c.decoder_ffn == 0) c.decoder_ffn = c.ffn;
  }
  if (c.mla.kv_rank > 0) {
    c.kv_heads = c.heads;  // what latent attention does not read
    c.head_dim = 0;
  }
  if (c.positions == Positions::learned) {
    if (c.position_rows == 0) c.position_rows = c.sequence;
  } else {
    c.position_rows = 0;
  }
  if (c.positions != Positions::rotary) c.rotary = {}, c.rotary_dim = 0;
  if (c.rotary_dim == c.head_dim) c.rotary_dim = 0;
  if (c.rotary.scaling != RotaryScaling::llama3) {
    const Rotary usual;
    c.rotary.low_factor = usual.low_factor;
    c.rotary.high_factor = usual.high_factor;
    c.rotary.trained_positions = usual.trained_positions;
  }
  if (c.rotary.scaling == RotaryScaling::none) c.rotary.factor = 1;
  if (c.activation == Function::gelu_tanh || c.activation == Function::gelu_twice)
    c.activation = Function::gelu_new;  // the same function in other kernels
  if (c.moe.experts > 0) {
    std::vector<int> dense;
    for (int layer = 0; layer < c.layers; ++layer)
      if (!is_mixture(c, layer)) dense.push_back(layer);
    c.moe.dense = std::move(dense);
    c.moe.first_dense = 0;
    c.moe.every = 1;
    if (c.moe.ffn == 0) c.moe.ffn = c.ffn;
    // Nobody means a weight that is always 1, which trains no router; Megatron-LM refuses it.
    if (c.moe.top_k == 1) c.moe.normalised = false;
    if (c.moe.dense.empty()) c.ffn = c.moe.ffn;  // no layer has it
  } else {
    c.moe = {};
  }
  if (c.window.size >= c.sequence) c.window = {};  // no sequence is longer
  c.fused_qkv = true;                              // the same product
  if (c.qk_norm == QkNorm::none) c.qk_norm_kind = c.norm;
  if (c.norm == NormKind::rms) c.norm_shift = true;  // it has none
  c.wide_norm = false;                               // a matter of rounding
  c.unused_parameters = 0;
  c.unknown_keys.clear();
  c.relative_buckets = c.positions == Positions::relative ? c.relative_buckets : 0;
  c.relative_distance = c.positions == Positions::relative ? c.relative_distance : 0;
  if (c.embedding_width == c.hidden) c.embedding_width = 0;
  if (c.attention_scale > 0 && c.head_dim > 0 && c.positions != Positions::relative &&
      std::abs(c.attention_scale * c.attention_scale * c.head_dim - 1) < 1e-9)
    c.attention_scale = 0;
  c.vocabulary =
      (c.vocabulary + vocabulary_multiple - 1) / vocabulary_multiple * vocabulary_multiple;
  return c;
}

int padded_vocabulary(const Problem& problem, const Plan& plan) {
  const int words = std::get<TransformerConfig>(problem.model.architecture).vocabulary;
  if (padding(problem) == 1) return words;
  const int multiple = padding(problem) * plan.stages.front().spans.front().tensor;
  return (words + multiple - 1) / multiple * multiple;
}

std::string padding_loss(const Problem& problem, const Plan& plan, std::string_view program) {
  const auto* config = std::get_if<TransformerConfig>(&problem.model.architecture);
  if (config == nullptr) return "";
  const int padded = padded_vocabulary(problem, plan);
  if (padded == config->vocabulary) return "";
  return fmt::format("the padding of the vocabulary: {} has {} words, the prediction is for {}",
                     program, config->vocabulary, padded);
}

MegatronFamily family_of(const TransformerConfig& c) {
  if (is_t5(c)) return MegatronFamily::t5;
  return c.head == Head::pretraining || c.head == Head::masked ? MegatronFamily::bert
                                                               : MegatronFamily::gpt;
}

MegatronModel megatron_model(const Problem& problem) {
  MegatronModel out;
  const auto* config = std::get_if<TransformerConfig>(&problem.model.architecture);
  if (config == nullptr) {
    out.refusal = std::holds_alternative<NotRecorded>(problem.model.architecture)
                      ? "the plan file does not say what the network is: it is older than that; "
                        "make the plan again"
                  : std::holds_alternative<OpsOnly>(problem.model.architecture)
                      ? "only the ops of the network are known, which are not flags of Megatron-LM"
                      : "Megatron-LM trains transformers, the network is another one";
    return out;
  }
  out.refusal = refusal_of(problem, *config);
  if (!out.refusal.empty()) return out;
  const int multiple = padding(problem);
  const TransformerConfig c = in_full(*config, 1);
  Flags flags;
  add_sizes(c, flags);
  add_switches(c, flags);
  add_positions(c, flags);
  add_window(c, flags);
  add_experts(c, flags);
  add_latent_attention(c, flags);
  out.family = family_of(c);
  // The tokenizer that only counts adds a word, others count for themselves.
  const bool counts = out.family == MegatronFamily::gpt;
  flags.add("--vocab-size", config->vocabulary - (counts ? 1 : 0));
  flags.add("--make-vocab-size-divisible-by", multiple);
  flags.when(c.head == Head::masked, "--bert-no-binary-head");
  out.entry = out.family == MegatronFamily::t5     ? "pretrain_t5.py"
              : out.family == MegatronFamily::bert ? "pretrain_bert.py"
                                                   : "pretrain_gpt.py";
  out.flags = flags.take();
  if (const std::string field = lost_field(*config, out, multiple); !field.empty())
    out.refusal =
        fmt::format("Megatron-LM has no flag for this network's {}", field_in_words(field));
  if (c.moe.experts > 0 && config->moe.top_k == 1 && config->moe.normalised)
    out.losses.emplace_back(
        "that the weight of the one expert of a token is 1: Megatron-LM has the softmax over all");
  for (const std::string& key : config->unknown_keys)
    out.losses.push_back(
        fmt::format("the key '{}' of the model's file is not known to plait and is "
                    "not written",
                    printable(key)));
  return out;
}

}  // namespace plait
