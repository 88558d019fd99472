#include "search/space/pins.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "model/layers.h"
#include "plan/names.h"
#include "plan/target_rules.h"
#include "search/space/space.h"

namespace plait {
namespace {

using Found = std::optional<PinViolation>;

int stage_count(const Pins& pins) { return static_cast<int>(pins.stages.size()); }

bool is_chunked(const Pins& pins) {
  return pins.schedule == Schedule::interleaved || pins.schedule == Schedule::zb_v;
}

Found chunk_violation(const Pins& pins) {
  const int chunks = pins.chunks.value_or(1);
  if (chunks > 1 && !pins.schedule)
    return {{Dimension::chunks, fmt::format("{} needs `schedule` interleaved", chunks)}};
  const bool in_two = pins.schedule == Schedule::zb_v && chunks == 2;
  if (chunks > 1 && pins.schedule != Schedule::interleaved && !in_two)
    return {{Dimension::chunks, fmt::format("schedule {} has {} in each stage",
                                            name_of(*pins.schedule), is_chunked(pins) ? 2 : 1)}};
  if (is_chunked(pins) && (pins.pipeline == 1 || stage_count(pins) == 1))
    return {
        {Dimension::schedule, fmt::format("{} needs at least 2 stages", name_of(*pins.schedule))}};
  if (pins.schedule == Schedule::interleaved && pins.chunks == 1)
    return {{Dimension::chunks, "schedule interleaved has at least 2 in each stage"}};
  if (is_chunked(pins) && !pins.stages.empty())
    return {{Dimension::schedule, fmt::format("{} cuts stages into chunks, `stages` cannot say how",
                                              name_of(*pins.schedule))}};
  return std::nullopt;
}

Found batch_violation(const Pins& pins, int batch) {
  if (pins.micro_batches && batch % *pins.micro_batches != 0)
    return {{Dimension::micro_batches,
             fmt::format("{} does not divide the global batch of {}", *pins.micro_batches, batch)}};
  if (pins.micro_batch && batch % *pins.micro_batch != 0)
    return {{Dimension::micro_batch,
             fmt::format("{} does not divide the global batch of {}", *pins.micro_batch, batch)}};
  if (!pins.data || !pins.micro_batch) return std::nullopt;
  const double samples = 1.0 * *pins.data * *pins.micro_batch;
  if (pins.micro_batches && samples * *pins.micro_batches != batch)
    return {{Dimension::global_batch,
             fmt::format("is {}, but `data` {} x `micro_batch` {} x `micro_batches` {} is {}",
                         batch, *pins.data, *pins.micro_batch, *pins.micro_batches,
                         samples * *pins.micro_batches)}};
  if (samples > batch || batch % static_cast<int>(samples) != 0)
    return {{Dimension::data, fmt::format("{} x `micro_batch` {} does not divide the global batch "
                                          "of {}",
                                          *pins.data, *pins.micro_batch, batch)}};
  return std::nullopt;
}

// The degrees that are pinned: in words, of the dimension that is named first, and multiplied.
struct PinnedDegrees {
  Found words;
  double devices = 1;
};

PinnedDegrees pinned_degrees(const Pins& pins) {
  struct Degree {
    Dimension dimension;
    int value;
  };
  const int stages = stage_count(pins) > 0 ? stage_count(pins) : pins.pipeline.value_or(1);
  const std::array<Degree, 4> degrees{
      {{Dimension::tensor, pins.tensor.value_or(1)},
       {stage_count(pins) > 0 ? Dimension::stages : Dimension::pipeline, stages},
       {Dimension::data, pins.data.value_or(1)},
       {Dimension::context, pins.context.value_or(1)}}};
  PinnedDegrees out;
  for (const auto& [dimension, value] : degrees) {
    if (value == 1) continue;
    out.devices *= value;
    if (!out.words)
      out.words = {dimension, std::to_string(value)};
    else
      out.words->what += fmt::format(" x `{}` {}", name_of(dimension), value);
  }
  return out;
}

// Degrees that multiply to more devices than there are.
Found device_violation(const Pins& pins, int devices) {
  PinnedDegrees needed = pinned_degrees(pins);
  if (needed.devices <= devices) return std::nullopt;
  needed.words->what +=
      fmt::format(" needs {} devices, the cluster has {}", needed.devices, devices);
  return std::move(needed.words);
}

// Numbers of devices that whole nodes have together.
std::vector<bool> sums_of_nodes(const Cluster& cluster) {
  std::vector<int> sizes(cluster.nodes.size());
  for (const Device& device : cluster.devices) ++sizes[device.node];
  std::map<int, int> nodes_of_size;
  for (const int size : sizes) ++nodes_of_size[size];
  std::vector<bool> sums(static_cast<std::size_t>(cluster.device_count()) + 1);
  sums[0] = true;
  for (const auto& [size, count] : nodes_of_size) {
    std::vector<int> used(sums.size(), 0);  // nodes of this size, the fewest
    for (std::size_t sum = size; sum < sums.size(); ++sum) {
      const std::size_t before = sum - static_cast<std::size_t>(size);
      if (sums[sum] || !sums[before] || used[before] == count) continue;
      sums[sum] = true;
      used[sum] = used[before] + 1;
    }
  }
  return sums;
}

// Degrees that no choice of whole nodes has the devices for.
Found whole_node_violation(const Problem& problem, const Pins& pins, const Target& target) {
  if (!target.one_layout || target.idle_in_node) return std::nullopt;
  PinnedDegrees pinned = pinned_degrees(pins);
  const auto step = static_cast<std::size_t>(pinned.devices);
  const bool all = pins.tensor && (pins.pipeline || stage_count(pins) > 0) && pins.data &&
                   (pins.context || !has_context(target, problem.job));
  const std::vector<bool> sums = sums_of_nodes(problem.cluster);
  for (std::size_t devices = step; devices < sums.size(); devices += step)
    if (sums[devices])
      return std::nullopt;
    else if (all)
      break;
  if (!pinned.words) return std::nullopt;
  pinned.words->what += fmt::format(
      " is not possible: {} uses all devices of a node or none, and no nodes together have {}{}",
      target.program, all ? "" : "a multiple of ", step);
  return std::move(pinned.words);
}

Found stage_violation(const Pins& pins, const Model& model) {
  const int units = model.unit_count();
  if (pins.pipeline && *pins.pipeline > units)
    return {{Dimension::pipeline,
             fmt::format("{} is more than the {} units of the model (layers, embedding and head)",
                         *pins.pipeline, units)}};
  if (pins.stages.empty()) return std::nullopt;
  const long long sum = std::accumulate(pins.stages.begin(), pins.stages.end(), 0LL);
  if (sum == units) return std::nullopt;
  return {{Dimension::stages,
           fmt::format("adds up to {}; {} has {} layers, or {} units with embedding and head", sum,
                       model.name, layer_count(model), units)}};
}

Found tensor_violation(const Problem& problem, const std::vector<Pool>& pools, const Pins& pins) {
  if (!pins.tensor) return std::nullopt;
  std::string obstacle;
  if (!cuts_evenly(problem.model, *pins.tensor, &obstacle))
    return {{Dimension::tensor, fmt::format("{} does not divide {}", *pins.tensor, obstacle)}};
  if (std::ranges::any_of(pools, [&](const Pool& pool) { return tensor_fits(pool, *pins.tensor); }))
    return std::nullopt;
  return {{Dimension::tensor,
           fmt::format("{} neither divides the devices of a node nor is a multiple of them (at "
                       "most {} nodes)",
                       *pins.tensor, kMaxTensorNodes)}};
}

Found sequence_violation(const Pins& pins, int sequence) {
  const int context = pins.context.value_or(1);
  if (sequence % context != 0)
    return {{Dimension::context,
             fmt::format("{} does not divide the sequence length of {}", context, sequence)}};
  const int on_device = sequence / context;
  if (!pins.tensor || !pins.sequence_parallel.value_or(false) || on_device % *pins.tensor == 0)
    return std::nullopt;
  return {{Dimension::tensor,
           fmt::format("{} does not divide the {} tokens of a sequence on each device, which "
                       "`sequence_parallel` cuts",
                       *pins.tensor, on_device)}};
}

Found expert_violation(const Pins& pins, int experts) {
  if (pins.expert.value_or(1) == 1) return std::nullopt;
  if (experts == 0)
    return {{Dimension::expert, fmt::format("{} needs a model with experts", *pins.expert)}};
  if (experts % *pins.expert == 0) return std::nullopt;
  return {
      {Dimension::expert, fmt::format("{} does not divide the {} experts", *pins.expert, experts)}};
}

template <typename Value>
bool lacks(const std::optional<Value>& pinned, const std::vector<Value>& has) {
  return pinned && std::ranges::find(has, *pinned) == has.end();
}

// The least ZeRO stage beside which the target keeps so much optimizer state in host memory;
// nothing = none at all.
std::optional<ZeroStage> least_zero(const Target& target, double offload) {
  if (offload == 0) return ZeroStage::off;
  if (!target.offload || (offload < 1 && !target.parts_from)) return std::nullopt;
  return offload < 1 ? std::max(target.offload_from, *target.parts_from) : target.offload_from;
}

// What the target has no way to run, whatever the model.
Found lacking(const Problem& problem, const Pins& pins, const Target& target) {
  const auto refuse = [&](Dimension dimension, const auto& value, std::string_view what) {
    return Found{
        {dimension, fmt::format("{} is not possible: {} {}", value, target.program, what)}};
  };
  const int stages = stage_count(pins) > 0 ? stage_count(pins) : pins.pipeline.value_or(1);
  if (stages > 1 && target.cuts == CutRule::none)
    return refuse(stage_count(pins) > 0 ? Dimension::stages : Dimension::pipeline, stages,
                  "has no pipeline");
  if (lacks(pins.schedule, target.schedules))
    return refuse(Dimension::schedule, name_of(*pins.schedule), "does not have this schedule");
  const std::vector<ZeroStage>& zero_stages = stages > 1 ? target.zero_in_pipeline : target.zero;
  if (lacks(pins.zero, zero_stages))
    return refuse(Dimension::zero, name_of(*pins.zero),
                  fmt::format("has ZeRO {}{}", target_rules::names_of(zero_stages),
                              stages > 1 ? " in a pipeline" : ""));
  if (lacks(pins.recompute, target.recomputes))
    return refuse(Dimension::recompute, name_of(*pins.recompute), "does not recompute so");
  if (pins.recompute_layers && target.recompute_layers == RecomputeLayers::same)
    return refuse(Dimension::recompute_layers, *pins.recompute_layers,
                  "recomputes all layers or none");
  if (pins.tensor.value_or(1) > 1 && !target.tensor)
    return refuse(Dimension::tensor, *pins.tensor, "has no tensor parallelism");
  if (pins.offload.value_or(0) > 0 && !target.offload)
    return refuse(Dimension::offload, *pins.offload, "keeps the optimizer's state on the devices");
  const std::optional<ZeroStage> least = least_zero(target, pins.offload.value_or(0));
  if (!least)
    return refuse(Dimension::offload, *pins.offload,
                  "keeps all of the optimizer's state in host memory or none");
  if (pins.zero && *pins.zero < *least)
    return refuse(Dimension::zero, name_of(*pins.zero),
                  fmt::format("has this in host memory from ZeRO {} on", name_of(*least)));
  if (pins.context.value_or(1) > 1 && !has_context(target, problem.job))
    return refuse(Dimension::context, *pins.context,
                  target.context ? "has context parallelism with flash attention only"
                                 : "has no context parallelism");
  if (pins.expert.value_or(1) > 1 && !target.expert)
    return refuse(Dimension::expert, *pins.expert, "has no expert parallelism");
  const int heads = key_value_heads(problem.model);
  if (target.key_value_heads == KeyValueHeads::divided && heads % pins.tensor.value_or(1) != 0)
    return refuse(
        Dimension::tensor, *pins.tensor,
        fmt::format("needs a degree that divides the {} heads of keys and values", heads));
  return whole_node_violation(problem, pins, target);
}

// The same, and which programs have a way.
Found target_violation(const Problem& problem, const Pins& pins, const Target& target) {
  Found found = lacking(problem, pins, target);
  if (!found) return found;
  std::vector<std::string_view> others;
  for (const Target& other : targets())
    if (other.name != "any" && !why_not(other, problem.job) && !lacking(problem, pins, other))
      others.push_back(other.name);
  if (others.empty())
    found->what += " (`runs_on` any leaves it open)";
  else
    found->what +=
        fmt::format(" (`framework` {} can, `runs_on` any leaves it open)", fmt::join(others, ", "));
  return found;
}

}  // namespace

std::string_view name_of(Dimension dimension) {
  static constexpr std::array<std::string_view, 16> kNames{"tensor",
                                                           "pipeline",
                                                           "data",
                                                           "context",
                                                           "expert",
                                                           "micro_batch",
                                                           "micro_batches",
                                                           "recompute",
                                                           "recompute_layers",
                                                           "zero",
                                                           "schedule",
                                                           "chunks",
                                                           "sequence_parallel",
                                                           "stages",
                                                           "offload",
                                                           "global_batch"};
  return kNames[static_cast<std::size_t>(dimension)];
}

std::string in_words(const PinViolation& violation) {
  return fmt::format("`{}`: {}", name_of(violation.dimension), violation.what);
}

std::optional<PinViolation> violation_among(const Pins& pins, int global_batch) {
  if (!pins.stages.empty() && pins.pipeline && *pins.pipeline != stage_count(pins))
    return {{Dimension::stages, fmt::format("has {} stages, but `pipeline` is {}",
                                            stage_count(pins), *pins.pipeline)}};
  if (pins.recompute_layers && pins.recompute.value_or(Recompute::full) != Recompute::full)
    return {{Dimension::recompute_layers,
             fmt::format("is a number of layers that are recomputed in full, but `recompute` is {}",
                         name_of(*pins.recompute))}};
  if (Found found = chunk_violation(pins)) return found;
  return batch_violation(pins, global_batch);
}

std::optional<PinViolation> violation_of(const Problem& problem, const Pins& pins,
                                         const Target& target) {
  const std::vector<Pool> pools = pools_of(problem.cluster);
  if (Found found = violation_among(pins, problem.job.global_batch)) return found;
  if (Found found = stage_violation(pins, problem.model)) return found;
  if (Found found = device_violation(pins, problem.cluster.device_count())) return found;
  if (Found found = tensor_violation(problem, pools, pins)) return found;
  if (Found found = sequence_violation(pins, problem.model.sequence_length)) return found;
  if (Found found = expert_violation(pins, expert_count(problem.model))) return found;
  if (Found found = target_violation(problem, pins, target)) return found;
  // Pools of different devices may share a batch unequally; equal replicas cannot.
  if (pins.data && problem.job.global_batch % *pins.data != 0 && pools.size() == 1)
    return {{Dimension::data, fmt::format("{} does not divide the global batch of {}", *pins.data,
                                          problem.job.global_batch)}};
  return std::nullopt;
}

}  // namespace plait
