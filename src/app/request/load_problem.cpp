#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <numeric>
#include <thread>

#include "app/request/job_formats.h"
#include "app/request/launch_script.h"
#include "app/request/request_error.h"
#include "app/request/search_request.h"
#include "cost/framework/framework.h"
#include "cost/known_times.h"
#include "io/cluster/load_cluster.h"
#include "io/model/load_model.h"
#include "io/profile/aceso_models.h"
#include "io/profile/import_profile.h"
#include "plan/names.h"
#include "report/summary.h"

namespace plait {
namespace {

// Units per stage from layers per stage: a unit that is not a layer goes with the layer before it,
// or with the first.
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

int chunks_of_megatron(const Pins& pins, int layers_per_chunk, int layers) {
  const char* field = "num_layers_per_virtual_pipeline_stage";
  if (pins.chunks) throw RequestError(field, "says the same as `chunks`, which is also given");
  if (!pins.pipeline) throw RequestError(field, "needs `pipeline` as well");
  const long long round = static_cast<long long>(*pins.pipeline) * layers_per_chunk;
  if (layers % round != 0)
    throw RequestError(field, fmt::format("{} layers on {} stages are not a multiple of {}", layers,
                                          *pins.pipeline, layers_per_chunk));
  return static_cast<int>(layers / round);
}

Target target_of(const ProblemSource& source, const Framework& framework) {
  const std::string& name = source.runs_on.empty() ? framework.target : source.runs_on;
  refuse_unknown("runs_on", name, target_names());
  return *target_named(name);
}

// Where plans of one program are predicted at the speed of another because nobody named one; "" =
// the speed is that of the program.
std::string other_speed(const ProblemSource& source, const Target& target,
                        const Framework& framework, const Catalogue& catalogue) {
  if (!source.framework.empty() || target.name == "any" || framework.target == target.name)
    return "";
  for (const FrameworkEntry& entry : catalogue.frameworks)
    if (entry.framework.target == target.name)
      return fmt::format(
          "the plans are those that {} runs, their speed is that of {}: "
          "`framework` {} predicts its own",
          target.program, framework.name, entry.framework.name);
  return "";
}

}  // namespace

void take_defaults(ProblemSource& source, SearchOptions& options, const MetisArguments& metis) {
  source.cluster = metis.hostfile;
  source.clusterfile = metis.clusterfile;
  source.profile = metis.profile;
  source.job.global_batch = metis.batch;
  source.precision = Precision::fp16;  // V100, P100 and T4 do not have bf16
  options.group_scale_variance = metis.group_scale_variance;
  if (metis.max_tensor > 0) options.max_tensor = metis.max_tensor;
  if (metis.max_micro_batch > 0) options.max_micro_batch = metis.max_micro_batch;
  if (metis.max_permute_len > 0) options.max_permute_len = metis.max_permute_len;
  source.metis = metis;
}

namespace {

// What the request says of the model and the job besides their names.
void apply_wishes(const ProblemSource& source, LoadedProblem& loaded) {
  Job& job = loaded.problem.job;
  Model& model = loaded.problem.model;
  apply(source.memory, job);
  if (source.frozen_layers > 0) {
    const int layers = layer_count(model);
    if (source.frozen_layers >= layers)
      throw RequestError("freeze", fmt::format("{} layers leave nothing to train: {} has {}",
                                               source.frozen_layers, model.name, layers));
    model = with_frozen_layers(model, source.frozen_layers);
  }
  if (!source.batch_tokens) return;
  BatchSamples batch = samples_of(*source.batch_tokens, std::max(1, model.sequence_length));
  job.global_batch = batch.samples;
  if (!batch.note.empty()) loaded.warnings.push_back(std::move(batch.note));
}

}  // namespace

namespace {

// The cluster, with the catalogue that it was read with.
struct CatalogueCluster {
  Catalogue catalogue;
  LoadedCluster cluster;
};

CatalogueCluster load_cluster_of(const ProblemSource& source) {
  ClusterOptions options;
  options.clusterfile = source.clusterfile;
  options.device = source.device;
  if (!source.catalogue.empty()) options.catalogue = load_catalogue(source.catalogue);
  set_prices(source.prices, options.catalogue);
  LoadedCluster cluster = load_cluster(source.cluster, options);
  set_prices(source.prices, options.catalogue, cluster.cluster);
  return {std::move(options.catalogue), std::move(cluster)};
}

// A model of Aceso's names: units are its ops, times are those of its database.
LoadedProblem load_aceso_problem(const ProblemSource& source) {
  const AcesoModel named = aceso_model_named(source.model, source.layers);
  if (source.profile.empty())
    throw RequestError(
        "profile", fmt::format("is needed: the directory with Aceso's tables of {}", named.table));
  if (source.sequence) throw RequestError("sequence", "is a part of Aceso's models; leave it out");
  LoadedProblem loaded;
  CatalogueCluster read = load_cluster_of(source);
  Problem& problem = loaded.problem;
  problem.cluster = std::move(read.cluster.cluster);
  problem.job = source.job;
  problem.job.precision = named.is_image_model() ? Precision::fp32 : Precision::fp16;
  if (source.precision.value_or(problem.job.precision) != problem.job.precision)
    throw RequestError("precision", fmt::format("is {} where Aceso measured {}; leave it out",
                                                name_of(problem.job.precision), named.name));
  problem.job.attention = AttentionKernel::plain;
  if (source.attention.value_or(problem.job.attention) != problem.job.attention)
    throw RequestError("attention",
                       fmt::format("is plain where Aceso measured {}; leave it out", named.name));
  problem.job.framework = find_framework(
      read.catalogue, source.framework.empty() ? "aceso" : source.framework, "`framework`");
  loaded.target = target_of(source, problem.job.framework);
  load_aceso_model(named, source.profile, problem, loaded.warnings);
  apply_wishes(source, loaded);
  if (problem.job.global_batch < 1)
    throw RequestError("global_batch",
                       "is missing: samples in one optimizer step, or tokens: 512, 4Mtokens");
  for (const auto& warnings :
       {read.cluster.warnings, memory_warnings(problem.cluster, problem.job)})
    loaded.warnings.insert(loaded.warnings.end(), warnings.begin(), warnings.end());
  refuse_unknown_times(problem);
  return loaded;
}

}  // namespace

namespace {

// The program as the launch script runs it.
void take_switches(const ProblemSource& source, LoadedProblem& loaded) {
  const auto& launch = loaded.launch;
  Framework& framework = loaded.problem.job.framework;
  loaded.with_switches = framework;
  if (!launch || launch->taken.empty() || source.free_layout) return;
  const int tensor = launch->pins.tensor.value_or(1);
  const int replicas =
      loaded.problem.cluster.device_count() / tensor / launch->pins.pipeline.value_or(1);
  loaded.switches = take_overlap(*launch, replicas > 1, tensor > 1, framework);
}

}  // namespace

namespace {

// The program where none is named, "" = the default's. Those that keep weights in 4 bits are
// PyTorch's; adapters are PyTorch's, too, as far as `plait export` writes files for them; a launch
// script is that of its program.
std::string usual_program(const ProblemSource& source, const LoadedModel& model) {
  if (source.job.four_bit_weights) return "fsdp";
  if (model.launch) return model.launch->framework;
  return source.job.adapters && source.runs_on.empty() ? "fsdp" : "";
}

}  // namespace

LoadedProblem load_problem(const ProblemSource& source) {
  if (is_aceso_name(source.model)) return load_aceso_problem(source);
  if (source.layers)
    throw RequestError("layers", "goes with models of Aceso's names, such as aceso:scale-layer");
  LoadedProblem loaded;
  LoadedModel model = source.metis && source.model.empty()
                          ? metis_model(*source.metis, source.sequence)
                          : load_model(source.model, source.sequence);
  ClusterOptions options;
  // Another cluster than Metis' hostfile is not described by its clusterfile.
  const bool replaced = source.metis && source.cluster != source.metis->hostfile &&
                        source.clusterfile == source.metis->clusterfile;
  if (!replaced) options.clusterfile = source.clusterfile;
  options.device = source.device;
  if (!source.catalogue.empty()) options.catalogue = load_catalogue(source.catalogue);
  set_prices(source.prices, options.catalogue);
  LoadedCluster cluster = load_cluster(source.cluster, options);
  set_prices(source.prices, options.catalogue, cluster.cluster);
  loaded.problem.model = std::move(model.model);
  loaded.problem.cluster = std::move(cluster.cluster);
  loaded.problem.job = source.job;
  if (model.launch) take_launch(source, *model.launch, loaded);
  apply_wishes(source, loaded);
  if (loaded.problem.job.global_batch < 1)
    throw RequestError("global_batch",
                       "is missing: samples in one optimizer step, or tokens: 512, 4Mtokens");
  const std::string framework =
      source.framework.empty() ? usual_program(source, model) : source.framework;
  loaded.problem.job.framework = find_framework(options.catalogue, framework, "`framework`");
  take_switches(source, loaded);
  loaded.target = target_of(source, loaded.problem.job.framework);
  std::string speed =
      other_speed(source, loaded.target, loaded.problem.job.framework, options.catalogue);
  if (!speed.empty() && !source.job.four_bit_weights) loaded.warnings.push_back(std::move(speed));
  for (std::string& remark : program_remarks(source)) loaded.warnings.push_back(std::move(remark));
  loaded.warnings.insert(loaded.warnings.end(), model.warnings.begin(), model.warnings.end());
  if (source.granularity == Granularity::op)
    loaded.problem.model = at_op_granularity(loaded.problem.model);
  if (!source.profile.empty()) {
    LoadedProfile profile =
        load_profile(source.profile, loaded.problem.model, loaded.problem.cluster);
    loaded.problem.profile = std::move(profile.profile);
    loaded.warnings.insert(loaded.warnings.end(), profile.warnings.begin(), profile.warnings.end());
  }
  loaded.warnings.insert(loaded.warnings.end(), cluster.warnings.begin(), cluster.warnings.end());
  choose_formats(source, loaded.launch ? loaded.launch->precision : std::nullopt, loaded);
  const auto precision =
      precision_warnings(loaded.problem.cluster, loaded.problem.job, loaded.target);
  loaded.warnings.insert(loaded.warnings.end(), precision.begin(), precision.end());
  const auto memory = memory_warnings(loaded.problem.cluster, loaded.problem.job);
  loaded.warnings.insert(loaded.warnings.end(), memory.begin(), memory.end());
  refuse_unknown_times(loaded.problem);
  return loaded;
}

std::vector<std::string_view> planner_names() {
  std::vector<std::string_view> names;
  for (const Planner& planner : planners()) names.push_back(planner.name);
  return names;
}

const Planner& planner_named(const std::string& name) {
  refuse_unknown("planner", name, planner_names());
  return *std::ranges::find(planners(), name, &Planner::name);
}

int usual_threads() {
  constexpr int kMost = 256;
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMost);
}

ResolvedPins resolve_pins(const SearchRequest& request, const Model& model) {
  ResolvedPins out{request.search.pins, ""};
  Pins& pins = out.pins;
  const int layers = layer_count(model);
  if (request.layers_per_chunk)
    pins.chunks = chunks_of_megatron(pins, *request.layers_per_chunk, layers);
  if (pins.chunks.value_or(1) > 1 && !pins.schedule) pins.schedule = Schedule::interleaved;
  const long long sum = std::accumulate(pins.stages.begin(), pins.stages.end(), 0LL);
  if (pins.stages.empty() || sum == model.unit_count() || sum != layers) return out;
  pins.stages = units_of_layers(pins.stages, model);
  out.note = fmt::format("`stages` counts layers; with embedding and head the stages have {} units",
                         fmt::join(pins.stages, ", "));
  return out;
}

namespace {

// "2 samples a micro-batch, 8 micro-batches, 8 replicas" are a global batch of 128.
ProblemSource with_batch(const SearchRequest& request) {
  ProblemSource source = request.source;
  const Pins& pins = request.search.pins;
  const bool said = source.job.global_batch > 0 || source.batch_tokens;
  if (said || !pins.micro_batch || !pins.micro_batches) return source;
  if (!pins.data)
    throw RequestError("global_batch",
                       fmt::format("is missing: with `micro_batch` {} and `micro_batches` {} it is "
                                   "{} times the replicas; give the product, or `data`",
                                   *pins.micro_batch, *pins.micro_batches,
                                   1LL * *pins.micro_batch * *pins.micro_batches));
  const double batch = static_cast<double>(*pins.micro_batch) * *pins.micro_batches * *pins.data;
  if (batch <= 1e6) source.job.global_batch = static_cast<int>(batch);
  return source;
}

// PyTorch's DistributedDataParallel by one of its names: replicas that keep everything, where the
// program's other plans cut states (FSDP).
bool is_replicated(std::string name) {
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name == "ddp" || name == "distributeddataparallel";
}

}  // namespace

namespace {

// Adapters in degrees that PyTorch's replicas do not have are asked of the default's program.
ProblemSource with_program(const SearchRequest& request) {
  ProblemSource source = with_batch(request);
  const Pins& pins = request.search.pins;
  const bool open = source.framework.empty() && source.runs_on.empty();
  const auto has_degree = [](const std::optional<int>& pin) { return pin.value_or(1) > 1; };
  if (open && source.job.adapters && !source.job.four_bit_weights &&
      (has_degree(pins.tensor) || has_degree(pins.pipeline) || has_degree(pins.context) ||
       has_degree(pins.expert) || !pins.stages.empty()))
    source.framework = find_framework(builtin_catalogue(), "", "`framework`").name;
  return source;
}

}  // namespace

LoadedSearch load_search(const SearchRequest& request) {
  LoadedProblem loaded = load_problem(with_program(request));
  SearchRequest launched = with_launch(request, loaded.launch);
  if (is_replicated(request.source.framework) && !launched.search.pins.zero) {
    launched.search.pins.zero = ZeroStage::off;
    loaded.warnings.emplace_back(
        "replicas keep everything (`zero` 0); `framework` fsdp cuts states");
  }
  ResolvedPins resolved = resolve_pins(launched, loaded.problem.model);
  const bool usual = loaded.target.one_layout && resolved.pins.pipeline.value_or(1) > 1 &&
                     resolved.pins.stages.empty();
  resolved.pins.even_layers = launched.even_stages.value_or(usual);
  refuse_formats(loaded);
  if (!request.apart) refuse_several_collectives(loaded.problem.cluster, loaded.target, "cluster");
  if (const auto violation = violation_of(loaded.problem, resolved.pins, loaded.target))
    throw RequestError(*violation);
  LoadedSearch out{std::move(loaded.problem), request.search, std::move(loaded.warnings),
                   std::move(loaded.newer_job)};
  out.options.pins = std::move(resolved.pins);
  out.options.target = std::move(loaded.target);
  if (loaded.launch && !loaded.launch->taken.empty() && !request.source.free_layout)
    out.own_pins = resolve_pins(request, out.problem.model).pins;
  if (!resolved.note.empty()) out.warnings.push_back(std::move(resolved.note));
  out.switches = std::move(loaded.switches);
  out.with_switches = std::move(loaded.with_switches);
  return out;
}

}  // namespace plait
