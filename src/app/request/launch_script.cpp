#include "app/request/launch_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plait {

// What a launch script says, where the request does not say otherwise.
void take_launch(const ProblemSource& source, const MegatronLaunch& launch, LoadedProblem& loaded) {
  loaded.launch = launch;
  if (source.free_layout) {
    loaded.launch->pins = {};
    loaded.launch->layers_per_chunk.reset();
  }
  Job& job = loaded.problem.job;
  if (job.global_batch == 0) job.global_batch = launch.global_batch.value_or(0);
  if (launch.taken.empty()) return;
  const auto warn = [&](const std::vector<std::string>& words) {
    loaded.warnings.insert(loaded.warnings.end(), words.begin(), words.end());
  };
  if (source.configured) {
    warn(launch.warnings);
    loaded.launch.reset();
    return;
  }
  loaded.warnings.push_back(
      source.free_layout
          ? "`free_layout`: the layout of the launch script is left open"
          : fmt::format("taken from the launch script: {} (`free_layout` leaves the layout open)",
                        fmt::join(launch.taken, ", ")));
  warn(launch.warnings);
  warn(launch.unpinned);
}

std::vector<std::string> take_overlap(const MegatronLaunch& launch, bool sums_gradients,
                                      bool cuts_tensors, Framework& framework) {
  std::vector<std::string> lacking;
  const auto take = [&](bool used, bool told, const char* flag, double& exposed) {
    if (!used || told || exposed >= 1) return;
    exposed = 1;
    lacking.emplace_back(std::string_view(flag).substr(2));
  };
  FrameworkTraits& traits = framework.traits;
  take(sums_gradients, launch.overlaps_gradients, kOverlapsGradients, traits.data_exposed);
  take(cuts_tensors, launch.overlaps_tensors, kOverlapsTensors, traits.tensor_exposed);
  return lacking;
}

namespace {

template <typename Value>
void fill(std::optional<Value>& pin, const std::optional<Value>& launched) {
  if (!pin) pin = launched;
}

}  // namespace

// The request with the pins of a launch script where it has none of its own.
SearchRequest with_launch(SearchRequest request, const std::optional<MegatronLaunch>& launch) {
  if (!launch) return request;
  Pins& pins = request.search.pins;
  const Pins& own = launch->pins;
  const bool chunks_said = pins.chunks || request.layers_per_chunk || pins.schedule;
  const bool stages_said = !pins.stages.empty() || pins.pipeline || request.even_stages;
  if (!chunks_said) {
    pins.chunks = own.chunks;
    request.layers_per_chunk = launch->layers_per_chunk;
    pins.schedule = own.schedule;
  }
  if (!stages_said) pins.stages = own.stages;
  fill(pins.tensor, own.tensor);
  fill(pins.pipeline, own.pipeline);
  fill(pins.context, own.context);
  fill(pins.expert, own.expert);
  if (!pins.micro_batches) fill(pins.micro_batch, own.micro_batch);
  if (!pins.recompute) fill(pins.recompute_layers, own.recompute_layers);
  fill(pins.recompute, own.recompute);
  fill(pins.zero, own.zero);
  fill(pins.sequence_parallel, own.sequence_parallel);
  return request;
}

}  // namespace plait
