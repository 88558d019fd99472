#include <fmt/format.h>

#include <algorithm>

#include "export/exporter.h"
#include "export/paper_plans.h"

namespace plait {

// One function for each exporter, in the file of its name.
Exported metis_row(const Problem& problem, const RankedPlan& ranked, int rank);
Exported amp_row(const Problem& problem, const RankedPlan& ranked, int rank);
Exported fasop_row(const Problem& problem, const RankedPlan& ranked, int rank);
Exported aceso_configuration(const Problem& problem, const RankedPlan& ranked, int rank);
std::string aceso_file_name(const Problem& problem, const RankedPlan& ranked);
void narrow_to_aceso(Pins& pins);
ExportedRun megatron_run(const Problem& problem, const Plan& plan);
ExportedRun deepspeed_run(const Problem& problem, const Plan& plan);
ExportedRun torchtitan_run(const Problem& problem, const Plan& plan);
ExportedRun fsdp_run(const Problem& problem, const Plan& plan);
ExportedRun jax_run(const Problem& problem, const Plan& plan);
std::string megatron_network(const Problem& problem);
std::string deepspeed_network(const Problem& problem);
std::string torchtitan_network(const Problem& problem);
std::string jax_network(const Problem& problem);
std::string aceso_network(const Problem& problem);
void limit_megatron(const Problem& problem, Target& target);
void limit_deepspeed(const Problem& problem, Target& target);
void limit_torchtitan(const Problem& problem, Target& target);
void limit_fsdp(const Problem& problem, Target& target);
void limit_jax(const Problem& problem, Target& target);
void limit_amp(const Problem& problem, Target& target);
void limit_fasop(const Problem& problem, Target& target);

std::span<const Exporter> exporters() {
  static constexpr Exporter kTable[] = {
      {.name = "megatron",
       .summary = "a launch script with Megatron-LM's flags",
       .heading = "",
       .run = megatron_run,
       .network = megatron_network,
       .limit = limit_megatron,
       .says = {.overlap = true, .zero_group = true, .gradient_bytes = true, .logit_bytes = true}},
      {.name = "deepspeed",
       .summary = "ds_config.json and the command that reads it",
       .heading = "",
       .run = deepspeed_run,
       .network = deepspeed_network,
       .limit = limit_deepspeed,
       .says = {.overlap = true, .reduce_bytes = true}},
      {.name = "torchtitan",
       .summary = "a configuration function of TorchTitan",
       .heading = "",
       .run = torchtitan_run,
       .network = torchtitan_network,
       .limit = limit_torchtitan,
       .says = {.graph_capture = true, .zero_group = true, .pure_states = true}},
      {.name = "fsdp",
       .summary = "a configuration file of accelerate, for PyTorch's FSDP2",
       .heading = "",
       .run = fsdp_run,
       .limit = limit_fsdp,
       .says = {.zero_group = true}},
      {.name = "jax",
       .summary = "a Python module with mesh and PartitionSpecs",
       .heading = "",
       .run = jax_run,
       .network = jax_network,
       .limit = limit_jax},
      {.name = "metis",
       .summary = "rows of Metis' ranking, for its program to cost",
       .heading = "rank, cost, node_sequence, device_groups, strategies(dp_deg, tp_deg), "
                  "batches(number of batch), layer_partition\n",
       .write = metis_row,
       .narrow = narrow_to_papers},
      {.name = "amp",
       .summary = "rows of AMP's trials, with the settings that its program logs and tries",
       .heading = "tp,dp,pp,micro_batch,num_micro_batches,global_batch,partition_bounds,"
                  "units_per_stage,rank_map,predicted_s,setting\n",
       .write = amp_row,
       .narrow = narrow_to_papers,
       .limit = limit_amp},
      {.name = "fasop",
       .summary = "rows of FASOP's table of 18 columns",
       .heading = "mbs,tp,dp,pp,node placement,num_a100,num_a10,partition,estimated time (s/step),"
                  "pipeline time,DP all-reduce time,embedding layer all-reduce time,price_per_step,"
                  "is_oom,oom_gpumem,is_fsdp_oom,fsdpoom_gpumem,train_cost\n",
       .write = fasop_row,
       .narrow = narrow_to_papers,
       .limit = limit_fasop},
      {.name = "aceso",
       .summary = "a configuration of Aceso's search, for its runtime",
       .heading = "",
       .write = aceso_configuration,
       .narrow = narrow_to_aceso,
       .file_name = aceso_file_name,
       .network = aceso_network,
       .file = "configuration.json"}};
  return kTable;
}

Target target_of(const Exporter& exporter, const Problem& problem) {
  const Target* row = target_named(exporter.name);
  Target target = row == nullptr ? Target{} : *row;
  if (exporter.limit != nullptr) exporter.limit(problem, target);
  return target;
}

std::string refused(const Exporter& exporter, const Problem& problem, const Plan& plan) {
  std::string reason;
  if (exporter.network != nullptr) reason = exporter.network(problem);
  return reason.empty() ? why_not(target_of(exporter, problem), problem, plan).value_or("")
                        : reason;
}

std::string not_written(const Exporter& exporter, const Problem& problem, const Plan& plan) {
  if (exporter.run == nullptr) return "";
  std::string reason = refused(exporter, problem, plan);
  return reason.empty() ? exporter.run(problem, plan).refusal : reason;
}

const Exporter* exporter_named(std::string_view name) {
  const auto found = std::ranges::find(exporters(), name, &Exporter::name);
  return found == exporters().end() ? nullptr : &*found;
}

std::vector<std::string> exporter_names() {
  std::vector<std::string> names;
  for (const Exporter& exporter : exporters()) names.emplace_back(exporter.name);
  return names;
}

std::vector<std::string> unsaid_settings(const Exporter& exporter, const Problem& problem,
                                         const Plan& plan) {
  const Job& job = problem.job;
  const SaidSettings& says = exporter.says;
  std::vector<std::string> out;
  const auto add = [&](bool unsaid, const std::string& what) {
    if (unsaid) out.push_back(what + ", as the prediction has it");
  };
  const Span& span = plan.stages.front().spans.front();
  const int group = sharding_group(problem, plan);
  add(!job.overlap && !says.overlap, "that communication waits for compute");
  add(job.graph_capture && !says.graph_capture, "that steps are captured as CUDA graphs");
  add(group > 1 && group < span.data * plan.context && !says.zero_group,
      fmt::format("that states are cut over groups of {} devices", group));
  add(job.pure_states && !says.pure_states, "that no copy of the weights in 32 bits is kept");
  add(job.flash_kernel.has_value(), "which generation of flash attention runs");
  const auto unsaid = [](int bytes, bool has_words) {
    return bytes > 0 && !(has_words && (bytes == 2 || bytes == 4));
  };
  add(unsaid(job.gradient_bytes, says.gradient_bytes),
      fmt::format("gradients of {} bytes", job.gradient_bytes));
  add(unsaid(job.reduce_bytes, says.reduce_bytes),
      fmt::format("gradients that are summed in {} bytes", job.reduce_bytes));
  add(job.logit_bytes > 0 && !(says.logit_bytes && job.logit_bytes == kFusedLogitBytes),
      fmt::format("a loss of {} bytes a logit", job.logit_bytes));
  return out;
}

int sharding_group(const Problem& problem, const Plan& plan) {
  if (plan.zero == ZeroStage::off) return 1;
  const int copies = plan.stages.front().spans.front().data * plan.context;
  const int group = problem.job.zero_group;
  return group > 0 && copies % group == 0 ? group : copies;
}

bool overlaps_gradients(const Problem& problem, const Plan& plan) {
  const Job& job = problem.job;
  return job.overlap && job.framework.traits.data_exposed < 1 &&
         plan.stages.front().spans.front().data * plan.context > 1;
}

bool overlaps_tensors(const Problem& problem, const Plan& plan) {
  return problem.job.overlap && plan.stages.front().spans.front().tensor > 1 &&
         problem.job.framework.traits.tensor_exposed < 1;
}

bool tensor_groups_in_nodes(const Problem& problem, const Plan& plan) {
  const int tensor = plan.stages.front().spans.front().tensor;
  const auto node = [&](const Stage& stage, std::size_t d) {
    return problem.cluster.device(stage.devices[d]).node;
  };
  for (const Stage& stage : plan.stages)
    for (std::size_t d = 0; d < stage.devices.size(); ++d)
      if (node(stage, d) != node(stage, d - d % tensor)) return false;
  return true;
}

std::string adapters_to_add(const Job& job) {
  if (!job.adapters) return "";
  const std::string rank = job.adapter_rank > 0 ? fmt::format(" of rank {}", job.adapter_rank) : "";
  return fmt::format("the adapters{}: PROGRAM puts them in{}", rank,
                     job.four_bit_weights ? ", beside weights that it reads in 4 bits" : "");
}

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const Exporter& exporter : exporters())
    if (exporter.write != nullptr) names.emplace_back(exporter.name);
  return names;
}

ExportedPlans export_plans(const Exporter& exporter, const Problem& problem,
                           std::span<const RankedPlan> plans) {
  ExportedPlans out;
  out.format = exporter.name;
  out.text = exporter.heading;
  const bool table = !exporter.heading.empty();
  for (std::size_t i = 0; i < plans.size() && (table || out.written == 0); ++i) {
    const Exported one = exporter.write(problem, plans[i], out.written + 1);
    out.text += one.text;
    if (exporter.file_name && one.refusal.empty())
      out.files.emplace_back(exporter.file_name(problem, plans[i]), one.text);
    if (one.refusal.empty())
      ++out.written;
    else
      out.left_out.push_back(fmt::format("plan {} {} {}: {}", i + 1,
                                         table ? "has no row in the form of" : "is not written for",
                                         exporter.name, one.refusal));
  }
  return out;
}

}  // namespace plait
