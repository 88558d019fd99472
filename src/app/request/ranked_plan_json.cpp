#include "app/request/ranked_plan_json.h"

#include <fmt/format.h>

#include "app/request/prediction_error.h"
#include "cost/engine.h"
#include "io/format/json_writer.h"
#include "io/plan/plan_json.h"
#include "plan/describe.h"
#include "report/plan_tables.h"
#include "report/summary.h"

namespace plait {
namespace {

double gibibytes(Bytes size) { return size.value / 0x1p30; }

std::string spans_json(const Stage& stage) {
  std::vector<std::string> spans;
  for (const Span& span : stage.spans)
    spans.push_back(JsonObject()
                        .json("units", fmt::format("[{}, {}]", span.units.begin, span.units.end))
                        .number("tensor", span.tensor)
                        .number("data", span.data)
                        .str());
  return json_list(spans);
}

std::string time_json(const StageCost& cost) {
  return JsonObject()
      .number("forward_s", cost.forward.value)
      .number("backward_s", cost.backward.value)
      .number("recompute_s", cost.recompute.value)
      .number("weight_gradient_s", cost.weight_gradient.value)
      .number("forward_comm_s", cost.forward_comm.value)
      .number("backward_comm_s", cost.backward_comm.value)
      .number("send_s", cost.send.value)
      .number("gradient_sync_s", cost.gradient_sync.value)
      .number("tied_sync_s", cost.tied_sync.value)
      .number("optimizer_s", cost.optimizer.value)
      .str();
}

std::string memory_json(const StageCost& cost) {
  return JsonObject()
      .number("weights_GiB", gibibytes(cost.weights))
      .number("gradients_GiB", gibibytes(cost.gradients))
      .number("optimizer_state_GiB", gibibytes(cost.optimizer_state))
      .number("activations_GiB", gibibytes(cost.activations))
      .number("workspace_GiB", gibibytes(cost.workspace))
      .number("reserve_GiB", gibibytes(cost.reserve))
      .number("capacity_GiB", gibibytes(cost.capacity))
      .str();
}

}  // namespace

std::string training_json(const Training& training) {
  return JsonObject()
      .number("steps", training.steps)
      .number("goodput", training.goodput)
      .number("time_s", training.time.value)
      .json("usd", training.price > Usd(0) ? json_number(training.price.value) : "null")
      .str();
}

std::string sentences_json(const std::vector<std::string>& sentences) {
  std::vector<std::string> items;
  for (const std::string& sentence : sentences) items.push_back(json_text(sentence));
  return json_list(items);
}

std::string number_or_null(const std::optional<double>& value) {
  return value ? json_number(*value) : "null";
}

std::string stage_json(const Problem& problem, const Plan& plan, int index, const StageCost& cost) {
  const Stage& stage = plan.stages[index];
  return JsonObject()
      .text("devices", types_of(problem.cluster, stage.devices))
      .text("device_ids", device_ranges(stage.devices))
      .text("what", units_in_words(problem.model, stage))
      .json("spans", spans_json(stage))
      .number("forward_s", cost.forward_total().value)
      .number("backward_s", cost.backward_total().value)
      .number("peak_memory_GiB", gibibytes(cost.peak_memory()))
      .number("spare_memory_GiB", gibibytes(cost.spare()))
      .json("time", time_json(cost))
      .json("memory", memory_json(cost))
      .text("source", name_of(cost.source))
      .text("memory_source", name_of(cost.memory_source))
      .str();
}

std::string ranked_plan_json(const Problem& problem, const RankedPlan& ranked,
                             const std::optional<TrainingLength>& length) {
  return ranked_plan_object(problem, ranked, length).str();
}

JsonObject ranked_plan_object(const Problem& problem, const RankedPlan& ranked,
                              const std::optional<TrainingLength>& length) {
  const auto& [plan, cost] = ranked;
  std::vector<std::string> stages;
  for (int s = 0; s < plan.stage_count(); ++s)
    stages.push_back(stage_json(problem, plan, s, cost.stages[s]));
  const Usd price = price_of_step(problem, plan, cost.step);
  JsonObject object;
  object.text("describe", describe(plan))
      .number("step_s", cost.step.value)
      .number("tokens_per_s", tokens_per_second(problem, cost.step))
      .number("mfu", model_flops_utilisation(problem, plan, cost.step))
      .number("mfu_full_attention", full_attention_utilisation(problem, plan, cost.step))
      .number("peak_memory_GiB", gibibytes(cost.peak_memory()))
      .json("error", prediction_error_json(problem, ranked));
  if (price > Usd(0))
    object.number("usd_per_step", price.value);
  else
    object.json("usd_per_step", "null");
  if (length)
    object.json("training",
                training_json(training_of(*length, cost.step, price_of(problem.cluster, plan))));
  return object.number("pipeline_s", cost.pipeline.value)
      .number("tail_s", cost.after_pipeline.value)
      .number("bubble_s", cost.bubble.value)
      .json("plan", plan_to_json(plan))
      .json("stages", json_list(stages));
}

}  // namespace plait
