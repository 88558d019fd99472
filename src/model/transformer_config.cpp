#include "model/transformer_config.h"

#include <algorithm>
#include <utility>

namespace plait {
namespace {

constexpr int kMaxLayers = 100'000;
constexpr int kMaxWidth = 1 << 24;

struct Limit {
  const char* name;
  long long value;
  long long least;
  long long most;
};

std::string first_outside(const std::vector<Limit>& limits) {
  for (const Limit& limit : limits)
    if (limit.value < limit.least || limit.value > limit.most)
      return std::string(limit.name) + " must be from " + std::to_string(limit.least) + " to " +
             std::to_string(limit.most) + ", is " + std::to_string(limit.value);
  return "";
}

std::string not_dividing(const char* part, int p, const char* whole, int w) {
  return std::string(part) + " (" + std::to_string(p) + ") must divide " + whole + " (" +
         std::to_string(w) + ")";
}

std::string fault_of_parts(const TransformerConfig& c) {
  if (c.moe.experts > 0) {
    if (c.parallel) return "a parallel block cannot have experts";
    for (const int layer : c.moe.dense)
      if (layer < 0)
        return "layers without experts must be at least 0, one is " + std::to_string(layer);
    std::string fault = first_outside({{"experts", c.moe.experts, 1, 1 << 20},
                                       {"experts per token", c.moe.top_k, 1, c.moe.experts},
                                       {"groups of experts", c.moe.groups, 1, c.moe.experts},
                                       {"chosen groups", c.moe.chosen_groups, 1, c.moe.groups},
                                       {"expert ffn", c.moe.ffn, 1, kMaxWidth},
                                       {"shared ffn", c.moe.shared_ffn, 0, kMaxWidth},
                                       {"first dense layers", c.moe.first_dense, 0, kMaxLayers},
                                       {"expert layer frequency", c.moe.every, 1, kMaxLayers}});
    if (!fault.empty()) return fault;
  }
  if (c.mla.kv_rank > 0) {
    std::string fault = first_outside({{"q_rank", c.mla.q_rank, 0, kMaxWidth},
                                       {"kv_rank", c.mla.kv_rank, 1, kMaxWidth},
                                       {"nope_dim", c.mla.nope_dim, 1, kMaxWidth},
                                       {"rope_dim", c.mla.rope_dim, 0, kMaxWidth},
                                       {"value_dim", c.mla.value_dim, 1, kMaxWidth}});
    if (!fault.empty()) return fault;
  }
  if (c.patches.patch > 0) {
    std::string fault = first_outside({{"image size", c.patches.image, c.patches.patch, 1 << 16},
                                       {"image channels", c.patches.channels, 1, 1 << 16},
                                       {"learnt tokens", c.patches.tokens, 0, 1 << 16}});
    if (!fault.empty()) return fault;
  }
  return "";
}

std::string fault_of_factors(const TransformerConfig& c) {
  const std::pair<const char*, double> positive[] = {{"rotary base", c.rotary.base},
                                                     {"rotary factor", c.rotary.factor},
                                                     {"rotary low_factor", c.rotary.low_factor},
                                                     {"embedding_scale", c.embedding_scale},
                                                     {"residual_scale", c.residual_scale},
                                                     {"logit_scale", c.logit_scale},
                                                     {"experts' scale", c.moe.scale}};
  for (const auto& [name, value] : positive)
    if (!(value > 0)) return std::string(name) + " must be above 0";
  if (c.rotary.high_factor <= c.rotary.low_factor)
    return "rotary high_factor must be above low_factor";
  for (const std::vector<int>* layers : {&c.window.full, &c.rotary.unturned})
    for (const int layer : *layers)
      if (layer < 0) return "layers must be at least 0, one is " + std::to_string(layer);
  return "";
}

}  // namespace

std::string fault_of(const TransformerConfig& c) {
  const int head_least = c.mla.kv_rank > 0 || c.head_dim > 0 ? 1 : 0;
  const bool has_tokens = c.patches.patch == 0;
  std::string fault =
      first_outside({{"layers", c.layers, 1, kMaxLayers},
                     {"decoder layers", c.decoder_layers, 0, kMaxLayers},
                     {"hidden", c.hidden, 1, kMaxWidth},
                     {"heads", c.heads, 1, kMaxWidth},
                     {"key-value heads", c.kv_heads, 0, kMaxWidth},
                     {"head_dim", c.head_dim, 0, kMaxWidth},
                     {"rotary_dim", c.rotary_dim, 0, kMaxWidth},
                     {"window", c.window.size, 0, 1 << 28},
                     {"position_offset", c.position_offset, 0, 1 << 28},
                     {"relative_buckets", c.relative_buckets, 1, kMaxWidth},
                     {"relative_distance", c.relative_distance, 1, 1 << 28},
                     {"ffn", c.ffn, 0, kMaxWidth},
                     {"vocabulary", c.vocabulary, has_tokens ? 1 : 0, 1 << 28},
                     {"sequence", c.sequence, 1, 1 << 28},
                     {"decoder sequence", c.decoder_sequence, 0, 1 << 28},
                     {"decoder heads", c.decoder_heads, 0, kMaxWidth},
                     {"decoder ffn", c.decoder_ffn, 0, kMaxWidth},
                     {"pooler", c.pooler, 0, kMaxWidth},
                     {"classes", c.classes, c.head == Head::classifier ? 1 : 0, 1 << 28}});
  if (!fault.empty()) return fault;
  if (head_least == 0 && c.hidden % c.heads != 0)
    return not_dividing("heads", c.heads, "hidden", c.hidden);
  if (head_least == 0 && c.decoder_heads > 0 && c.hidden % c.decoder_heads != 0)
    return not_dividing("decoder heads", c.decoder_heads, "hidden", c.hidden);
  if (c.shared_layers && c.moe.experts > 0) return "shared layers cannot have experts";
  if (c.kv_heads > 0 && c.heads % c.kv_heads != 0)
    return not_dividing("key-value heads", c.kv_heads, "heads", c.heads);
  const int head_dim = c.head_dim > 0 ? c.head_dim : c.hidden / c.heads;
  if (c.positions == Positions::rotary && c.mla.kv_rank == 0 && c.rotary_dim > head_dim)
    return "rotary_dim (" + std::to_string(c.rotary_dim) +
           ") must be at most the size of a head (" + std::to_string(head_dim) + ")";
  fault = fault_of_factors(c);
  return fault.empty() ? fault_of_parts(c) : fault;
}

int source_positions(const TransformerConfig& config) {
  if (config.patches.patch == 0) return config.sequence;
  const int side = config.patches.image / config.patches.patch;
  return side * side + config.patches.tokens;
}

int target_positions(const TransformerConfig& config) {
  const bool own = config.decoder_layers > 0 && config.decoder_sequence > 0;
  return own ? config.decoder_sequence : source_positions(config);
}

TransformerConfig of_decoder(TransformerConfig config) {
  if (config.decoder_heads > 0) config.heads = config.decoder_heads;
  if (config.decoder_ffn > 0) config.ffn = config.decoder_ffn;
  return config;
}

bool is_mixture(const TransformerConfig& config, int layer) {
  const Moe& moe = config.moe;
  return moe.experts > 0 && layer >= moe.first_dense && (layer + 1) % moe.every == 0 &&
         std::ranges::find(moe.dense, layer) == moe.dense.end();
}

}  // namespace plait
