#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "cli/flags/plan_arguments.h"
#include "plan/names.h"

namespace plait {
namespace {

// A switch that stands for a value of a choice: --bf16 for --precision bf16.
template <typename Into, typename Value>
Setter meaning(Into& into, Value value) {
  return [&into, value](const std::string&, const std::string&) { into = value; };
}

Setter into_sequence_parallel(std::optional<bool>& into, bool value) {
  return [&into, value](const std::string& flag, const std::string&) {
    if (into && *into != value)
      throw InputError(flag, fmt::format("contradicts {}", value ? "--no-sp" : "--sp"));
    into = value;
  };
}

}  // namespace

FlagGroup pin_flags(PlanRequest& a) {
  Pins& pins = a.search.pins;
  const auto degree = [](std::string name, std::string help, std::optional<int>& into,
                         std::vector<std::string> hidden) {
    return Flag{.name = std::move(name),
                .value = "N",
                .help = std::move(help),
                .set = into_integer(into, 1, kMaxDegree),
                .hidden = std::move(hidden)};
  };
  return {
      "What the plan must have; all of it is free by default (Megatron-LM's names work, too)",
      {degree("--tp", "tensor-parallel degree of every stage", pins.tensor,
              {"--tensor-model-parallel-size", "--tensor-parallel-size", "--tensor-parallel"}),
       degree(
           "--pp", "pipeline stages", pins.pipeline,
           {"--pipeline-model-parallel-size", "--pipeline-parallel-size", "--pipeline-parallel"}),
       degree("--dp", "data-parallel degree of every stage", pins.data,
              {"--data-parallel-size", "--data-parallel"}),
       degree("--cp", "GPUs that share one sequence", pins.context,
              {"--context-parallel-size", "--context-parallel"}),
       degree("--ep", "GPUs over which experts are spread", pins.expert,
              {"--expert-model-parallel-size", "--expert-parallel-size", "--expert-parallel"}),
       degree("--micro-batch", "sequences of one micro-batch on one replica", pins.micro_batch,
              {"--micro-batch-size", "--mbs", "--per-device-train-batch-size",
               "--per-device-batch-size", "--per-device-batch", "--per-gpu-batch-size",
               "--train-micro-batch-size-per-gpu"}),
       degree("--micro-batches", "micro-batches in a step (gradient accumulation)",
              pins.micro_batches,
              {"--num-micro-batches", "--gradient-accumulation-steps", "--gradient-accumulation",
               "--grad-accum"}),
       {.name = "--recompute",
        .value = "R",
        .help = fmt::format("{}: what backward computes again to save memory",
                            fmt::join(recompute_names(), ", ")),
        .set = into_choice(pins.recompute, recompute_named, recompute_names()),
        .hidden = {"--recompute-granularity"},
        .choices = as_strings(recompute_names())},
       degree("--recompute-layers",
              "layers of every stage that are recomputed in full, the first ones; no others",
              pins.recompute_layers, {"--recompute-num-layers"}),
       {.name = "--zero",
        .value = "Z",
        .help = "ZeRO stage: 0, or shard 1 optimizer state, 2 gradients too, 3 parameters too",
        .set = into_choice(pins.zero, zero_stage_named, zero_stage_names()),
        .hidden = {"--zero-stage"},
        .choices = as_strings(zero_stage_names())},
       {.name = "--schedule",
        .value = "S",
        .help = fmt::format("{}", fmt::join(schedule_names(), ", ")),
        .set = into_choice(pins.schedule, schedule_named, schedule_names()),
        .choices = as_strings(schedule_names())},
       degree("--chunks", "chunks of each stage, where the schedule is interleaved", pins.chunks,
              {"--vpp", "--virtual-pipeline-model-parallel-size"}),
       {.name = "--sp",
        .value = "",
        .help = "sequence parallel: norms are cut over the tensor group, too",
        .set = into_sequence_parallel(pins.sequence_parallel, true),
        .hidden = {"--sequence-parallel"}},
       {.name = "--no-sp",
        .value = "",
        .help = "no sequence parallel",
        .set = into_sequence_parallel(pins.sequence_parallel, false),
        .hidden = {"--no-sequence-parallel"}},
       {.name = "--stages",
        .value = "13,12,..",
        .help = "units of each stage; or layers, when embedding and head are not counted; or even "
                "(usual with --pp), or any",
        .set =
            [&a, list = into_list(pins.stages, 1, kMaxDegree)](const std::string& flag,
                                                               const std::string& text) {
              if (text == "even" || text == "any")
                a.even_stages = text == "even";
              else
                list(flag, text);
            }},
       {.name = "--free-layout",
        .value = "",
        .help = "leave open what a launch script given to --model says about the layout",
        .set = into_switch(a.source.free_layout)},
       offload_flag(pins.offload)}};
}

FlagGroup borrowed_flags(PlanRequest& a) {
  Pins& pins = a.search.pins;
  return {"",
          {{.name = "--bf16",
            .value = "",
            .help = "",
            .set = meaning(a.source.precision, Precision::bf16)},
           {.name = "--fp16",
            .value = "",
            .help = "",
            .set = meaning(a.source.precision, Precision::fp16)},
           {.name = "--use-flash-attn",
            .value = "",
            .help = "",
            .set = meaning(a.source.attention, AttentionKernel::flash)},
           {.name = "--use-distributed-optimizer",
            .value = "",
            .help = "",
            .set = meaning(pins.zero, ZeroStage::optimizer)},
           {.name = "--recompute-activations",
            .value = "",
            .help = "",
            .set = meaning(pins.recompute, Recompute::selective)},
           {.name = "--gradient-checkpointing",
            .value = "",
            .help = "",
            .set = meaning(pins.recompute, Recompute::full),
            .hidden = {"--activation-checkpointing"}},
           {.name = "--optimizer-cpu-offload",
            .value = "",
            .help = "",
            .set = meaning(pins.offload, 1.0),
            .hidden = {"--cpu-offload"}},
           {.name = "--num-layers-per-virtual-pipeline-stage",
            .value = "N",
            .help = "",
            .set = into_integer(a.layers_per_chunk, 1, kMaxDegree)}}};
}

}  // namespace plait
