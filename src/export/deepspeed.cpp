// ds_config.json of DeepSpeed, and the command that reads it. The network is the user's program.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/printable.h"
#include "export/exporter.h"
#include "export/paper_plans.h"
#include "export/shell_words.h"
#include "io/format/json_writer.h"
#include "model/layers.h"
#include "plan/describe.h"
#include "plan/names.h"

namespace plait {
namespace {

std::string enabled() { return JsonObject().boolean("enabled", true).str(); }

// What DeepSpeed does where nothing is said goes for predictions of its own speed.
std::optional<bool> overlap_comm(const Problem& problem, const Plan& plan) {
  const bool beside = plan.zero != ZeroStage::off && plan.stage_count() == 1;
  if (!beside || (problem.job.overlap && !overlaps_gradients(problem, plan))) return std::nullopt;
  return problem.job.overlap;
}

std::string zero_json(const Problem& problem, const Plan& plan) {
  JsonObject zero;
  // Offloading is part of ZeRO, for one replica, too.
  const ZeroStage least = plan.offload > 0 ? ZeroStage::optimizer : ZeroStage::off;
  zero.number("stage", static_cast<int>(std::max(plan.zero, least)));
  if (const auto overlap = overlap_comm(problem, plan)) zero.boolean("overlap_comm", *overlap);
  if (plan.offload > 0) {
    JsonObject offload;
    offload.text("device", "cpu");
    if (plan.offload < 1) offload.number("ratio", plan.offload);
    zero.json("offload_optimizer", offload.str());
  }
  return zero.str();
}

// PipelineModule takes the same words as arguments.
std::string pipeline_json(const Plan& plan, bool recomputes) {
  return JsonObject()
      .number("stages", plan.stage_count())
      .text("partition", "type:transformer")
      .number("activation_checkpoint_interval", recomputes ? 1 : 0)
      .str();
}

const char* optimizer_type(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::adam:
      return "AdamW";
    case Optimizer::sgd:
    case Optimizer::momentum:
      return "SGD";
    case Optimizer::adam8bit:
      break;
  }
  return nullptr;
}

// nullptr = as DeepSpeed does, in the format of the weights.
const char* sum_type(const Job& job) {
  if (job.reduce_bytes == 4) return "fp32";
  if (job.reduce_bytes != 2) return nullptr;
  return job.precision == Precision::bf16 ? "bf16" : "fp16";
}

std::string ds_config(const Problem& problem, const Plan& plan) {
  const Span& span = plan.stages.front().spans.front();
  const bool recomputes = span.recompute == Recompute::full;
  JsonObject config;
  config.number("train_batch_size", problem.job.global_batch)
      .number("train_micro_batch_size_per_gpu", micro_batch_of(problem, plan))
      .number("gradient_accumulation_steps", plan.micro_batches);
  JsonObject parameters;
  parameters.number("lr", 0.0001);
  if (problem.job.optimizer == Optimizer::momentum) parameters.number("momentum", 0.9);
  config.json("optimizer", JsonObject()
                               .text("type", optimizer_type(problem.job.optimizer))
                               .json("params", parameters.str())
                               .str());
  if (problem.job.precision == Precision::fp16) config.json("fp16", enabled());
  if (problem.job.precision == Precision::bf16) config.json("bf16", enabled());
  config.json("zero_optimization", zero_json(problem, plan));
  if (const char* type = sum_type(problem.job)) config.text("communication_data_type", type);
  // DeepSpeed asks for this word where optimizer states are cut that are not Adam's.
  if (plan.zero != ZeroStage::off && problem.job.optimizer != Optimizer::adam)
    config.boolean("zero_allow_untested_optimizer", true);
  if (plan.stage_count() > 1) config.json("pipeline", pipeline_json(plan, recomputes));
  if (recomputes)
    config.json("activation_checkpointing",
                JsonObject()
                    .boolean("partition_activations", false)
                    .boolean("cpu_checkpointing", false)
                    .number("number_checkpoints", whole_layer_count(problem.model))
                    .str());
  return lay_out_json(config.str()) + "\n";
}

}  // namespace

void limit_deepspeed(const Problem&, Target& target) {
  target.expert = false;  // a matter of the network's own layers
  target.precisions = {Precision::fp32, Precision::fp16, Precision::bf16};
}

std::string deepspeed_network(const Problem& problem) {
  return optimizer_type(problem.job.optimizer) == nullptr
             ? "DeepSpeed has no Adam with moments of 8 bits"
             : "";
}

ExportedRun deepspeed_run(const Problem& problem, const Plan& plan) {
  ExportedRun out;
  out.files = {{"ds_config.json", ds_config(problem, plan)}};
  out.script.about = fmt::format("DeepSpeed trains {} by the plan {}",
                                 printable(problem.model.name), describe(plan));
  out.script.settings =
      "# The user's program, which builds the network and reads --deepspeed_config.\n"
      "PROGRAM=${PROGRAM:-train.py}\n";
  out.script.command = fmt::format(
      "{} \\\n  \"$PROGRAM\" --deepspeed --deepspeed_config \"$HERE/ds_config.json\" \"$@\"",
      kTorchrun);
  out.losses.push_back(
      fmt::format("the network and its sequences of {} tokens: PROGRAM builds them",
                  problem.model.sequence_length));
  if (plan.stage_count() > 1)
    out.losses.emplace_back(
        "the stages' bounds: PROGRAM gives PipelineModule the words of \"pipeline\" in the file, "
        "and "
        "DeepSpeed decides which stages have one layer more");
  if (plan.stages.front().spans.front().recompute == Recompute::full && plan.stage_count() == 1)
    out.losses.emplace_back(
        "which layers are recomputed: PROGRAM calls deepspeed.checkpointing.checkpoint for each");
  if (overlaps_gradients(problem, plan) && !overlap_comm(problem, plan))
    out.losses.emplace_back(
        "that gradients are summed beside the backward pass, as the prediction has it: DeepSpeed "
        "does so under ZeRO without a pipeline only");
  if (std::string adapters = adapters_to_add(problem.job); !adapters.empty())
    out.losses.push_back(std::move(adapters));
  return out;
}

}  // namespace plait
