#include "io/model/megatron_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "io/format/shell_flags.h"
#include "io/model/zoo.h"

namespace plait {
namespace {

// "([0]*3+[1]*58)": of which layers a thing holds, as Megatron evaluates it.
std::vector<int> layer_pattern(const ShellFlags& flags, const char* flag, int layers) {
  const std::string text = flags.text(flag, "");
  std::vector<int> pattern;
  std::size_t at = 0;
  while ((at = text.find('[', at)) != text.npos) {
    const std::size_t close = text.find(']', at);
    if (close == text.npos) flags.fail(flag, "a ']' is missing");
    std::vector<int> part;
    for (std::size_t i = at; i < close; ++i)
      if (text[i] == '0' || text[i] == '1') part.push_back(text[i] - '0');
    int times = 1;
    if (close + 1 < text.size() && text[close + 1] == '*')
      std::from_chars(text.data() + close + 2, text.data() + text.size(), times);
    if (times < 1 || times > layers) flags.fail(flag, "repeats more than there are layers");
    for (int i = 0; i < times && static_cast<int>(pattern.size()) <= layers; ++i)
      pattern.insert(pattern.end(), part.begin(), part.end());
    at = close;
  }
  if (static_cast<int>(pattern.size()) != layers)
    flags.fail(flag, fmt::format("must describe {} layers", layers));
  return pattern;
}

bool is_pattern(const ShellFlags& flags, const char* flag) {
  return flags.text(flag, "").find('[') != std::string::npos;
}

// Which layers are mixtures; one number: every that many-th from the first.
std::vector<int> expert_pattern(const ShellFlags& flags, int layers) {
  if (is_pattern(flags, "moe-layer-freq")) return layer_pattern(flags, "moe-layer-freq", layers);
  const int every = flags.size("moe-layer-freq", 1);
  std::vector<int> pattern;
  for (int layer = 0; layer < layers; ++layer) pattern.push_back(layer % every == 0 ? 1 : 0);
  return pattern;
}

// "4095,0" or "(4095, 0)": the positions before the own one, and those after it; -1 is all of them.
void read_window(const ShellFlags& flags, TransformerConfig& c) {
  if (!flags.has("window-size")) return;
  std::string words;
  for (const std::string& word : flags.list("window-size")) words += word;
  std::erase_if(words, [](char sign) { return sign == '(' || sign == ')' || sign == ' '; });
  int before = 0;
  const char* end = words.data() + words.size();
  const auto [comma, error] = std::from_chars(words.data(), end, before);
  int after = 0;
  const bool two = error == std::errc() && comma + 1 < end && *comma == ',' &&
                   std::from_chars(comma + 1, end, after).ptr == end;
  if (!two || before < -1 || before >= 1 << 28 || after < -1)
    flags.fail("window-size", fmt::format("must be two whole numbers from -1 on, as in 4095,0; is "
                                          "'{}'",
                                          words.substr(0, 40)));
  if (before == -1) return;
  if (!c.causal) c.not_modelled.emplace_back("attention to a window on both sides");
  c.window.size = before + 1;
  const char* flag = "window-attn-skip-freq";
  const int every = is_pattern(flags, flag) ? 0 : flags.size(flag, 0);
  if (is_pattern(flags, flag)) {
    const std::vector<int> pattern = layer_pattern(flags, flag, c.layers);
    for (int layer = 0; layer < c.layers; ++layer)
      if (pattern[layer] == 0) c.window.full.push_back(layer);
  } else if (every > 0) {
    for (int layer = every - 1; layer < c.layers; layer += every) c.window.full.push_back(layer);
  }
}

void read_experts(const ShellFlags& flags, TransformerConfig& c) {
  const char* flag = flags.has("num-experts") ? "num-experts" : "num-moe-experts";
  if (!flags.has(flag)) return;
  // Megatron-DeepSpeed's scripts say so that there are none.
  if (flags.size(flag, 1) == 1 && !flags.has("moe-router-topk")) return;
  c.moe.experts = flags.size(flag, 0);
  c.moe.top_k = flags.size("moe-router-topk", 2);
  c.moe.groups = flags.size("moe-router-num-groups", 1);
  c.moe.chosen_groups = flags.size("moe-router-group-topk", c.moe.groups);
  c.moe.ffn = flags.size("moe-ffn-hidden-size", c.ffn);
  c.moe.shared_ffn = flags.size("moe-shared-expert-intermediate-size", 0, 0);
  c.moe.bias = c.mlp_bias;
  c.moe.shared_gate = flags.has("moe-shared-expert-gate");
  c.moe.normalised = !flags.has("moe-router-pre-softmax");
  c.moe.scale = flags.number("moe-router-topk-scaling-factor", 1);
  const std::vector<int> pattern = expert_pattern(flags, c.layers);
  for (int layer = 0; layer < c.layers; ++layer)
    if (pattern[layer] == 0) c.moe.dense.push_back(layer);
}

void read_latent_attention(const ShellFlags& flags, TransformerConfig& c) {
  if (!flags.has("multi-latent-attention")) return;
  c.mla.q_rank = flags.size("q-lora-rank", 0, 0);
  c.mla.kv_rank = flags.size("kv-lora-rank", 32);
  c.mla.nope_dim = flags.size("qk-head-dim", 128);
  c.mla.rope_dim = flags.size("qk-pos-emb-head-dim", 64);
  c.mla.value_dim = flags.size("v-head-dim", 128);
  c.kv_heads = c.head_dim = 0;
  c.positions = Positions::rotary;
  // Here the flag is about the norms of the latents, which plait's latent attention has.
  c.qk_norm = QkNorm::none;
  if (!flags.has("qk-layernorm")) c.not_modelled.emplace_back("latents without a norm");
}

void read_positions(const ShellFlags& flags, TransformerConfig& c) {
  const std::string kind = flags.choice(
      "position-embedding-type", {"learned_absolute", "rope", "mrope", "yarn", "relative", "none"});
  c.positions = Positions::learned;
  if (kind == "none") c.positions = Positions::none;
  if (kind == "relative") {
    c.positions = Positions::relative;
    c.relative_buckets = flags.size("relative-attention-num-buckets", 32);
    c.relative_distance = flags.size("relative-attention-max-distance", 128);
    // Unlike T5 itself, Megatron-LM scales scores whatever positions are.
    c.attention_scale = 1 / std::sqrt(c.head_dim > 0 ? c.head_dim : 1.0 * c.hidden / c.heads);
  }
  if (kind == "rope" || kind == "mrope" || kind == "yarn" ||
      flags.has("use-rotary-position-embeddings"))
    c.positions = Positions::rotary;
  if (c.positions == Positions::learned)
    c.position_rows = std::max(flags.size("max-position-embeddings", c.sequence), c.sequence);
  if (c.positions != Positions::rotary) return;
  if (kind == "yarn") c.not_modelled.emplace_back("rotary positions that are scaled by 'yarn'");
  c.rotary.base = flags.number("rotary-base", 10'000);
  const double turned = flags.number("rotary-percent", 1);
  if (turned > 1) flags.fail("rotary-percent", "must be at most 1");
  const int head = c.head_dim > 0 ? c.head_dim : c.hidden / c.heads;
  if (turned < 1) c.rotary_dim = static_cast<int>(turned * head);
  c.rotary.neighbours = flags.has("rotary-interleaved");
  if (flags.has("use-rope-scaling")) {
    c.rotary.scaling = RotaryScaling::llama3;
    c.rotary.factor = flags.number("rope-scaling-factor", 8);
  } else if (flags.has("rotary-seq-len-interpolation-factor")) {
    c.rotary.scaling = RotaryScaling::linear;
    c.rotary.factor = flags.size("rotary-seq-len-interpolation-factor", 1);
  }
}

// Flags that change the network and that TransformerConfig has no switch for.
void note_unknown_features(const ShellFlags& flags, TransformerConfig& c) {
  const std::pair<const char*, const char*> features[] = {
      {"squared-relu", "the activation 'squared-relu'"},
      {"moe-router-num-groups", "a choice of groups of experts"},
      {"moe-router-enable-expert-bias", "experts that are chosen by a bias"},
      {"heterogeneous-layers-config-path", "layers that differ"},
      {"mtp-num-layers", "a prediction of several tokens"},
  };
  for (const auto& [flag, feature] : features)
    if (flags.has(flag)) c.not_modelled.emplace_back(feature);
  if (flags.text("moe-router-score-function", "softmax") != "softmax")
    c.not_modelled.emplace_back("experts that are chosen by a sigmoid");
}

struct UsualTokenizer {
  std::string name;
  int words = 50257;
  std::string doubt = "";  // begins with a comma
};

// The tokenizer that the flags name, or that the training script has without them, and its words.
UsualTokenizer usual_tokenizer(const ShellFlags& flags, const std::string& text) {
  const bool bert =
      text.find("pretrain_bert") != text.npos || text.find("pretrain_t5") != text.npos;
  const std::string type = flags.text("tokenizer-type", bert ? "BertWordPieceLowerCase" : "");
  if (type == "BertWordPieceLowerCase") return {"lower-case BERT", 30522};
  if (type == "BertWordPieceCase") return {"BERT", 28996};
  if (type == "Llama2Tokenizer") return {"Llama 2", 32000};
  if (type == "Llama3Tokenizer" || type == "LLama3Tokenizer") return {"Llama 3", 128256};
  // Those of the hub go by the name of a model that has them.
  std::string model = flags.text("tokenizer-model", "");
  while (model.ends_with('/')) model.pop_back();
  model.erase(0, model.rfind('/') + 1);
  if (const auto known = zoo_transformer(model); !model.empty() && known && known->vocabulary > 0)
    return {model, known->vocabulary};
  if (type.empty() || type == "GPT2BPETokenizer" || type == "NullTokenizer") return {"GPT-2"};
  return {"GPT-2", 50257, fmt::format(", and nothing says how many words its {} has", type)};
}

void read_vocabulary(const ShellFlags& flags, const std::string& text,
                     TransformerReading& reading) {
  int size = flags.size("padded-vocab-size", 0);
  if (size == 0) {
    size = flags.size("vocab-size", 0);
    if (size == 0) {
      const UsualTokenizer usual = usual_tokenizer(flags, text);
      size = usual.words + flags.size("vocab-extra-ids", 0, 0);
      reading.warnings.push_back(fmt::format(
          "no --vocab-size{}: {} (the {} tokenizer's) is assumed", usual.doubt, size, usual.name));
    } else if (flags.text("tokenizer-type", "") == "NullTokenizer") {
      ++size;  // for the end of a document (megatron/core/tokenizers, null_tokenizer.py)
    }
    const int multiple = flags.size("make-vocab-size-divisible-by", 128);
    const int padded = (size + multiple - 1) / multiple * multiple;
    if (padded != size)
      reading.warnings.push_back(fmt::format(
          "the vocabulary of {} is padded to {}, a multiple of {}", size, padded, multiple));
    size = padded;
  }
  reading.config.vocabulary = size;
}

void read_family(const ShellFlags& flags, const std::string& text, TransformerReading& reading) {
  TransformerConfig& c = reading.config;
  if (text.find("pretrain_bert") != text.npos) {
    c.causal = false;
    c.head = flags.has("bert-no-binary-head") ? Head::masked : Head::pretraining;
    c.pooler = c.head == Head::pretraining ? c.hidden : 0;
    c.head_bias = true;
    c.type_vocabulary = 2;
  }
  if (text.find("pretrain_t5") != text.npos) {
    c.causal = false;
    c.decoder_layers = flags.size("decoder-num-layers", c.layers);
    c.decoder_sequence = flags.size("decoder-seq-length", 0, 0);
    c.head_bias = true;
    if (c.decoder_sequence == 0)
      reading.warnings.emplace_back("no --decoder-seq-length: the encoder's is assumed");
  }
}

}  // namespace

bool has_megatron_flags(const std::string& text) {
  for (const char* flag :
       {"--num-layers", "--num_layers", "--encoder-num-layers", "--hidden-size", "--hidden_size"})
    if (text.find(flag) != text.npos) return true;
  return false;
}

TransformerReading read_megatron_flags(const std::string& name, const std::string& text,
                                       std::optional<int> sequence) {
  const ShellFlags flags(name, text);
  TransformerReading reading;
  TransformerConfig& c = reading.config;
  c.name = "megatron";
  c.layers = flags.required("num-layers", "encoder-num-layers");
  c.hidden = flags.required("hidden-size");
  c.heads = flags.required("num-attention-heads");
  c.head_dim = flags.size("kv-channels", 0);
  c.gated = flags.has("swiglu");
  if (c.gated) c.activation = Function::silu;
  // Megatron keeps the size of a plain MLP when it is gated: two thirds, in multiples of 64.
  const long long plain = 4LL * c.hidden;
  c.ffn =
      flags.size("ffn-hidden-size", static_cast<int>(c.gated ? plain * 2 / 3 / 64 * 64 : plain));
  if (flags.has("group-query-attention")) c.kv_heads = flags.size("num-query-groups", 1);
  if (sequence || flags.has("seq-length") || flags.has("encoder-seq-length")) {
    c.sequence = sequence
                     ? *sequence
                     : flags.size(flags.has("seq-length") ? "seq-length" : "encoder-seq-length", 1);
  } else {
    c.sequence = 2048;
    reading.warnings.emplace_back("no --seq-length: 2048 is assumed");
  }
  const bool biases = !flags.has("disable-bias-linear");
  // The kernel that adds a bias approximates GELU by tanh; without it the function is exact.
  if (!c.gated && (!biases || flags.has("no-bias-gelu-fusion"))) c.activation = Function::gelu;
  c.qkv_bias = biases || flags.has("add-qkv-bias");
  c.projection_bias = c.mlp_bias = biases;
  c.norm = flags.choice("normalization", {"LayerNorm", "RMSNorm"}) == "RMSNorm" ? NormKind::rms
                                                                                : NormKind::layer;
  c.norm_epsilon =
      flags.number(flags.has("layernorm-epsilon") ? "layernorm-epsilon" : "norm-epsilon", 1e-5);
  c.tied = !flags.has("untie-embeddings-and-output-weights");
  c.dropout = flags.above_zero("hidden-dropout", 0.1);
  if (flags.has("qk-layernorm")) c.qk_norm = QkNorm::per_head;
  c.qk_norm_kind = c.norm;
  read_positions(flags, c);
  read_vocabulary(flags, text, reading);
  read_experts(flags, c);
  read_latent_attention(flags, c);
  read_family(flags, text, reading);
  read_window(flags, c);
  if (const int size = c.window.size; size > 0 && size < c.sequence)
    reading.warnings.push_back(fmt::format(
        "attention in a sliding window of {} tokens is counted as full attention", size));
  note_unknown_features(flags, c);
  if (const std::string fault = fault_of(c); !fault.empty()) throw InputError(name, fault);
  return reading;
}

}  // namespace plait
