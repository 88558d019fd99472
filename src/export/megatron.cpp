// A launch script of Megatron-LM. Every flag is one of those that the script's reader and
// megatron_flags_test.cpp know.
#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "base/printable.h"
#include "export/exporter.h"
#include "export/megatron_model.h"
#include "export/paper_plans.h"
#include "export/shell_words.h"
#include "io/model/megatron_layout.h"
#include "model/layers.h"
#include "plan/describe.h"
#include "plan/names.h"
#include "plan/target.h"

namespace plait {
namespace {

// Flags, or why there are none that say it.
struct Words {
  std::vector<FlagWords> flags;
  std::string refusal;
};

const Span& first_span(const Plan& plan) { return plan.stages.front().spans.front(); }

// What each chunk has, in pipeline order.
std::vector<LayoutStage> layout_of(const Problem& problem, const Plan& plan) {
  std::vector<LayoutStage> stages;
  for (const int layers : layers_by_chunk(problem.model, plan))
    stages.push_back({.layers = layers});
  stages.front().embedding = stages.back().loss = true;
  return stages;
}

// A layout says what the flags for even stages cannot.
Words pipeline_words(const Problem& problem, const Plan& plan) {
  const std::vector<LayoutStage> layout = layout_of(problem, plan);
  const int chunks = chunk_count(plan.stages.front());
  const bool even = std::ranges::all_of(
      layout, [&](const LayoutStage& stage) { return stage.layers == layout.front().layers; });
  Words out;
  out.flags.push_back({"--pipeline-model-parallel-size", {std::to_string(plan.stage_count())}});
  const bool empty = std::ranges::any_of(layout, [](const LayoutStage& stage) {
    return stage.layers == 0 && !stage.embedding && !stage.loss;
  });
  if (empty) out.refusal = "Megatron-LM has no stage without a layer, the embedding or the loss";
  if (even && chunks > 1)
    out.flags.push_back({"--num-virtual-stages-per-pipeline-rank", {std::to_string(chunks)}});
  if (!even) out.flags.push_back({"--pipeline-model-parallel-layout", {layout_text(layout)}});
  return out;
}

// How many layers at the beginning of each chunk are recomputed, -1 where that is not how it is.
int recomputed_at_front(const Problem& problem, const Plan& plan) {
  int most = 0;    // recomputed in one chunk
  int least = -1;  // of those that are not recomputed whole
  for (const Stage& stage : plan.stages)
    for (int chunk = 0; chunk < chunk_count(stage); ++chunk) {
      int layers = 0;
      bool ended = false;
      for (const Span& span : stage.spans) {
        if (span.chunk != chunk) continue;
        int own = 0;
        for (int u = span.units.begin; u < span.units.end; ++u)
          own += begins_layer(problem.model.unit(u)) ? 1 : 0;
        if (own == 0) continue;
        if (span.recompute == Recompute::none) {
          ended = true;
        } else if (ended || span.recompute != Recompute::full) {
          return -1;
        } else {
          layers += own;
        }
      }
      if (ended && least >= 0 && layers != least) return -1;
      if (ended) least = layers;
      most = std::max(most, layers);
    }
  return least < 0 || most <= least ? std::max(least, most) : -1;
}

Words recompute_words(const Problem& problem, const Plan& plan) {
  const Recompute kind = first_span(plan).recompute;
  bool same = true;
  for (const Stage& stage : plan.stages)
    for (const Span& span : stage.spans) same = same && span.recompute == kind;
  if (same && kind == Recompute::none) return {};
  if (same && kind == Recompute::selective)
    return {{{"--recompute-granularity", {"selective"}}, {"--recompute-modules", {"core_attn"}}},
            ""};
  if (same)
    return {{{"--recompute-granularity", {"full"}},
             {"--recompute-method", {"uniform"}},
             {"--recompute-num-layers", {"1"}}},
            ""};
  const int layers = recomputed_at_front(problem, plan);
  if (layers < 1)
    return {{},
            "Megatron-LM recomputes equally many first layers of every stage, the plan does not"};
  return {{{"--recompute-granularity", {"full"}},
           {"--recompute-method", {"block"}},
           {"--recompute-num-layers", {std::to_string(layers)}}},
          ""};
}

Words precision_words(const Job& job) {
  switch (job.precision) {
    case Precision::fp32:
      return {};
    case Precision::fp16:
      return {{{"--fp16"}}, ""};
    case Precision::bf16:
      return {{{"--bf16"}}, ""};
    case Precision::fp8:
      return {{{"--bf16"}, {"--fp8-format", {"hybrid"}}, {"--fp8-recipe", {"delayed"}}}, ""};
    case Precision::fp8_row:
      return {{{"--bf16"}, {"--fp8-format", {"hybrid"}}, {"--fp8-recipe", {"blockwise"}}}, ""};
    case Precision::fp4:
      return {{{"--bf16"}, {"--fp4-format", {"e2m1"}}}, ""};
    case Precision::tf32:
    case Precision::pure_bf16:
      break;
  }
  return {{}, fmt::format("Megatron-LM has no flag for {}", name_of(job.precision))};
}

// Groups of replicas that cut states, each by itself.
void add_instances(const Problem& problem, const Plan& plan, Words& out) {
  const int copies = first_span(plan).data * plan.context;
  const int instances = plan.zero == ZeroStage::off ? 1 : copies / sharding_group(problem, plan);
  if (instances == 1) return;
  out.flags.push_back({"--num-distributed-optimizer-instances", {std::to_string(instances)}});
  if (copies / plan.expert % instances != 0)
    out.refusal = fmt::format(
        "Megatron-LM cuts the states of experts by the same {} groups as the others, the plan has "
        "{} copies of an expert",
        instances, copies / plan.expert);
}

Words optimizer_words(const Problem& problem, const Plan& plan) {
  Words out;
  switch (problem.job.optimizer) {
    case Optimizer::adam:
      out.flags.push_back({"--optimizer", {"adam"}});
      break;
    case Optimizer::sgd:
      out.flags = {{"--optimizer", {"sgd"}}, {"--sgd-momentum", {"0"}}};
      break;
    case Optimizer::momentum:
      out.flags = {{"--optimizer", {"sgd"}}, {"--sgd-momentum", {"0.9"}}};
      break;
    case Optimizer::adam8bit:
      break;  // megatron_network() refuses it
  }
  // Offloading is part of the distributed optimizer, for one replica, too.
  const bool cut = plan.zero == ZeroStage::optimizer || plan.offload > 0;
  if (cut) out.flags.push_back({"--use-distributed-optimizer"});
  add_instances(problem, plan, out);
  if (overlaps_gradients(problem, plan)) {
    out.flags.push_back({"--overlap-grad-reduce"});
    if (cut) out.flags.push_back({"--overlap-param-gather"});
  }
  if (plan.offload == 0) return out;
  out.flags.push_back({"--use-precision-aware-optimizer"});
  out.flags.push_back({"--optimizer-cpu-offload"});
  out.flags.push_back({"--optimizer-offload-fraction", {fmt::format("{}", plan.offload)}});
  return out;
}

// Flash attention proper has no bias and values as wide as keys: cuDNN's kernels have both.
const char* attention_backend(const Problem& problem) {
  if (problem.job.attention == AttentionKernel::plain) return "unfused";
  const auto* config = std::get_if<TransformerConfig>(&problem.model.architecture);
  const bool other =
      config != nullptr && (config->mla.kv_rank > 0 || config->positions == Positions::relative);
  return other ? "fused" : "flash";
}

// Without these, gradients are kept in fp16 beside fp16, in 32 bits beside other formats.
Words gradient_words(const Job& job) {
  const double bytes = job.gradient_bytes > 0 ? job.gradient_bytes : job.framework.mixed.gradient;
  if (job.precision == Precision::fp32) return {};
  if (job.precision == Precision::fp16 && bytes == 4)
    return {{{"--accumulate-allreduce-grads-in-fp32"}}, ""};
  if (job.precision != Precision::fp16 && bytes == 2) return {{{"--grad-reduce-in-bf16"}}, ""};
  return {};
}

std::vector<FlagWords> loss_words(const Job& job) {
  if (job.logit_bytes != kFusedLogitBytes) return {};
  return {{"--cross-entropy-loss-fusion"}, {"--cross-entropy-fusion-impl", {"te"}}};
}

// Its user buffers need sequence parallelism (megatron/training/arguments.py), and links of a node.
bool has_user_buffers(const Problem& problem, const Plan& plan) {
  return overlaps_tensors(problem, plan) && plan.sequence_parallel &&
         tensor_groups_in_nodes(problem, plan);
}

const char* const kUserBuffers =
    "# Tensor parallelism beside products, as the prediction has it, by user buffers of "
    "Transformer "
    "Engine;\n"
    "# empty where the nodes have none.\n"
    "TP_OVERLAP=${TP_OVERLAP-yes}\n"
    "[[ -z $TP_OVERLAP ]] || PARALLEL_ARGS+=(--tp-comm-overlap)\n";

std::vector<FlagWords> degree_words(const Problem& problem, const Plan& plan) {
  const Span& span = first_span(plan);
  std::vector<FlagWords> out{{"--tensor-model-parallel-size", {std::to_string(span.tensor)}}};
  if (span.tensor > 1 && plan.sequence_parallel) out.push_back({"--sequence-parallel"});
  if (plan.context > 1) out.push_back({"--context-parallel-size", {std::to_string(plan.context)}});
  if (plan.expert > 1)
    out.push_back({"--expert-model-parallel-size", {std::to_string(plan.expert)}});
  out.push_back({"--micro-batch-size", {std::to_string(micro_batch_of(problem, plan))}});
  out.push_back({"--global-batch-size", {std::to_string(problem.job.global_batch)}});
  return out;
}

// What the user decides. Networks that are not GPT have no made-up data: Megatron-LM masks words,
// which a tokenizer must know.
std::string data_settings(MegatronFamily family) {
  if (family == MegatronFamily::gpt)
    return "# What the user decides: where Megatron-LM is, on what to train and for how long. "
           "Without\n"
           "# DATA_PATH the data are made up, and the tokenizer only counts, with a word of its "
           "own "
           "beside the\n"
           "# --vocab-size words.\n"
           "MEGATRON=${MEGATRON:-.}\n"
           "DATA_PATH=${DATA_PATH:-}\n"
           "TOKENIZER_TYPE=${TOKENIZER_TYPE:-NullTokenizer}\n"
           "TOKENIZER_MODEL=${TOKENIZER_MODEL:-}\n";
  return fmt::format(
      "# What the user decides: where Megatron-LM is, on what to train (there are no made-up data "
      "for\n"
      "# this network) and for how long.\n"
      "MEGATRON=${{MEGATRON:-.}}\n"
      "DATA_PATH=${{DATA_PATH:?the prefix of data that Megatron-LM has prepared}}\n"
      "VOCAB_FILE=${{VOCAB_FILE:?the words of the tokenizer}}\n"
      "TOKENIZER_TYPE=${{TOKENIZER_TYPE:-{}}}\n",
      family == MegatronFamily::t5 ? "BertWordPieceCase" : "BertWordPieceLowerCase");
}

std::string data_arguments(MegatronFamily family) {
  if (family == MegatronFamily::gpt)
    return "DATA_ARGS=(--tokenizer-type \"$TOKENIZER_TYPE\")\n"
           "[[ -z $TOKENIZER_MODEL ]] || DATA_ARGS+=(--tokenizer-model \"$TOKENIZER_MODEL\")\n"
           "if [[ -z $DATA_PATH ]]; then DATA_ARGS+=(--mock-data); else DATA_ARGS+=(--data-path "
           "\"$DATA_PATH\"); fi\n";
  return fmt::format(
      "DATA_ARGS=(--tokenizer-type \"$TOKENIZER_TYPE\" --vocab-file \"$VOCAB_FILE\"{} --data-path "
      "\"$DATA_PATH\")\n",
      family == MegatronFamily::t5 ? " --vocab-extra-ids 100" : "");
}

const char* const kTrainingSettings =
    "# The folder that checkpoints are written to every SAVE_INTERVAL steps, and read from where "
    "there\n"
    "# are some; without it there are none.\n"
    "CHECKPOINTS=${CHECKPOINTS:-}\n"
    "SAVE_INTERVAL=${SAVE_INTERVAL:-500}\n"
    "TRAIN_ITERS=${TRAIN_ITERS:-1000}\n"
    "LEARNING_RATE=${LEARNING_RATE:-0.0001}\n\n";

const char* const kCheckpointArguments =
    "if [[ -n $CHECKPOINTS ]]; then\n"
    "  DATA_ARGS+=(--save \"$CHECKPOINTS\" --load \"$CHECKPOINTS\" --save-interval "
    "\"$SAVE_INTERVAL\")\n"
    "fi\n";

std::string settings(const Problem& problem, const Plan& plan, const MegatronModel& model,
                     const std::vector<FlagWords>& parallel,
                     const std::vector<FlagWords>& training) {
  std::string out = data_settings(model.family) + kTrainingSettings;
  if (first_span(plan).tensor > 1 || plan.context > 1)
    out +=
        "# Megatron-LM refuses tensor and context parallelism without it.\n"
        "export CUDA_DEVICE_MAX_CONNECTIONS=1\n\n";
  return out + shell_array("MODEL_ARGS", model.flags) + shell_array("PARALLEL_ARGS", parallel) +
         shell_array("TRAINING_ARGS", training) +
         (has_user_buffers(problem, plan) ? kUserBuffers : "") + data_arguments(model.family) +
         kCheckpointArguments;
}

}  // namespace

// pretrain_bert.py and pretrain_t5.py do not cut sequences, and the latter refuses a pipeline; the
// distributed optimizer and the one in host memory are Adam (distrib_optimizer.py and
// optimizer_config.py in megatron/core/optimizer).
void limit_megatron(const Problem& problem, Target& target) {
  if (problem.job.optimizer != Optimizer::adam) {
    target.offload = false;
    target.zero = target.zero_in_pipeline = {ZeroStage::off};
    target.program = "Megatron-LM without Adam";
  }
  const auto* config = std::get_if<TransformerConfig>(&problem.model.architecture);
  if (config != nullptr && family_of(*config) != MegatronFamily::gpt) {
    const bool t5 = family_of(*config) == MegatronFamily::t5;
    target.context = false;
    if (t5) target.cuts = CutRule::none;
    target.program = t5 ? "Megatron-LM's T5" : "Megatron-LM's BERT";
  }
  // Transformer Engine hands keys and values round in a ring, which has no windows.
  if (config != nullptr && in_full(*config, 1).window.size > 0) {
    target.context = false;
    target.program = "Megatron-LM with a window of attention";
  }
  target.precisions = {Precision::fp32, Precision::fp16,    Precision::bf16,
                       Precision::fp8,  Precision::fp8_row, Precision::fp4};
}

std::string megatron_network(const Problem& problem) {
  if (problem.job.adapters)
    return "Megatron-LM's own training script adds no adapters; exports to fsdp and deepspeed "
           "leave the "
           "network to a program of yours";
  if (problem.job.optimizer == Optimizer::adam8bit)
    return "Megatron-LM has no Adam with moments of 8 bits";
  if (problem.job.pure_states)
    return "Megatron-LM keeps a copy of the weights in 32 bits, the job has none";
  if (problem.job.precision == Precision::fp32 && problem.job.attention == AttentionKernel::flash)
    return "Megatron-LM's flash attention computes in 16 bits, the job has it in fp32: plans made "
           "with --attention plain are written";
  return megatron_model(problem).refusal;
}

ExportedRun megatron_run(const Problem& problem, const Plan& plan) {
  ExportedRun out;
  const MegatronModel model = megatron_model(problem);
  out.losses = model.losses;
  out.refusal = model.refusal;
  std::vector<FlagWords> parallel = degree_words(problem, plan);
  std::vector<FlagWords> training;
  const auto add = [&](std::vector<FlagWords>& to, Words words) {
    if (out.refusal.empty()) out.refusal = words.refusal;
    to.insert(to.end(), words.flags.begin(), words.flags.end());
  };
  add(parallel, pipeline_words(problem, plan));
  add(parallel, recompute_words(problem, plan));
  add(training, optimizer_words(problem, plan));
  add(training, precision_words(problem.job));
  add(training, gradient_words(problem.job));
  add(training, {loss_words(problem.job), ""});
  if (!out.refusal.empty()) return out;
  training.push_back({"--attention-backend", {attention_backend(problem)}});
  out.script.about = fmt::format("Megatron-LM trains {} by the plan {}",
                                 printable(problem.model.name), describe(plan));
  out.script.settings = settings(problem, plan, model, parallel, training);
  if (overlaps_tensors(problem, plan) && !has_user_buffers(problem, plan))
    out.losses.emplace_back(
        "that tensor parallelism runs beside products, as the prediction has it: Megatron-LM does "
        "so with sequence parallelism inside nodes only");
  out.script.command = fmt::format(
      "{} \\\n  \"$MEGATRON/{}\" \"${{MODEL_ARGS[@]}}\" \"${{PARALLEL_ARGS[@]}}\" "
      "\"${{TRAINING_ARGS[@]}}\" \\\n  \"${{DATA_ARGS[@]}}\" --train-iters \"$TRAIN_ITERS\" --lr "
      "\"$LEARNING_RATE\" --log-interval 1 --eval-iters 0 \"$@\"",
      kTorchrun, model.entry);
  return out;
}

}  // namespace plait
