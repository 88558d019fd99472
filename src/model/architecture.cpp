#include "model/architecture.h"

#include <algorithm>
#include <set>
#include <utility>

#include "model/gan.h"
#include "model/model.h"
#include "model/resnet.h"
#include "model/transformer.h"

namespace plait {
namespace {

std::string fault_of_units(const Model& model, const Model& built) {
  if (model.unit_count() != built.unit_count())
    return "has " + std::to_string(model.unit_count()) + " units, where its architecture has " +
           std::to_string(built.unit_count());
  std::set<std::pair<int, int>> equal;  // kinds
  for (int u = 0; u < model.unit_count(); ++u) {
    if (!equal.emplace(model.units[u], built.units[u]).second) continue;
    const LayerKind& kind = model.unit(u);
    const LayerKind& wanted = built.unit(u);
    bool same = kind.ops.size() == wanted.ops.size() && kind.starts_layer == wanted.starts_layer;
    for (std::size_t op = 0; same && op < kind.ops.size(); ++op)
      same = kind.ops[op].name == wanted.ops[op].name;
    if (!same)
      return "has a unit " + std::to_string(u) + " ('" + kind.name +
             "') that is not the one of its architecture ('" + wanted.name + "')";
  }
  return "";
}

bool same_ties(const std::vector<Tie>& a, const std::vector<Tie>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].first != b[i].first || a[i].second != b[i].second || a[i].first_op != b[i].first_op ||
        a[i].second_op != b[i].second_op)
      return false;
  return true;
}

}  // namespace

std::optional<Model> build(const Architecture& architecture) {
  if (const auto* transformer = std::get_if<TransformerConfig>(&architecture))
    return build_transformer(*transformer);
  if (const auto* resnet = std::get_if<WideResnetConfig>(&architecture))
    return build_wide_resnet(*resnet);
  if (const auto* gan = std::get_if<TransganConfig>(&architecture)) return build_transgan(*gan);
  return std::nullopt;
}

std::string architecture_fault(const Model& model) {
  std::optional<Model> built = build(model.architecture);
  if (!built) return "";
  const auto starts_inside = [](const LayerKind& kind) { return !kind.starts_layer; };
  if (std::ranges::any_of(model.kinds, starts_inside)) built = at_op_granularity(*built);
  if (model.sequence_length != built->sequence_length || model.vocabulary != built->vocabulary ||
      model.causal != built->causal)
    return "the model has another sequence length, vocabulary or causality than its architecture";
  const std::string fault = fault_of_units(model, *built);
  if (!fault.empty()) return "the model " + fault;
  if (!same_ties(model.ties, built->ties)) return "the model has other ties than its architecture";
  return "";
}

}  // namespace plait
