#include "app/request/configured.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/request/launch_script.h"
#include "app/request/request_error.h"
#include "base/error.h"
#include "export/exporter.h"
#include "io/format/json_reader.h"
#include "io/format/text_file.h"
#include "io/model/load_model.h"
#include "io/model/megatron_script.h"
#include "io/plan/accelerate_config.h"
#include "io/plan/deepspeed_config.h"
#include "plan/target.h"

namespace plait {
namespace {

void check_source(const ConfiguredRequest& request) {
  refuse_unknown("from", request.from, configuration_forms());
  if (request.source.cluster.empty())
    throw RequestError("cluster",
                       "is missing: what the configuration runs on, as plait plan takes it");
}

// The job that a launch script describes; what the request says wins.
ProblemSource source_of(const ConfiguredRequest& request, const MegatronLaunch& launch) {
  ProblemSource source = request.source;
  source.model = request.path;
  source.configured = true;
  if (source.framework.empty()) source.framework = launch.framework;
  if (!source.precision) source.precision = launch.precision.value_or(Precision::fp32);
  if (!source.attention) source.attention = launch.attention;
  source.job.optimizer = launch.optimizer.value_or(Optimizer::adam);
  source.job.global_batch = launch.global_batch.value_or(1);
  return source;
}

// What Megatron-LM's versions say to a tensor degree over fewer heads of keys and values.
void judge_heads(const std::string& path, const LoadedProblem& loaded, int tensor,
                 std::vector<std::string>& warnings) {
  const int heads = key_value_heads(loaded.problem.model);
  if (heads == 0 || heads % tensor == 0) return;
  if (tensor % heads != 0)
    throw InputError(path,
                     fmt::format("tp {} is neither a divisor nor a multiple of the {} heads of "
                                 "keys and values, which Megatron-LM demands",
                                 tensor, heads));
  warnings.push_back(fmt::format(
      "tp {} is more than the {} heads of keys and values: Megatron-Core before 0.16 refuses that, "
      "and newer ones gather queries, keys and values in every layer, which is not priced",
      tensor, heads));
}

Configured from_megatron(const ConfiguredRequest& request) {
  const std::string_view told = request.source.model.empty() ? first_told(request) : "model";
  if (request.source.job.adapters)
    throw RequestError(request.source.job.four_bit_weights ? "qlora" : "lora",
                       "Megatron-LM's own training script adds no adapters");
  if (!told.empty())
    throw RequestError(told, "is not needed: the launch script says it, and may be changed");
  const std::string text = read_megatron_script(request.path, read_text_file(request.path)).text;
  refuse_two_values(request.path, text);
  const auto launch = read_megatron_launch(request.path, text);
  if (!launch || !launch->pins.micro_batch)
    throw InputError(request.path,
                     "says nothing of how the model is trained: its micro-batch size is missing");
  LoadedProblem loaded = load_problem(source_of(request, *launch));
  ConfiguredPlan plan = megatron_plan(request.path, *launch, loaded.problem);
  loaded.problem.job.global_batch = plan.global_batch;
  loaded.problem.job.zero_group = plan.zero_group;
  if (loaded.problem.job.gradient_bytes == 0 && !request.source.precision)
    loaded.problem.job.gradient_bytes = launch->gradient_bytes;
  if (loaded.problem.job.logit_bytes == 0) loaded.problem.job.logit_bytes = launch->logit_bytes;
  judge_heads(request.path, loaded, launch->pins.tensor.value_or(1), loaded.warnings);
  const int devices = loaded.problem.cluster.device_count();
  if (launch->processes && *launch->processes != devices)
    loaded.warnings.push_back(
        fmt::format("the script starts {} processes, the cluster has {} "
                    "devices: all of them are used",
                    *launch->processes, devices));
  Configured out{{std::move(loaded.problem), std::move(plan.plan)}, {}, std::move(loaded.warnings)};
  out.with_switches = out.file.problem.job.framework;
  const Span& span = out.file.plan.stages.front().spans.front();
  out.switches = take_overlap(*launch, span.data * out.file.plan.context > 1, span.tensor > 1,
                              out.file.problem.job.framework);
  return out;
}

// What the program that starts DeepSpeed was told, with what is to be said about it.
DeepspeedFilled told_in(const ConfiguredRequest& request, std::vector<std::string>& notes) {
  const ProblemSource& source = request.source;
  DeepspeedFilled told = request.told;
  told.precision = source.precision;
  if (source.job.global_batch > 0) told.sizes.batch = source.job.global_batch;
  if (!source.batch_tokens) return told;
  const Model model = load_model(source.model, source.sequence).model;
  BatchSamples batch = samples_of(*source.batch_tokens, std::max(1, model.sequence_length));
  told.sizes.batch = batch.samples;
  if (!batch.note.empty()) notes.push_back(std::move(batch.note));
  return told;
}

Configured from_deepspeed(const ConfiguredRequest& request) {
  if (request.source.model.empty())
    throw RequestError("model", "is missing: a ds_config.json does not say what is trained");
  const bool document = is_json_text(request.path);
  const std::string name = document ? "ds_config" : request.path;
  std::vector<std::string> notes;
  const DeepspeedConfig config = read_deepspeed_config(
      name, document ? request.path : read_text_file(request.path), told_in(request, notes));
  ProblemSource source = request.source;
  source.configured = true;
  if (source.framework.empty()) source.framework = "deepspeed";
  source.precision = config.precision;
  source.job.optimizer = config.optimizer;
  source.job.global_batch = 1;
  source.batch_tokens.reset();
  LoadedProblem loaded = load_problem(source);
  ConfiguredPlan plan = deepspeed_plan(name, config, loaded.problem);
  loaded.problem.job.global_batch = plan.global_batch;
  if (config.zero_group > 0) loaded.problem.job.zero_group = config.zero_group;
  if (loaded.problem.job.reduce_bytes == 0) loaded.problem.job.reduce_bytes = config.reduce_bytes;
  for (const std::vector<std::string>& more : {notes, config.warnings})
    loaded.warnings.insert(loaded.warnings.end(), more.begin(), more.end());
  Configured out{{std::move(loaded.problem), std::move(plan.plan)}, {}, std::move(loaded.warnings)};
  out.with_switches = out.file.problem.job.framework;
  return out;
}

// Batch sizes are said to the program, which accelerate starts.
Configured from_accelerate(const ConfiguredRequest& request) {
  if (request.source.model.empty())
    throw RequestError("model", "is missing: a file of accelerate does not say what is trained");
  std::vector<std::string> notes;
  AccelerateConfig config =
      read_accelerate_config(request.path, read_text_file(request.path), told_in(request, notes));
  if (!config.layout.sizes.batch && !config.layout.sizes.micro_batch)
    throw RequestError("micro_batch",
                       "is missing: a file of accelerate does not say how many "
                       "samples are trained; give `micro_batch` and "
                       "`micro_batches`, or `global_batch`");
  ProblemSource source = request.source;
  source.configured = true;
  if (source.framework.empty()) source.framework = "fsdp";
  source.precision = config.layout.precision;
  source.job.global_batch = 1;
  source.batch_tokens.reset();
  LoadedProblem loaded = load_problem(source);
  const int devices = loaded.problem.cluster.device_count();
  ConfiguredPlan plan = deepspeed_plan(request.path, config.layout, loaded.problem);
  loaded.problem.job.global_batch = plan.global_batch;
  if (config.hybrid) {
    const int nodes = static_cast<int>(loaded.problem.cluster.nodes.size());
    const int group = config.zero_group > 0 ? config.zero_group : devices / nodes;
    loaded.problem.job.zero_group = devices % group == 0 ? group : 0;
  }
  if (config.processes && *config.processes != devices)
    notes.push_back(
        fmt::format("the file starts {} processes, the cluster has {} devices: all of "
                    "them are used",
                    *config.processes, devices));
  loaded.warnings.insert(loaded.warnings.end(), notes.begin(), notes.end());
  Configured out{{std::move(loaded.problem), std::move(plan.plan)}, {}, std::move(loaded.warnings)};
  out.with_switches = out.file.problem.job.framework;
  return out;
}

}  // namespace

const std::vector<std::string_view>& configuration_forms() {
  static const std::vector<std::string_view> kForms{"megatron", "deepspeed", "fsdp"};
  return kForms;
}

std::string_view first_told(const ConfiguredRequest& request) {
  const ProblemSource& source = request.source;
  if (source.job.global_batch > 0 || source.batch_tokens) return "global_batch";
  if (source.precision) return "precision";
  if (request.told.sizes.micro_batch) return "micro_batch";
  if (request.told.sizes.accumulation) return "micro_batches";
  if (request.told.recompute) return "recompute";
  if (!source.job.adapters) return "";
  return source.job.four_bit_weights ? "qlora" : "lora";
}

Configured load_configured(const ConfiguredRequest& request) {
  check_source(request);
  Configured out = request.from == "megatron"    ? from_megatron(request)
                   : request.from == "deepspeed" ? from_deepspeed(request)
                                                 : from_accelerate(request);
  // Nothing is written for Megatron-DeepSpeed, which has a row all the same.
  const Exporter& exporter = *exporter_named(request.from);
  const std::string& program = out.file.problem.job.framework.target;
  const bool own_row = program == "megatron-deepspeed" && exporter.name == "megatron";
  out.target = own_row ? *target_named(program) : target_of(exporter, out.file.problem);
  return out;
}

}  // namespace plait
