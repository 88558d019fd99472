// Configurations of Aceso's search, one file for each plan, as its runtime reads them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "export/exporter.h"
#include "io/format/json_writer.h"
#include "io/profile/aceso_models.h"

namespace plait {

std::string aceso_network(const Problem& problem) {
  return find_aceso_model(problem.model.name) != nullptr
             ? ""
             : "its model is not one of Aceso's; `model` aceso:gpt_1_3B and others are";
}

namespace {

// "" or what its configurations have no words for.
std::string beyond_aceso(const Problem& problem, const Plan& plan) {
  if (std::string foreign = aceso_network(problem); !foreign.empty()) return foreign;
  if (plan.schedule != Schedule::one_f_one_b && plan.stage_count() > 1)
    return "its schedule is not 1F1B";
  if (plan.zero != ZeroStage::off) return "it shards the optimizer";
  if (plan.context > 1 || plan.expert > 1) return "it has context or expert parallelism";
  if (plan.sequence_parallel) return "it has sequence parallelism";
  for (const Stage& stage : plan.stages) {
    if (!stage.shares.empty()) return "its replicas have unequal shares";
    for (const Span& span : stage.spans)
      if (span.recompute == Recompute::selective) return "it recomputes attention only";
  }
  return "";
}

using Value = int (*)(const Span&);

// One list a stage, with one number for each of its ops.
std::string by_op(const Plan& plan, Value value) {
  std::vector<std::string> stages;
  for (const Stage& stage : plan.stages) {
    std::vector<int> ops;
    for (const Span& span : stage.spans) ops.insert(ops.end(), span.units.size(), value(span));
    stages.push_back(fmt::format("[{}]", fmt::join(ops, ", ")));
  }
  return fmt::format("[{}]", fmt::join(stages, ", "));
}

template <typename Of>
std::string by_stage(const Plan& plan, Of of) {
  std::vector<std::string> items;
  for (const Stage& stage : plan.stages) items.push_back(fmt::format("{}", of(stage)));
  return fmt::format("[{}]", fmt::join(items, ", "));
}

// Whether its ops are not all cut alike, for which the runtime takes another path.
bool reshards(const Stage& stage) {
  return std::ranges::any_of(stage.spans, [&](const Span& span) {
    return span.tensor != stage.spans.front().tensor || span.data != stage.spans.front().data ||
           span.split != stage.spans.front().split;
  });
}

// Layers of a model whose number was given: 13 ops each, and three.
std::string layers_of(const Problem& problem, const AcesoModel& model) {
  const int ops = problem.model.unit_count();
  if (model.family == "gpt") return std::to_string((ops - 3) / 13);
  if (model.family == "t5") return std::to_string((ops - 5) / 34);
  return fmt::format("[{}]", fmt::join(model.layers, ", "));
}

}  // namespace

void narrow_to_aceso(Pins& pins) {
  if (!pins.schedule) pins.schedule = Schedule::one_f_one_b;
  if (!pins.zero) pins.zero = ZeroStage::off;
  if (!pins.context) pins.context = 1;
  if (!pins.sequence_parallel) pins.sequence_parallel = false;
}

std::string aceso_file_name(const Problem& problem, const RankedPlan& ranked) {
  return fmt::format("{}_{}stages_{:.2f}s.json", problem.model.name, ranked.plan.stage_count(),
                     ranked.cost.step.value);
}

Exported aceso_configuration(const Problem& problem, const RankedPlan& ranked, int) {
  const Plan& plan = ranked.plan;
  if (std::string fault = beyond_aceso(problem, plan); !fault.empty()) return {"", fault};
  const AcesoModel& model = *find_aceso_model(problem.model.name);
  const bool scaled = model.name == "scale-layer";
  const std::string size = model.name.substr(model.name.find('_') + 1);
  JsonObject object;
  object.text("model_name", scaled ? model.name : model.family).text("model_size", size);
  object.json("num_layers", layers_of(problem, model));
  for (const auto& [key, value] : model.fields) object.number(key, value);
  object.number("global_batch_size", problem.job.global_batch)
      .number("micro_batch_size", problem.job.global_batch / plan.micro_batches)
      .number("num_stages", plan.stage_count())
      .json("num_gpus", by_stage(plan, [](const Stage& s) { return s.devices.size(); }))
      .json("checkpoint_activations", by_stage(plan,
                                               [](const Stage& s) {
                                                 return std::ranges::any_of(
                                                     s.spans, [](const Span& span) {
                                                       return span.recompute != Recompute::none;
                                                     });
                                               }))
      .json("resharding_stages", by_stage(plan, reshards))
      .json("num_ops_in_each_stage", by_stage(plan,
                                              [](const Stage& s) {
                                                return s.spans.back().units.end -
                                                       s.spans.front().units.begin;
                                              }))
      .json("model_parallel_size_of_each_op", by_op(plan, [](const Span& s) { return s.tensor; }))
      .json("data_parallel_size_of_each_op", by_op(plan, [](const Span& s) { return s.data; }))
      .json("recompute_ops",
            by_op(plan, [](const Span& s) { return s.recompute == Recompute::none ? 0 : 1; }))
      .json("algo_of_each_op", by_op(plan, [](const Span& s) { return s.split; }));
  return {lay_out_json(object.str()), ""};
}

}  // namespace plait
