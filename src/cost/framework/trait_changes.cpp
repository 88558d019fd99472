#include "cost/framework/trait_changes.h"

#include <map>
#include <string>

namespace plait {
namespace {

struct TraitName {
  std::string_view name;
  double& (*of)(FrameworkTraits& traits);
};

constexpr TraitName kTraits[] = {
    {"host_block", [](FrameworkTraits& t) -> double& { return t.host_block.value; }},
    {"host_tensor", [](FrameworkTraits& t) -> double& { return t.host_tensor; }},
    {"host_split", [](FrameworkTraits& t) -> double& { return t.host_split.value; }},
    {"host_unfused", [](FrameworkTraits& t) -> double& { return t.host_unfused.value; }},
    {"host_recompute", [](FrameworkTraits& t) -> double& { return t.host_recompute; }},
    {"host_checkpoint", [](FrameworkTraits& t) -> double& { return t.host_checkpoint.value; }},
    {"host_kernel", [](FrameworkTraits& t) -> double& { return t.host_kernel.value; }},
    {"host_experts", [](FrameworkTraits& t) -> double& { return t.host_experts.value; }},
    {"host_head", [](FrameworkTraits& t) -> double& { return t.host_head.value; }},
    {"host_embedding", [](FrameworkTraits& t) -> double& { return t.host_embedding.value; }},
    {"host_corner", [](FrameworkTraits& t) -> double& { return t.host_corner; }},
    {"traffic", [](FrameworkTraits& t) -> double& { return t.traffic; }},
    {"expert_traffic", [](FrameworkTraits& t) -> double& { return t.expert_traffic; }},
    {"loss_bytes", [](FrameworkTraits& t) -> double& { return t.loss_bytes; }},
    {"cast_bytes", [](FrameworkTraits& t) -> double& { return t.cast_bytes; }},
    {"tensor_exposed", [](FrameworkTraits& t) -> double& { return t.tensor_exposed; }},
    {"tensor_backward", [](FrameworkTraits& t) -> double& { return t.tensor_backward; }},
    {"tensor_skew", [](FrameworkTraits& t) -> double& { return t.tensor_skew.value; }},
    {"tensor_skew_power", [](FrameworkTraits& t) -> double& { return t.tensor_skew_power; }},
    {"data_exposed", [](FrameworkTraits& t) -> double& { return t.data_exposed; }},
    {"expert_exposed", [](FrameworkTraits& t) -> double& { return t.expert_exposed; }},
    {"context_exposed", [](FrameworkTraits& t) -> double& { return t.context_exposed; }},
    {"send_limit", [](FrameworkTraits& t) -> double& { return t.send_limit.value; }},
    {"send_wait", [](FrameworkTraits& t) -> double& { return t.send_wait.value; }},
    {"logit_bytes", [](FrameworkTraits& t) -> double& { return t.logit_bytes; }},
    {"workspace", [](FrameworkTraits& t) -> double& { return t.workspace.value; }},
};

std::map<Framework, std::map<std::string, double, std::less<>>>& changes() {
  static std::map<Framework, std::map<std::string, double, std::less<>>> all;
  return all;
}

}  // namespace

std::vector<std::string_view> trait_names() {
  std::vector<std::string_view> names;
  for (const TraitName& trait : kTraits) names.push_back(trait.name);
  return names;
}

double* trait_named(FrameworkTraits& traits, std::string_view name) {
  for (const TraitName& trait : kTraits)
    if (trait.name == name) return &trait.of(traits);
  return nullptr;
}

bool change_trait(Framework framework, std::string_view name, double value) {
  FrameworkTraits any;
  if (!trait_named(any, name)) return false;
  changes()[framework][std::string(name)] = value;
  return true;
}

void apply_trait_changes(Framework framework, FrameworkTraits& traits) {
  const auto found = changes().find(framework);
  if (found == changes().end()) return;
  for (const auto& [name, value] : found->second) *trait_named(traits, name) = value;
}

}  // namespace plait
