// The configuration file of Hugging Face accelerate for FSDP2, and the command that reads it. The
// network is the user's program.
#include <fmt/format.h>

#include "base/printable.h"
#include "export/exporter.h"
#include "export/paper_plans.h"
#include "plan/describe.h"
#include "plan/names.h"

namespace plait {
namespace {

const char* precision_word(Precision precision) {
  if (precision == Precision::fp16) return "fp16";
  return precision == Precision::bf16 ? "bf16" : "no";
}

// Replicas that keep everything are DistributedDataParallel's, the others FSDP2's.
std::string accelerate_yaml(const Problem& problem, const Plan& plan,
                            const std::vector<LaunchNode>& nodes) {
  const Span& span = plan.stages.front().spans.front();
  const bool cut = plan.zero != ZeroStage::off;
  const int world = span.data;
  const int group = sharding_group(problem, plan);
  std::string out = fmt::format(
      "compute_environment: LOCAL_MACHINE\n"
      "distributed_type: {}\n"
      "mixed_precision: '{}'\n"
      "num_machines: {}\n"
      "num_processes: {}\n"
      "rdzv_backend: static\n"
      "same_network: true\n"
      "main_training_function: main\n"
      "use_cpu: false\n"
      "debug: false\n",
      cut          ? "FSDP"
      : world == 1 ? "'NO'"
                   : "MULTI_GPU",
      precision_word(problem.job.precision), nodes.size(), world);
  if (!cut) return out;
  return out + fmt::format(
                   "fsdp_config:\n"
                   "  fsdp_version: 2\n"
                   "  fsdp_reshard_after_forward: {}\n"
                   "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
                   "  fsdp_activation_checkpointing: {}\n"
                   "  fsdp_offload_params: false\n"
                   "  fsdp_cpu_ram_efficient_loading: false\n"
                   "  fsdp_state_dict_type: SHARDED_STATE_DICT\n"
                   "parallelism_config:\n"
                   "  parallelism_config_dp_replicate_size: {}\n"
                   "  parallelism_config_dp_shard_size: {}\n"
                   "  parallelism_config_tp_size: {}\n"
                   "  parallelism_config_cp_size: {}\n",
                   plan.zero == ZeroStage::parameters, span.recompute == Recompute::full,
                   span.data / group, group, span.tensor, plan.context);
}

}  // namespace

void limit_fsdp(const Problem&, Target& target) {
  target.recomputes = {Recompute::none, Recompute::full};
  target.precisions = {Precision::fp32, Precision::fp16, Precision::bf16};
  target.equal_nodes = true;  // as accelerate starts them
  target.program = "accelerate with FSDP2";
}

ExportedRun fsdp_run(const Problem& problem, const Plan& plan) {
  ExportedRun out;
  const std::vector<LaunchNode> nodes = launch_nodes(problem, plan);
  const Span& span = plan.stages.front().spans.front();
  out.files = {{"accelerate.yaml", accelerate_yaml(problem, plan, nodes)}};
  out.script.about = fmt::format("PyTorch FSDP2 trains {} by the plan {}",
                                 printable(problem.model.name), describe(plan));
  out.script.settings = fmt::format(
      "# The user's program, which builds the network and reads the batch sizes.\n"
      "PROGRAM=${{PROGRAM:-train.py}}\n"
      "export MICRO_BATCH_SIZE={} GRADIENT_ACCUMULATION_STEPS={} GLOBAL_BATCH_SIZE={}\n"
      "export ACCELERATE_GRADIENT_ACCUMULATION_STEPS={}\n",
      micro_batch_of(problem, plan), plan.micro_batches, problem.job.global_batch,
      plan.micro_batches);
  out.script.command =
      "accelerate launch --config_file \"$HERE/accelerate.yaml\" --num_machines \"$NNODES\" \\\n"
      "  --num_processes \"$WORLD_SIZE\" --machine_rank \"$NODE_RANK\" --main_process_ip "
      "\"$MASTER_ADDR\" \\\n  --main_process_port \"$MASTER_PORT\" \"$PROGRAM\" \"$@\"";
  out.losses = {fmt::format("the network and its sequences of {} tokens: PROGRAM builds them",
                            problem.model.sequence_length),
                "the batch sizes: run.sh exports them for PROGRAM",
                "which layers are wrapped: accelerate asks the network (_no_split_modules)"};
  // Under FSDP accelerate does it.
  if (plan.zero == ZeroStage::off && span.recompute == Recompute::full)
    out.losses.emplace_back(
        "the recompute of every layer: PROGRAM asks for it, with Hugging Face's trainer by "
        "gradient_checkpointing=True");
  if (problem.job.optimizer != Optimizer::adam)
    out.losses.push_back(
        fmt::format("the optimizer: PROGRAM makes it, {}", name_of(problem.job.optimizer)));
  if (std::string adapters = adapters_to_add(problem.job); !adapters.empty())
    out.losses.push_back(std::move(adapters));
  return out;
}

}  // namespace plait
