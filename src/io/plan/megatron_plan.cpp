#include "io/plan/megatron_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "model/layers.h"
#include "plan/check.h"

namespace plait {
namespace {

// The same number of layers in every chunk; the embedding and the loss may stand for one.
std::vector<LayoutStage> even_chunks(const std::string& name, const MegatronLaunch& launch,
                                     int layers, int stages) {
  int chunks = launch.pins.chunks.value_or(1);
  if (launch.layers_per_chunk) {
    const int round = stages * *launch.layers_per_chunk;
    if (layers % round != 0)
      throw InputError(name + " --num-layers-per-virtual-pipeline-stage",
                       fmt::format("{} layers on {} stages are not a multiple of {}", layers,
                                   stages, *launch.layers_per_chunk));
    chunks = layers / round;
  }
  const int counted = layers + launch.embedding_layers + launch.loss_layers;
  const int parts = stages * chunks;
  if (counted % parts != 0)
    throw InputError(name, fmt::format("{} layers do not come out even on {} {}: "
                                       "--pipeline-model-parallel-layout says how they are cut",
                                       counted, parts, chunks > 1 ? "chunks" : "stages"));
  std::vector<LayoutStage> out(parts, LayoutStage{.layers = counted / parts});
  out.front().layers -= launch.embedding_layers;
  out.back().layers -= launch.loss_layers;
  out.front().embedding = out.back().loss = true;
  return out;
}

std::vector<LayoutStage> chunks_of(const std::string& name, const MegatronLaunch& launch,
                                   int layers, int stages) {
  if (!launch.layout.empty()) return launch.layout;
  if (launch.pins.stages.empty()) return even_chunks(name, launch, layers, stages);
  std::vector<LayoutStage> out;
  for (const int count : launch.pins.stages) out.push_back({.layers = count});
  out.front().embedding = out.back().loss = true;
  return out;
}

void check_degrees(const std::string& name, const LaunchedLayout& layout, int world) {
  const long long group = 1LL * layout.tensor * layout.stages * layout.context;
  if (world % group != 0)
    throw InputError(name, fmt::format("tp {} x pp {} x cp {} = {} does not divide the {} devices "
                                       "of the cluster",
                                       layout.tensor, layout.stages, layout.context, group, world));
}

// How many micro-batches a step has.
int micro_batches(const std::string& name, const MegatronLaunch& launch, int data, int& batch) {
  if (!launch.pins.micro_batch) throw InputError(name, "--micro-batch-size is missing");
  const long long together = 1LL * *launch.pins.micro_batch * data;
  if (together > 1'000'000'000) throw InputError(name, "--micro-batch-size is too large");
  batch = launch.global_batch.value_or(static_cast<int>(together));
  if (batch % together != 0)
    throw InputError(name, fmt::format("--global-batch-size {} is not a multiple of the "
                                       "micro-batch size {} times {} replicas",
                                       batch, *launch.pins.micro_batch, data));
  return static_cast<int>(batch / together);
}

// Where each chunk begins among the units of the model.
std::vector<int> bounds_of(const std::vector<LayoutStage>& chunks, const Model& model) {
  std::vector<int> starts;  // of layers
  for (int u = 0; u < model.unit_count(); ++u)
    if (begins_layer(model.unit(u))) starts.push_back(u);
  std::vector<int> bounds{0};
  std::size_t done = 0;
  for (std::size_t i = 0; i + 1 < chunks.size(); ++i) {
    done += static_cast<std::size_t>(chunks[i].layers);
    // What comes after the last layer stays with it, unless a chunk of its own has it.
    const bool all = done >= starts.size();
    bounds.push_back(all ? starts.back() + 1 : starts[done]);
  }
  bounds.push_back(model.unit_count());
  return bounds;
}

// The spans of a chunk: one, or two where only its first layers are recomputed.
void add_spans(const LaunchedLayout& layout, const Model& model, UnitRange units, int chunk,
               Stage& stage) {
  Span span{.units = units, .tensor = layout.tensor, .data = layout.data};
  span.recompute = layout.recompute;
  span.chunk = chunk;
  int split = units.end;
  if (layout.recomputed_layers) {
    int seen = 0;
    for (int u = units.begin; u < units.end && split == units.end; ++u)
      if (begins_layer(model.unit(u)) && seen++ == *layout.recomputed_layers) split = u;
  }
  if (split > units.begin && split < units.end) {
    span.units.end = split;
    stage.spans.push_back(span);
    span.units = {split, units.end};
    span.recompute = Recompute::none;
  }
  stage.spans.push_back(span);
}

}  // namespace

std::vector<Stage> stages_of(const LaunchedLayout& layout, const Model& model) {
  std::vector<Stage> stages(layout.stages);
  const std::vector<int> bounds = bounds_of(layout.chunks, model);
  for (std::size_t k = 0; k < layout.chunks.size(); ++k) {
    const int chunk = static_cast<int>(k) / layout.stages;
    add_spans(layout, model, {bounds[k], bounds[k + 1]}, chunk, stages[k % layout.stages]);
  }
  const int devices = layout.tensor * layout.data * layout.context;
  for (int s = 0; s < layout.stages; ++s)
    for (int d = 0; d < devices; ++d) stages[s].devices.push_back(DeviceId{s * devices + d});
  return stages;
}

ConfiguredPlan megatron_plan(const std::string& name, const MegatronLaunch& launch,
                             const Problem& problem) {
  const Pins& pins = launch.pins;
  LaunchedLayout layout{.tensor = pins.tensor.value_or(1),
                        .data = 1,
                        .context = pins.context.value_or(1),
                        .stages = pins.pipeline.value_or(1),
                        .chunks = {},
                        .recompute = pins.recompute.value_or(Recompute::none),
                        .recomputed_layers = launch.pins.recompute_layers};
  const int world = problem.cluster.device_count();
  check_degrees(name, layout, world);
  layout.data = world / (layout.tensor * layout.stages * layout.context);
  layout.chunks = chunks_of(name, launch, whole_layer_count(problem.model), layout.stages);
  if (std::ranges::any_of(layout.chunks, [](const LayoutStage& c) {
        return c.layers == 0 && !c.embedding && !c.loss;
      }))
    throw InputError(name, "a stage has neither a layer nor the embedding nor the loss");
  ConfiguredPlan out;
  Plan& plan = out.plan;
  plan.micro_batches = micro_batches(name, launch, layout.data, out.global_batch);
  plan.context = layout.context;
  plan.expert = pins.expert.value_or(1);
  plan.zero = pins.zero.value_or(ZeroStage::off);
  plan.sequence_parallel = pins.sequence_parallel.value_or(false);
  plan.offload = pins.offload.value_or(0);
  if (const int instances = launch.optimizer_instances; instances > 1) {
    const int copies = layout.data * layout.context;
    if (copies % instances != 0)
      throw InputError(
          name + " --num-distributed-optimizer-instances",
          fmt::format("must divide the {} copies of a parameter, is {}", copies, instances));
    out.zero_group = copies / instances;
  }
  const bool interleaved = static_cast<int>(layout.chunks.size()) > layout.stages;
  plan.schedule = interleaved ? Schedule::interleaved : Schedule::one_f_one_b;
  plan.stages = stages_of(layout, problem.model);
  if (const int copies = layout.data * layout.context; copies % plan.expert != 0)
    throw InputError(
        name, fmt::format("--expert-model-parallel-size {} does not divide the {} copies that tp "
                          "{} leaves: experts over the devices of a tensor group "
                          "(--expert-tensor-parallel-size) have no words in a plan",
                          plan.expert, copies, layout.tensor));
  Problem trained = problem;
  trained.job.global_batch = out.global_batch;
  const std::vector<Violation> violations = check_plan(trained, plan);
  if (!violations.empty())
    throw InputError(name, violations.front().where + " " + violations.front().what);
  return out;
}

}  // namespace plait
