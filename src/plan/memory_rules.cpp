#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <variant>

#include "model/layers.h"
#include "plan/target_rules.h"

// The rules about what replicas keep: ZeRO, recompute, optimizer states in host memory.
namespace plait::target_rules {

namespace {

std::set<Recompute> recomputes_of(const std::vector<Stage>& stages) {
  std::set<Recompute> kinds;
  for (const Stage& stage : stages)
    for (const Span& span : stage.spans) kinds.insert(span.recompute);
  return kinds;
}

// Layers of a chunk, and how many of them are recomputed in full before the first that is not.
struct FirstLayers {
  int all = 0;
  int recomputed = 0;
  bool are_first = true;  // none follows one that is not recomputed
};

std::vector<FirstLayers> first_layers_by_chunk(const Model& model, const Plan& plan) {
  std::vector<FirstLayers> chunks;
  for (const Stage& stage : plan.stages)
    for (const Span& span : stage.spans) {
      if (&span == &stage.spans.front() || span.chunk != (&span - 1)->chunk) chunks.emplace_back();
      FirstLayers& chunk = chunks.back();
      for (int u = span.units.begin; u < span.units.end; ++u) {
        if (!begins_layer(model.unit(u))) continue;
        const bool recomputed = span.recompute == Recompute::full;
        chunk.are_first = chunk.are_first && (!recomputed || chunk.recomputed == chunk.all);
        ++chunk.all;
        chunk.recomputed += recomputed ? 1 : 0;
      }
    }
  return chunks;
}

bool are_first(const std::vector<FirstLayers>& chunks) {
  return std::ranges::all_of(chunks, &FirstLayers::are_first);
}

// Whether every chunk recomputes as many of its first layers as every other, or all that it has.
bool are_alike(const std::vector<FirstLayers>& chunks) {
  int most = 0;
  for (const FirstLayers& chunk : chunks) most = std::max(most, chunk.recomputed);
  return are_first(chunks) && std::ranges::all_of(chunks, [&](const FirstLayers& chunk) {
           return chunk.recomputed == std::min(most, chunk.all);
         });
}

// Of networks whose width is known.
Reason even_states_reason(const Question& q) {
  const auto* config = std::get_if<TransformerConfig>(&q.problem.model.architecture);
  if (config == nullptr || q.plan.zero == ZeroStage::off) return std::nullopt;
  const int copies = q.plan.stages.front().spans.front().data * q.plan.context;
  if (config->hidden % copies == 0) return std::nullopt;
  return fmt::format(
      "{} cuts states evenly, the plan over {} devices, of which a width of {} is "
      "not a multiple",
      q.target.program, copies, config->hidden);
}

}  // namespace

Reason zero_reason(const Question& q) {
  const bool pipeline = q.plan.stage_count() > 1;
  const std::vector<ZeroStage>& stages = pipeline ? q.target.zero_in_pipeline : q.target.zero;
  if (!contains(stages, q.plan.zero))
    return fmt::format("{} runs ZeRO {}{}, the plan has {}", q.target.program, names_of(stages),
                       pipeline ? " in a pipeline" : "", name_of(q.plan.zero));
  if (q.target.context_cuts_states && q.plan.context > 1 && q.plan.zero == ZeroStage::off)
    return fmt::format("{} cuts states over devices that share sequences, the plan has ZeRO 0",
                       q.target.program);
  return q.target.even_states ? even_states_reason(q) : std::nullopt;
}

Reason recompute_reason(const Question& q) {
  const std::set<Recompute> kinds = recomputes_of(q.plan.stages);
  for (const Recompute kind : kinds)
    if (!contains(q.target.recomputes, kind))
      return fmt::format("{} has no {} recompute", q.target.program, name_of(kind));
  if (kinds.size() == 1 || q.target.recompute_layers == RecomputeLayers::any) return std::nullopt;
  if (q.target.recompute_layers == RecomputeLayers::first) {
    if (kinds.contains(Recompute::selective))
      return fmt::format(
          "{} recomputes layers in full beside others that are not at all, the plan "
          "recomputes some selectively",
          q.target.program);
    const std::vector<FirstLayers> chunks = first_layers_by_chunk(q.problem.model, q.plan);
    if (are_alike(chunks)) return std::nullopt;
    std::vector<int> counts;
    for (const FirstLayers& chunk : chunks) counts.push_back(chunk.recomputed);
    return fmt::format("{} recomputes the first layers of every stage, equally many, the plan {}{}",
                       q.target.program, fmt::join(counts, ", "),
                       are_first(chunks) ? "" : " that are not first");
  }
  const bool by_stage = std::ranges::all_of(
      q.plan.stages, [](const Stage& stage) { return recomputes_of({stage}).size() == 1; });
  if (by_stage && q.target.recompute_by_stage) return std::nullopt;
  if (by_stage)
    return fmt::format("{} recomputes the same in all stages, the plan {} and {}", q.target.program,
                       name_of(*kinds.begin()), name_of(*kinds.rbegin()));
  return fmt::format("{} recomputes the same in all layers, the plan {} and {}", q.target.program,
                     name_of(*kinds.begin()), name_of(*kinds.rbegin()));
}

Reason offload_reason(const Question& q) {
  const double offload = q.plan.offload;
  if (offload == 0) return std::nullopt;
  if (!q.target.offload)
    return fmt::format("{} keeps no optimizer states in host memory", q.target.program);
  // Of one replica nothing is cut, whatever the stage is called.
  const bool is_cut = std::ranges::any_of(q.plan.stages, [&](const Stage& stage) {
    return std::ranges::any_of(stage.spans,
                               [&](const Span& span) { return span.data * q.plan.context > 1; });
  });
  if (is_cut && q.plan.zero < q.target.offload_from)
    return fmt::format("{} keeps optimizer states in host memory from ZeRO {} on, the plan has {}",
                       q.target.program, name_of(q.target.offload_from), name_of(q.plan.zero));
  if (offload == 1) return std::nullopt;
  if (!q.target.parts_from)
    return fmt::format("{} keeps all optimizer states in host memory or none, the plan has {}",
                       q.target.program, offload);
  if (is_cut && q.plan.zero < *q.target.parts_from)
    return fmt::format(
        "{} keeps a part of the optimizer states in host memory from ZeRO {} on, the plan has "
        "offload {} and ZeRO {}",
        q.target.program, name_of(*q.target.parts_from), offload, name_of(q.plan.zero));
  return std::nullopt;
}

}  // namespace plait::target_rules
