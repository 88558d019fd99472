#include "app/request/configured.h"

#include <fmt/format.h>

#include "app/request/request_error.h"
#include "base/error.h"
#include "export/exporter.h"
#include "io/format/text_file.h"
#include "io/model/megatron_script.h"
#include "io/plan/deepspeed_config.h"

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
  if (!source.precision) source.precision = launch.precision.value_or(Precision::fp32);
  if (!source.attention) source.attention = launch.attention;
  source.job.optimizer = launch.optimizer.value_or(Optimizer::adam);
  source.job.global_batch = launch.global_batch.value_or(1);
  return source;
}

Configured from_megatron(const ConfiguredRequest& request) {
  if (!request.source.model.empty())
    throw RequestError("model", "is not needed: the launch script says what the model is");
  const std::string text = read_megatron_script(request.path, read_text_file(request.path)).text;
  refuse_two_values(request.path, text);
  const auto launch = read_megatron_launch(request.path, text);
  if (!launch || !launch->pins.micro_batch)
    throw InputError(request.path,
                     "says nothing of how the model is trained: its micro-batch size is missing");
  LoadedProblem loaded = load_problem(source_of(request, *launch));
  ConfiguredPlan plan = megatron_plan(request.path, *launch, loaded.problem);
  loaded.problem.job.global_batch = plan.global_batch;
  const int devices = loaded.problem.cluster.device_count();
  if (launch->processes && *launch->processes != devices)
    loaded.warnings.push_back(
        fmt::format("the script starts {} processes, the cluster has {} "
                    "devices: all of them are used",
                    *launch->processes, devices));
  return {{std::move(loaded.problem), std::move(plan.plan)}, {}, std::move(loaded.warnings)};
}

Configured from_deepspeed(const ConfiguredRequest& request) {
  if (request.source.model.empty())
    throw RequestError("model", "is missing: a ds_config.json does not say what is trained");
  const DeepspeedConfig config = read_deepspeed_config(request.path, read_text_file(request.path));
  ProblemSource source = request.source;
  source.configured = true;
  if (source.framework.empty()) source.framework = "deepspeed";
  if (!source.precision) source.precision = config.precision;
  source.job.optimizer = config.optimizer;
  source.job.global_batch = 1;
  LoadedProblem loaded = load_problem(source);
  ConfiguredPlan plan = deepspeed_plan(request.path, config, loaded.problem);
  loaded.problem.job.global_batch = plan.global_batch;
  loaded.warnings.insert(loaded.warnings.end(), config.warnings.begin(), config.warnings.end());
  return {{std::move(loaded.problem), std::move(plan.plan)}, {}, std::move(loaded.warnings)};
}

}  // namespace

const std::vector<std::string_view>& configuration_forms() {
  static const std::vector<std::string_view> kForms{"megatron", "deepspeed"};
  return kForms;
}

Configured load_configured(const ConfiguredRequest& request) {
  check_source(request);
  Configured out = request.from == "megatron" ? from_megatron(request) : from_deepspeed(request);
  out.target = target_of(*exporter_named(request.from), out.file.problem);
  return out;
}

}  // namespace plait
