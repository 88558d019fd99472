#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <variant>
#include <vector>

#include "model/layers.h"
#include "plan/names.h"
#include "plan/target.h"
#include "plan/target_rules.h"

// The rules of what programs run; those about memory are in memory_rules.cpp.
namespace plait {

std::string target_rules::listed(std::vector<std::string_view> names) {
  if (names.size() == 1) return std::string(names.front());
  const std::string_view last = names.back();
  names.pop_back();
  return fmt::format("{} and {}", fmt::join(names, ", "), last);
}

namespace {

using namespace target_rules;

// The values of all spans, stage by stage: each once where it does not change.
std::vector<int> values_of(const Plan& plan, int Span::*field) {
  std::vector<int> values;
  for (const Stage& stage : plan.stages)
    for (const Span& span : stage.spans)
      if (values.empty() || values.back() != span.*field) values.push_back(span.*field);
  return values;
}

int most_tensor(const Plan& plan) {
  const std::vector<int> degrees = values_of(plan, &Span::tensor);
  return *std::ranges::max_element(degrees);
}

Reason devices_reason(const Question& q) {
  const std::vector<DeviceType>& types = q.problem.cluster.device_types;
  std::vector<bool> used(types.size());
  for (const Stage& stage : q.plan.stages)
    for (const DeviceId id : stage.devices) used[q.problem.cluster.device(id).type] = true;
  for (std::size_t type = 0; type < types.size(); ++type)
    if (used[type])
      if (Reason reason = why_not(q.target, q.problem.job, types[type])) return reason;
  const std::string several = several_collectives(q.problem.cluster, used);
  if (several.empty()) return std::nullopt;
  return fmt::format("{} sums over all devices with one library, {}", q.target.program, several);
}

Reason pipeline_reason(const Question& q) {
  const int stages = q.plan.stage_count();
  if (stages > 1 && q.target.cuts == CutRule::none)
    return fmt::format("{} has no pipeline, the plan has {} stages", q.target.program, stages);
  // Of one stage GPipe and 1F1B are the same.
  const bool is_plain =
      q.plan.schedule == Schedule::gpipe || q.plan.schedule == Schedule::one_f_one_b;
  if (!(is_plain && stages == 1) && !contains(q.target.schedules, q.plan.schedule))
    return fmt::format("{} has the schedule{} {}, the plan {}", q.target.program,
                       q.target.schedules.size() == 1 ? "" : "s", names_of(q.target.schedules),
                       name_of(q.plan.schedule));
  return std::nullopt;
}

Reason degrees_reason(const Question& q) {
  if (!q.target.tensor && most_tensor(q.plan) > 1)
    return fmt::format("{} has no tensor parallelism, the plan has tp {}", q.target.program,
                       most_tensor(q.plan));
  if (!q.target.one_layout) return std::nullopt;
  for (const auto& [field, name] :
       {std::pair(&Span::tensor, "tensor"), std::pair(&Span::data, "data")}) {
    const std::vector<int> values = values_of(q.plan, field);
    if (values.size() > 1)
      return fmt::format("{} has one {} degree for all layers, the plan has {}", q.target.program,
                         name, fmt::join(values, ", "));
  }
  return std::nullopt;
}

Reason heads_reason(const Question& q) {
  if (q.target.key_value_heads == KeyValueHeads::any) return std::nullopt;
  const int heads = key_value_heads(q.problem.model);
  for (const int tensor : values_of(q.plan, &Span::tensor))
    if (heads % tensor != 0)
      return fmt::format(
          "{} needs a tensor degree that divides the {} heads of keys and values, "
          "the plan has {}",
          q.target.program, heads, tensor);
  return std::nullopt;
}

bool straddles(const Cluster& cluster, const Stage& stage, int tensor) {
  for (std::size_t d = 0; d < stage.devices.size(); ++d)
    if (cluster.device(stage.devices[d]).node != cluster.device(stage.devices[d - d % tensor]).node)
      return true;
  return false;
}

Reason nodes_reason(const Question& q) {
  if (q.target.tensor_across_nodes) return std::nullopt;
  for (const Stage& stage : q.plan.stages)
    for (const Span& span : stage.spans)
      if (straddles(q.problem.cluster, stage, span.tensor))
        return fmt::format("{} keeps tensor groups inside a node, the plan has tp {} across nodes",
                           q.target.program, span.tensor);
  return std::nullopt;
}

Reason split_reason(const Question& q) {
  for (const Stage& stage : q.plan.stages)
    for (const Span& span : stage.spans)
      for (int u = span.units.begin; u < span.units.end && span.split > 0; ++u) {
        const LayerKind& unit = q.problem.model.unit(u);
        if (span.split < ways_to_cut(q.target, unit)) continue;
        return fmt::format(
            "{} cuts {} in its usual way, the plan has split {}", q.target.program,
            q.target.split_choices == SplitChoices::none ? "every product" : unit.name, span.split);
      }
  return std::nullopt;
}

bool cuts_inside_layers(const Question& q) {
  for (const Stage& stage : q.plan.stages)
    for (const Span& span : stage.spans)
      if (!q.problem.model.unit(span.units.begin).starts_layer) return true;
  return false;
}

Reason cuts_reason(const Question& q) {
  if (q.target.cuts == CutRule::between_ops) return std::nullopt;
  if (cuts_inside_layers(q))
    return fmt::format("{} cuts between layers only, the plan cuts inside one", q.target.program);
  if (q.target.cuts == CutRule::between_layers || q.plan.stage_count() == 1) return std::nullopt;
  const std::vector<int> layers = layers_by_chunk(q.problem.model, q.plan);
  const auto [least, most] = std::ranges::minmax(layers);
  const int allowed = q.target.cuts == CutRule::equal_layers ? 0 : 1;
  if (most - least <= allowed) return std::nullopt;
  return fmt::format("{} gives every stage {} layers, the plan has {}", q.target.program,
                     allowed == 0 ? "equally many" : "equally many or one more",
                     fmt::join(layers, ", "));
}

Reason context_reason(const Question& q) {
  const int context = q.plan.context;
  if (context == 1) return std::nullopt;
  if (!q.target.context)
    return fmt::format("{} has no context parallelism, the plan has cp {}", q.target.program,
                       context);
  if (!has_context(q.target, q.problem.job))
    return fmt::format("{} has context parallelism with flash attention only, the plan has cp {}",
                       q.target.program, context);
  const int sequence = q.problem.model.sequence_length;
  if (q.target.context_in_halves && sequence % (2 * context) != 0)
    return fmt::format(
        "{} cuts sequences into {} parts for cp {}, which {} tokens are not a "
        "multiple of",
        q.target.program, 2 * context, context, sequence);
  return std::nullopt;
}

bool has_experts(const Model& model) {
  return std::ranges::any_of(model.kinds, [](const LayerKind& kind) {
    return std::ranges::any_of(kind.ops, [](const Op& op) { return op.split == Split::experts; });
  });
}

Reason experts_reason(const Question& q) {
  if (q.plan.expert > 1 && !q.target.expert)
    return fmt::format("{} has no expert parallelism, the plan has ep {}", q.target.program,
                       q.plan.expert);
  const int replicas = q.plan.stages.front().spans.front().data;
  if (q.target.experts_over_replicas && replicas % q.plan.expert != 0)
    return fmt::format("{} has experts over whole replicas, the plan has dp {} and ep {}",
                       q.target.program, replicas, q.plan.expert);
  if (q.plan.sequence_parallel && most_tensor(q.plan) > 1 && !q.target.sequence_parallel)
    return fmt::format("{} has no sequence parallelism", q.target.program);
  const bool needs = q.target.experts_need_sequence_parallel && has_experts(q.problem.model);
  if (needs && most_tensor(q.plan) > 1 && !q.plan.sequence_parallel)
    return fmt::format("{} needs sequence parallelism where experts have a tensor degree",
                       q.target.program);
  return std::nullopt;
}

Reason shares_reason(const Question& q) {
  if (q.target.unequal_shares) return std::nullopt;
  for (const Stage& stage : q.plan.stages)
    if (!stage.shares.empty() &&
        std::ranges::any_of(stage.shares, [&](int n) { return n != stage.shares.front(); }))
      return fmt::format("{} gives every replica the same samples, the plan has shares",
                         q.target.program);
  return std::nullopt;
}

// Devices that the plan uses, by node.
std::vector<int> devices_by_node(const Question& q) {
  std::vector<int> used(q.problem.cluster.nodes.size());
  for (const Stage& stage : q.plan.stages)
    for (const DeviceId id : stage.devices) ++used[q.problem.cluster.device(id).node];
  return used;
}

Reason equal_nodes_reason(const Question& q) {
  if (!q.target.equal_nodes) return std::nullopt;
  std::vector<int> used = devices_by_node(q);
  std::erase(used, 0);
  const auto [least, most] = std::ranges::minmax(used);
  if (least == most) return std::nullopt;
  return fmt::format("{} starts equally many processes on every node, the plan has {} and {}",
                     q.target.program, least, most);
}

Reason idle_reason(const Question& q) {
  if (q.target.idle_in_node) return std::nullopt;
  const std::vector<int> used = devices_by_node(q);
  std::vector<int> all(used.size());
  for (const Device& device : q.problem.cluster.devices) ++all[device.node];
  for (std::size_t node = 0; node < used.size(); ++node)
    if (used[node] != 0 && used[node] != all[node])
      return fmt::format("{} uses all devices of a node or none, the plan {} of the {} of {}",
                         q.target.program, used[node], all[node],
                         q.problem.cluster.nodes[node].name);
  return std::nullopt;
}

// Hosts may be listed in any order; the devices of each follow each other.
Reason order_reason(const Question& q) {
  if (q.target.stages_of_powers)
    for (const Stage& stage : q.plan.stages)
      if (!std::has_single_bit(stage.devices.size()))
        return fmt::format("{} has stages of 1, 2, 4, 8 .. devices, the plan one of {}",
                           q.target.program, stage.devices.size());
  if (!q.target.ranks_in_order) return std::nullopt;
  std::vector<bool> seen(q.problem.cluster.nodes.size());
  DeviceId last{-1};
  for (const Stage& stage : q.plan.stages)
    for (const DeviceId id : stage.devices) {
      const int node = q.problem.cluster.device(id).node;
      const bool goes_on = index(last) >= 0 && q.problem.cluster.device(last).node == node;
      if (!goes_on && seen[node])
        return fmt::format(
            "{} numbers the devices of a node in a row, the plan does not: device "
            "{} comes after {}",
            q.target.program, index(id), index(last));
      seen[node] = true;
      last = id;
    }
  return std::nullopt;
}

}  // namespace

bool has_context(const Target& target, const Job& job) {
  return target.context && (!target.context_needs_flash || job.attention == AttentionKernel::flash);
}

int key_value_heads(const Model& model) {
  if (const auto* config = std::get_if<TransformerConfig>(&model.architecture)) {
    const bool own = config->kv_heads > 0 && config->mla.kv_rank == 0;
    return own ? config->kv_heads : config->heads;
  }
  int heads = 0;
  for (const LayerKind& kind : model.kinds)
    for (const Op& op : kind.ops)
      if (op.split == Split::heads)
        heads = std::gcd(heads, static_cast<int>(op.kv_count > 0 ? op.kv_count : op.count));
  return heads;
}

std::string several_collectives(const Cluster& cluster, const std::vector<bool>& types) {
  const DeviceType* first = nullptr;
  for (std::size_t t = 0; t < cluster.device_types.size(); ++t) {
    if (!types[t]) continue;
    const DeviceType& type = cluster.device_types[t];
    if (first == nullptr) first = &type;
    if (type.collectives != first->collectives)
      return fmt::format("{} has {} and {} has {}", first->name, first->collectives, type.name,
                         type.collectives);
  }
  return "";
}

std::vector<int> layers_by_chunk(const Model& model, const Plan& plan) {
  const int chunks = chunk_count(plan.stages.front());
  std::vector<int> layers(static_cast<std::size_t>(plan.stage_count()) * chunks);
  for (int s = 0; s < plan.stage_count(); ++s)
    for (const Span& span : plan.stages[s].spans)
      for (int u = span.units.begin; u < span.units.end; ++u)
        if (begins_layer(model.unit(u)))
          ++layers[chunk_position(plan.schedule, plan.stage_count(), s, span.chunk)];
  return layers;
}

Reason why_not(const Target& target, const Job& job) {
  if (!target.precisions.empty() && !contains(target.precisions, job.precision))
    return fmt::format("{} trains in {}, not in {}", target.program, names_of(target.precisions),
                       name_of(job.precision));
  if (job.adapters && !target.adapters)
    return fmt::format("{} does not train adapters alone", target.program);
  if (job.four_bit_weights && !target.four_bit_weights)
    return fmt::format("{} does not keep weights in 4 bits", target.program);
  return std::nullopt;
}

Reason why_not(const Target& target, const Job& job, const DeviceType& type) {
  const DType wanted = compute_dtype(job.precision);
  const bool pre_bf16 = type.supports(DType::fp16) && !type.supports(DType::bf16);
  if (target.needs_number_format && !type.supports(wanted) && wanted != DType::fp32 &&
      wanted != DType::tf32)
    return fmt::format("{} does not compute in {}", type.name, name_of(wanted));
  if (target.needs_number_format && job.precision == Precision::fp4 && type.efficiency.fp4 <= 1)
    return fmt::format("{} does not compute in fp4", type.name);
  if (target.flash_needs_bf16 && pre_bf16 && job.attention == AttentionKernel::flash)
    return fmt::format("{} is older than the devices that flash attention runs on", type.name);
  return std::nullopt;
}

Reason why_not(const Target& target, const Problem& problem, const Plan& plan) {
  using Rule = Reason (*)(const Question&);
  static constexpr Rule kRules[] = {
      devices_reason, pipeline_reason, degrees_reason,     nodes_reason,
      heads_reason,   split_reason,    cuts_reason,        zero_reason,
      context_reason, experts_reason,  recompute_reason,   offload_reason,
      shares_reason,  idle_reason,     equal_nodes_reason, order_reason};
  if (target.name == "any") return std::nullopt;
  if (Reason reason = why_not(target, problem.job)) return reason;
  const Question question{target, problem, plan};
  for (const Rule rule : kRules)
    if (Reason reason = rule(question)) return reason;
  return std::nullopt;
}

}  // namespace plait
