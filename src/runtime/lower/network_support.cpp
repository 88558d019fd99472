#include "runtime/lower/network_support.h"

#include <fmt/format.h>

#include <variant>

#include "model/transformer_config.h"

namespace plait::runtime {
namespace {

std::string untrained_feature_of(const TransformerConfig& c) {
  if (!c.not_modelled.empty())
    return fmt::format("the network has {}, which plait does not model",
                       fmt::join(c.not_modelled, ", and "));
  const std::pair<bool, const char*> features[] = {
      {c.positions == Positions::sinusoidal, "sinusoidal positions"},
      {c.positions == Positions::alibi, "ALiBi"},
      {c.window.size > 0 && c.window.size < c.sequence, "a sliding window"},
      {c.score_cap > 0, "capped scores of attention"},
      {c.logit_cap > 0, "capped logits"},
      {c.rotary.base != 10'000, "another base of rotary positions than 10000"},
      {c.rotary.neighbours, "rotary positions that turn neighbours"},
      {c.rotary.scaling != RotaryScaling::none, "scaled rotary positions"},
      {c.relative_distance != 128, "another distance of relative positions than 128"},
      {c.embedding_scale != 1, "a scale of embedded tokens"},
      {c.residual_scale != 1, "a scale of what is added to the stream"},
      {c.logit_scale != 1, "a scale of logits"},
      {c.position_offset != 0, "an offset of positions"},
      {c.norm_epsilon != 1e-5, "another epsilon of norms than 1e-5"},
      {c.moe.experts > 0 && !c.moe.normalised, "shares of experts that do not sum to 1"},
      {c.moe.experts > 0 && c.moe.scale != 1, "scaled shares of experts"},
  };
  for (const auto& [has, name] : features)
    if (has) return fmt::format("the network has {}: that is not implemented", name);
  return "";
}

}  // namespace

std::string untrained_feature(const Model& model) {
  const auto* transformer = std::get_if<TransformerConfig>(&model.architecture);
  return transformer == nullptr ? "" : untrained_feature_of(*transformer);
}

std::vector<std::string> execution_notes(const Model& model) {
  std::vector<std::string> notes;
  if (std::holds_alternative<WideResnetConfig>(model.architecture))
    notes.emplace_back("batch norm is replaced by a norm of each sample over its own positions");
  const auto* transformer = std::get_if<TransformerConfig>(&model.architecture);
  if (transformer == nullptr) return notes;
  if (transformer->dropout) notes.emplace_back("dropout is not applied");
  if (!transformer->unknown_keys.empty())
    notes.push_back(fmt::format("the model's config has keys that are not understood: '{}'",
                                fmt::join(transformer->unknown_keys, "', '")));
  return notes;
}

}  // namespace plait::runtime
