// A configuration function of TorchTitan 0.3 that builds the network from its Llama 3 parts.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <variant>

#include "base/printable.h"
#include "export/exporter.h"
#include "export/megatron_model.h"
#include "export/paper_plans.h"
#include "io/format/json_writer.h"
#include "plan/describe.h"
#include "plan/names.h"
#include "plan/target.h"

namespace plait {

extern const char* const kTorchtitanModule;  // torchtitan_module.cpp

namespace {

constexpr int kLlamaWords = 128'256;  // of Llama 3's tokenizer

// What TorchTitan's Llama 3 is, with the sizes of the network at hand.
TransformerConfig llama_like(const TransformerConfig& c) {
  TransformerConfig like;
  like.sequence = c.sequence;
  like.vocabulary = c.vocabulary;
  like.layers = c.layers;
  like.hidden = c.hidden;
  like.heads = c.heads;
  like.kv_heads = c.kv_heads;
  like.head_dim = c.head_dim;
  like.ffn = c.ffn;
  like.tied = c.tied;
  like.norm_epsilon = c.norm_epsilon;
  like.rotary.base = c.rotary.base;
  like.rotary.scaling = c.rotary.scaling;
  like.rotary.factor = c.rotary.factor;
  like.rotary.low_factor = c.rotary.low_factor;
  like.rotary.high_factor = c.rotary.high_factor;
  like.rotary.trained_positions = c.rotary.trained_positions;
  like.gated = true;
  like.activation = Function::silu;
  like.qkv_bias = like.projection_bias = like.mlp_bias = like.dropout = false;
  like.norm = like.qk_norm_kind = NormKind::rms;
  like.positions = Positions::rotary;
  return like;
}

std::string refusal_of(const Problem& problem) {
  const auto* config = std::get_if<TransformerConfig>(&problem.model.architecture);
  if (config == nullptr)
    return std::holds_alternative<NotRecorded>(problem.model.architecture)
               ? "the plan file does not say what the network is: it is older than that; make the "
                 "plan again"
               : "the network is not one that TorchTitan's Llama 3 can be";
  if (!config->not_modelled.empty())
    return fmt::format("the network has {}, which plait has no words for",
                       printable(config->not_modelled.front()));
  TransformerConfig c = in_full(*config, 1);
  // Which features turn together is a matter of how saved weights are read.
  c.rotary.neighbours = false;
  const std::string field = difference(c, in_full(llama_like(c), 1));
  if (!field.empty())
    return fmt::format("this network is not TorchTitan's Llama 3: its {} differs",
                       field_in_words(field));
  if (c.rotary.scaling == RotaryScaling::linear)
    return "TorchTitan has no rotary positions that are scaled linearly";
  if (std::ranges::any_of(problem.model.kinds, &LayerKind::frozen))
    return "TorchTitan freezes no layers";
  return "";
}

// PyTorch's Schedule1F1B refuses fewer micro-batches than stages.
bool lacks_micro_batches(const Plan& plan) {
  return plan.stage_count() > 1 && plan.schedule == Schedule::one_f_one_b &&
         plan.micro_batches < plan.stage_count();
}

const char* schedule_name(const Plan& plan) {
  if (lacks_micro_batches(plan)) return "GPipe";
  switch (plan.schedule) {
    case Schedule::gpipe:
      return "GPipe";
    case Schedule::interleaved:
      return "Interleaved1F1B";
    case Schedule::zb_v:
      return "ZBVZeroBubble";
    default:
      return "1F1B";
  }
}

// The modules of every chunk, in the order of the pipeline.
std::string model_parts(const Problem& problem, const Plan& plan) {
  std::vector<std::string> parts;
  const std::vector<int> layers = layers_by_chunk(problem.model, plan);
  int next = 0;
  for (std::size_t chunk = 0; chunk < layers.size(); ++chunk) {
    std::vector<std::string> names;
    if (chunk == 0) names.emplace_back("tok_embeddings");
    for (int i = 0; i < layers[chunk]; ++i) names.push_back(fmt::format("layers.{}", next++));
    if (chunk + 1 == layers.size()) names.insert(names.end(), {"norm", "lm_head"});
    for (std::string& name : names) name = json_text(name);
    parts.push_back(fmt::format("        [{}],\n", fmt::join(names, ", ")));
  }
  return fmt::format("[\n{}    ]", fmt::join(parts, ""));
}

std::string flavour(const TransformerConfig& c) {
  const bool scaled = c.rotary.scaling == RotaryScaling::llama3;
  std::string out = fmt::format(
      "NETWORK = dict(\n    dim={}, n_layers={}, n_heads={}, n_kv_heads={}, head_dim={}, "
      "hidden_dim={},\n    vocab_size={}, tied={}, norm_eps={},\n",
      c.hidden, c.layers, c.heads, c.kv_heads, c.head_dim, c.ffn, c.vocabulary,
      c.tied ? "True" : "False", c.norm_epsilon);
  out += fmt::format("    rope=dict(theta={}, scaling=\"{}\"", c.rotary.base,
                     scaled ? "llama" : "none");
  if (scaled)
    out += fmt::format(
        ",\n              scaling_factor={}, low_freq_factor={}, high_freq_factor={},\n"
        "              original_max_position_embeddings={}",
        c.rotary.factor, c.rotary.low_factor, c.rotary.high_factor, c.rotary.trained_positions);
  return out + "),\n)\n";
}

std::string parallelism(const Problem& problem, const Plan& plan) {
  const Span& span = plan.stages.front().spans.front();
  // Its shard degree counts replicas; devices that share sequences cut states beside it.
  const int shard = std::max(1, sharding_group(problem, plan) / plan.context);
  const bool pipeline = plan.stage_count() > 1;
  std::string out = fmt::format(
      "PARALLELISM = dict(\n    data_parallel_replicate_degree={}, data_parallel_shard_degree={},\n"
      "    fsdp_reshard_after_forward=\"{}\",\n    tensor_parallel_degree={}, "
      "enable_sequence_parallel={},\n    context_parallel_degree={}, expert_parallel_degree={},\n"
      "    pipeline_parallel_degree={},\n",
      span.data / shard, shard, plan.zero == ZeroStage::parameters ? "always" : "never",
      span.tensor, plan.sequence_parallel ? "True" : "False", plan.context, plan.expert,
      plan.stage_count());
  if (pipeline)
    out += fmt::format(
        "    pipeline_parallel_schedule=\"{}\",\n    pipeline_parallel_microbatch_size={},\n"
        "    module_fqns_per_model_part={},\n",
        schedule_name(plan), micro_batch_of(problem, plan), model_parts(problem, plan));
  return out + ")\n";
}

// Whether its trainer captures CUDA graphs under the plan.
bool can_capture(const Plan& plan) { return plan.stage_count() == 1 && plan.expert == 1; }

// A pipeline cuts the local batch into its micro-batches; without one, gradients are accumulated.
std::string training(const Problem& problem, const Plan& plan) {
  const int micro_batch = micro_batch_of(problem, plan);
  const bool pipeline = plan.stage_count() > 1;
  const bool graphs = problem.job.graph_capture && can_capture(plan);
  return fmt::format(
      "TRAINING = dict(\n    local_batch_size={}, global_batch_size={}, seq_len={},\n"
      "    dtype=\"{}\", mixed_precision_param=\"{}\", disable_cuda_graphs={},\n)\n",
      pipeline ? micro_batch * plan.micro_batches : micro_batch, problem.job.global_batch,
      problem.model.sequence_length, problem.job.pure_states ? "bfloat16" : "float32",
      problem.job.precision == Precision::fp32 || problem.job.precision == Precision::tf32
          ? "float32"
          : "bfloat16",
      graphs ? "False" : "True");
}

bool is_compiled(const Problem& problem) {
  const FrameworkTraits& traits = problem.job.framework.traits;
  return traits.kernels == KernelStyle::fused && !traits.keeps_between_kernels;
}

bool is_asynchronous(const Problem& problem, const Plan& plan) {
  return overlaps_tensors(problem, plan) && is_compiled(problem) &&
         tensor_groups_in_nodes(problem, plan);
}

std::string function_file(const Problem& problem, const Plan& plan) {
  const TransformerConfig c = in_full(std::get<TransformerConfig>(problem.model.architecture), 1);
  std::string out = "# TorchTitan trains " + printable(problem.model.name) + " by the plan\n#   " +
                    describe(plan) + "\n";
  out += flavour(c) + parallelism(problem, plan) + training(problem, plan);
  out += fmt::format("RECOMPUTE = \"{}\"  # none, selective or full\n",
                     name_of(plan.stages.front().spans.front().recompute));
  out += fmt::format("COMPILE = {}\n", is_compiled(problem) ? "True" : "False");
  out += fmt::format("ASYNC_TENSOR_PARALLEL = {}  # beside products, over links of a node\n",
                     is_asynchronous(problem, plan) ? "True" : "False");
  out += fmt::format("FLOAT8 = {}  # products but the last one's, scaled by row; needs torchao\n",
                     problem.job.precision == Precision::fp8_row ? "True" : "False");
  out += fmt::format("TF32 = {}\n", problem.job.precision == Precision::tf32 ? "True" : "False");
  return out + kTorchtitanModule;
}

}  // namespace

void limit_torchtitan(const Problem& problem, Target& target) {
  const auto* config = std::get_if<TransformerConfig>(&problem.model.architecture);
  if (config != nullptr && config->tied) {  // as its own check demands
    target.cuts = CutRule::none;
    target.program = "TorchTitan with tied embeddings";
  }
  target.expert = false;  // the networks with experts are others than Llama 3
  target.precisions = {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp8_row};
}

std::string torchtitan_network(const Problem& problem) {
  std::string refusal = refusal_of(problem);
  if (!refusal.empty()) return refusal;
  if (problem.job.optimizer != Optimizer::adam)
    return fmt::format("TorchTitan's configuration is written with AdamW, the job has {}",
                       name_of(problem.job.optimizer));
  if (problem.job.adapters)
    return "TorchTitan's configuration is written for a network without adapters; exports to fsdp "
           "and "
           "deepspeed leave the network to a program of yours";
  if (problem.job.attention != AttentionKernel::flash)
    return "TorchTitan has no attention that keeps its scores, the job has plain attention";
  return "";
}

ExportedRun torchtitan_run(const Problem& problem, const Plan& plan) {
  ExportedRun out;
  if (const int group = sharding_group(problem, plan); group > 1 && group % plan.context != 0) {
    out.refusal = fmt::format(
        "TorchTitan cuts states over all devices that share sequences, the plan over groups of {} "
        "where {} share one",
        group, plan.context);
    return out;
  }
  out.files = {{"plait_plan.py", function_file(problem, plan)}};
  out.script.about = fmt::format("TorchTitan trains {} by the plan {}",
                                 printable(problem.model.name), describe(plan));
  out.script.settings =
      "# What the user decides: the folder of the tokenizer, the data set, how many steps, and the "
      "folder of\n"
      "# checkpoints; without it there are none. Further words for TorchTitan come after the "
      "script's name.\n"
      "HF_ASSETS=${HF_ASSETS:-./assets/hf/Llama-3.1-8B}\n"
      "DATASET=${DATASET:-c4}\n"
      "STEPS=${STEPS:-1000}\n"
      "CHECKPOINTS=${CHECKPOINTS:-}\n"
      "export PYTHONPATH=\"$HERE${PYTHONPATH:+:$PYTHONPATH}\"\n\n"
      "DATA_ARGS=(--hf_assets_path \"$HF_ASSETS\" --dataloader.dataset \"$DATASET\" "
      "--training.steps \"$STEPS\")\n"
      "[[ -z $CHECKPOINTS ]] || DATA_ARGS+=(--checkpoint.enable --checkpoint.folder "
      "\"$CHECKPOINTS\")\n";
  out.script.command = fmt::format(
      "{} \\\n  -m torchtitan.train --module plait_plan --config plait_plan "
      "\"${{DATA_ARGS[@]}}\" \"$@\"",
      kTorchrun);
  out.losses = {
      "the tokenizer and the data, which are those of TorchTitan's llama3_8b unless HF_ASSETS and "
      "DATASET say otherwise"};
  if (overlaps_tensors(problem, plan) && !is_asynchronous(problem, plan))
    out.losses.emplace_back(
        "that tensor parallelism runs beside products, as the prediction has it: TorchTitan does "
        "so where it compiles, inside nodes only");
  if (lacks_micro_batches(plan))
    out.losses.emplace_back(
        "1F1B, which PyTorch refuses with fewer micro-batches than stages: GPipe takes as long, "
        "and "
        "every stage keeps all micro-batches of a step");
  if (problem.job.graph_capture && !can_capture(plan))
    out.losses.emplace_back(
        "that steps are captured as CUDA graphs, which TorchTitan does not "
        "with a pipeline");
  const int words = std::get<TransformerConfig>(problem.model.architecture).vocabulary;
  if (words < kLlamaWords)
    out.losses[0] += fmt::format(
        "; the network has {} words: HF_ASSETS must be a tokenizer with no more", words);
  if (std::string loss = padding_loss(problem, plan, "TorchTitan"); !loss.empty())
    out.losses.push_back(std::move(loss));
  return out;
}

}  // namespace plait
