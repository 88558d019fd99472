#include "runtime/lower/network_support.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
      {c.moe.chosen_groups < c.moe.groups, "experts that are chosen by groups"},
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
