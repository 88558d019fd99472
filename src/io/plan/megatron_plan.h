#pragma once

#include <string>

#include "io/model/megatron_launch.h"
#include "plan/plan.h"
#include "plan/problem.h"

namespace plait {

// A plan that somebody's configuration is, with the batch that it trains on.
struct ConfiguredPlan {
  Plan plan;
  int global_batch = 0;
  int zero_group = 0;  // Job::zero_group
};

// What Megatron-LM makes of its flags on all devices of the cluster, in rank order: stages by the
// layout or evenly, data parallelism on what tensor, context and pipeline parallelism leave. `name`
// stands for the script in messages. InputError where Megatron-LM would refuse, too.
ConfiguredPlan megatron_plan(const std::string& name, const MegatronLaunch& launch,
                             const Problem& problem);

// Chunks of consecutive units on consecutive ranks, all with the same degrees: what programs with
// one layout for all stages run.
struct LaunchedLayout {
  int tensor = 1;
  int data = 1;
  int context = 1;
  int stages = 1;
  std::vector<LayoutStage> chunks;  // in pipeline order, a multiple of `stages`
  Recompute recompute = Recompute::none;
  std::optional<int> recomputed_layers;  // of each chunk, the first; nothing = all or none
};
// The stages of it, on the devices of the cluster from the first on.
std::vector<Stage> stages_of(const LaunchedLayout& layout, const Model& model);

}  // namespace plait
