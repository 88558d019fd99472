#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "base/error.h"
#include "cli/plan_arguments.h"
#include "cost/framework/framework.h"
#include "io/cluster/load_cluster.h"
#include "io/model/model_json.h"
#include "io/profile/import_profile.h"
#include "plan/names.h"
#include "report/summary.h"

namespace plait {
namespace {

// One sentence for each device type that cannot compute in the job's precision.
std::vector<std::string> precision_warnings(const Cluster& cluster, const Job& job) {
  std::vector<std::string> warnings;
  const DType wanted = compute_dtype(job.precision);
  for (const DeviceType& type : cluster.device_types) {
    if (type.supports(wanted)) continue;
    const bool half = wanted == DType::bf16 && type.supports(DType::fp16);
    warnings.push_back(
        fmt::format("{} does not support {}: predicted at the rate of the nearest type that it "
                    "does{}",
                    type.name, name_of(wanted), half ? "; --precision fp16 runs on it" : ""));
  }
  return warnings;
}

// Units per stage from layers per stage: what is no layer goes with the layer before it, or with
// the first.
std::vector<int> units_of_layers(const std::vector<int>& layers, const Model& model) {
  std::vector<int> units(layers.size());
  std::size_t stage = 0;
  int left = layers[0];
  for (int u = 0; u < model.unit_count(); ++u) {
    if (is_layer(model.unit(u))) {
      if (left == 0) left = layers[++stage];
      --left;
    }
    ++units[stage];
  }
  return units;
}

// Chunks of each stage when each has this many layers.
int chunks_of_megatron(const PlanArguments& arguments, int layers) {
  const std::string flag = "--num-layers-per-virtual-pipeline-stage";
  const Pins& pins = arguments.search.pins;
  if (pins.chunks) throw InputError(flag, "says the same as --chunks, which is also given");
  if (!pins.pipeline) throw InputError(flag, "needs --pp as well");
  const long long round = static_cast<long long>(*pins.pipeline) * *arguments.layers_per_chunk;
  if (layers % round != 0)
    throw InputError(flag, fmt::format("{} layers on {} stages are no multiple of {}", layers,
                                       *pins.pipeline, *arguments.layers_per_chunk));
  return static_cast<int>(layers / round);
}

// Pins that contradict each other whatever the cluster is.
void refuse_contradictions(const Pins& pins, int global_batch) {
  const int stages = static_cast<int>(pins.stages.size());
  if (stages > 0 && pins.pipeline && *pins.pipeline != stages)
    throw InputError("--stages",
                     fmt::format("has {} stages, but --pp is {}", stages, *pins.pipeline));
  const int chunks = pins.chunks.value_or(1);
  if (pins.schedule && chunks > 1 && *pins.schedule != Schedule::interleaved &&
      !(*pins.schedule == Schedule::zb_v && chunks == 2))
    throw InputError("--chunks",
                     fmt::format("schedule {} has {} in each stage", name_of(*pins.schedule),
                                 *pins.schedule == Schedule::zb_v ? "2" : "1"));
  if (pins.schedule == Schedule::interleaved && (pins.pipeline == 1 || stages == 1))
    throw InputError("--schedule", "interleaved needs at least 2 stages");
  if (pins.schedule == Schedule::interleaved && pins.chunks == 1)
    throw InputError("--chunks", "schedule interleaved has at least 2 in each stage");
  if (!pins.data || !pins.micro_batch || !pins.micro_batches) return;
  const double batch = 1.0 * *pins.data * *pins.micro_batch * *pins.micro_batches;
  if (batch != global_batch)
    throw InputError(
        "--global-batch",
        fmt::format("is {}, but --dp {} x --micro-batch {} x --micro-batches {} is {}",
                    global_batch, *pins.data, *pins.micro_batch, *pins.micro_batches, batch));
}

}  // namespace

void check_output(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code fault;
  if (path == "-")
    throw InputError(path, "stdout is for what is printed; name a file, or /dev/stdout");
  if (fs::is_directory(path, fault)) throw InputError(path, "is a directory, a file is needed");
  const fs::path folder = fs::path(path).parent_path();
  if (!folder.empty() && !fs::is_directory(folder, fault))
    throw InputError(path, fmt::format("there is no directory {}", folder.string()));
  // A device or a pipe is written as it is; a file is made anew beside the old one.
  const bool anew = !fs::exists(path, fault) || fs::is_regular_file(path, fault);
  if (!path.empty() && anew && access(folder.empty() ? "." : folder.c_str(), W_OK) != 0)
    throw InputError(path, fmt::format("cannot be written: {}", std::strerror(errno)));
}

LoadedProblem load_problem(const PlanArguments& arguments) {
  LoadedProblem loaded;
  LoadedModel model = arguments.metis && arguments.model.empty()
                          ? metis_model(*arguments.metis, arguments.sequence)
                          : load_model(arguments.model, arguments.sequence);
  ClusterOptions options;
  // Another cluster than Metis' hostfile is not described by its clusterfile.
  const bool replaced = arguments.metis && arguments.cluster != arguments.metis->hostfile &&
                        arguments.clusterfile == arguments.metis->clusterfile;
  if (!replaced) options.clusterfile = arguments.clusterfile;
  options.device = arguments.device;
  if (!arguments.catalogue.empty()) options.catalogue = load_catalogue(arguments.catalogue);
  LoadedCluster cluster = load_cluster(arguments.cluster, options);
  loaded.problem.model =
      arguments.granularity == "op" ? at_op_granularity(model.model) : std::move(model.model);
  loaded.problem.cluster = std::move(cluster.cluster);
  loaded.problem.job = arguments.job;
  loaded.problem.job.framework =
      find_framework(options.catalogue, arguments.framework, "--framework");
  loaded.warnings = std::move(model.warnings);
  if (!arguments.profile.empty()) {
    LoadedProfile profile =
        load_profile(arguments.profile, loaded.problem.model, loaded.problem.cluster);
    loaded.problem.profile = std::move(profile.profile);
    loaded.warnings.insert(loaded.warnings.end(), profile.warnings.begin(), profile.warnings.end());
  }
  loaded.warnings.insert(loaded.warnings.end(), cluster.warnings.begin(), cluster.warnings.end());
  const auto precision = precision_warnings(loaded.problem.cluster, loaded.problem.job);
  loaded.warnings.insert(loaded.warnings.end(), precision.begin(), precision.end());
  return loaded;
}

std::string resolve_pins(PlanArguments& arguments, const Model& model) {
  Pins& pins = arguments.search.pins;
  if (arguments.layers_per_chunk) pins.chunks = chunks_of_megatron(arguments, layer_count(model));
  if (pins.chunks && *pins.chunks > 1 && !pins.schedule) pins.schedule = Schedule::interleaved;
  refuse_contradictions(pins, arguments.job.global_batch);
  if (pins.stages.empty()) return "";
  const int layers = layer_count(model);
  const long long sum = std::accumulate(pins.stages.begin(), pins.stages.end(), 0LL);
  if (sum == model.unit_count()) return "";
  if (sum != layers)
    throw InputError("--stages",
                     fmt::format("adds up to {}; {} has {} layers, or {} units with embedding and "
                                 "head",
                                 sum, model.name, layers, model.unit_count()));
  pins.stages = units_of_layers(pins.stages, model);
  return fmt::format("--stages counts layers; with embedding and head the stages have {} units",
                     fmt::join(pins.stages, ", "));
}

}  // namespace plait
