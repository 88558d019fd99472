#include "validation/run_kind.h"

#include <algorithm>
#include <map>
#include <set>

namespace plait {
namespace {

constexpr int kLongSequence = 16384;
constexpr int kManyNodes = 16;

bool has_experts(const Model& model) {
  return std::ranges::any_of(model.kinds, [](const LayerKind& kind) {
    return std::ranges::any_of(kind.ops, [](const Op& op) { return op.split == Split::experts; });
  });
}

bool is_narrow(Precision precision) {
  return precision == Precision::fp8 || precision == Precision::fp8_row ||
         precision == Precision::fp4;
}

}  // namespace

RunKind kind_of(const Problem& problem, const Plan& plan) {
  std::map<int, int> count_by_type;
  std::set<int> nodes;
  int devices = 0;
  for (const Stage& stage : plan.stages)
    for (const DeviceId id : stage.devices) {
      ++count_by_type[problem.cluster.device(id).type];
      nodes.insert(problem.cluster.device(id).node);
      ++devices;
    }
  const auto most = std::ranges::max_element(
      count_by_type, {}, [](const auto& type_and_count) { return type_and_count.second; });
  RunKind kind;
  if (most != count_by_type.end()) kind.device = problem.cluster.device_types[most->first].name;
  kind.framework = problem.job.framework.name;
  kind.lone = devices == 1;
  kind.nodes = nodes.size() > 1;
  kind.many_nodes = nodes.size() > kManyNodes;
  kind.experts = has_experts(problem.model);
  kind.long_sequence = problem.model.sequence_length >= kLongSequence;
  kind.narrow = is_narrow(problem.job.precision);
  kind.mixed = count_by_type.size() > 1;
  kind.other_network = !problem.model.causal || problem.model.vocabulary == 0;
  kind.adapters = problem.job.adapters;
  kind.measured = !problem.profile.compute.empty();
  return kind;
}

}  // namespace plait
