#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/plan/megatron_plan.h"
#include "plan/plan.h"
#include "plan/problem.h"

namespace plait {

// What a ds_config.json says of how a network is trained.
struct DeepspeedConfig {
  // Two of the three decide the third; the replicas are what the devices leave.
  std::optional<int> batch;         // train_batch_size
  std::optional<int> micro_batch;   // train_micro_batch_size_per_gpu
  std::optional<int> accumulation;  // gradient_accumulation_steps
  ZeroStage zero = ZeroStage::off;
  double offload = 0;
  Precision precision = Precision::fp32;
  Optimizer optimizer = Optimizer::adam;
  bool recomputes = false;
  int stages = 1;                     // "pipeline"
  std::vector<std::string> warnings;  // of what is read and priced as something else
};

// InputError for comments, keys that DeepSpeed does not have, values that a program fills in
// ("auto"), and what plait has no words for.
DeepspeedConfig read_deepspeed_config(const std::string& name, const std::string& text);

// The plan on all devices of the cluster. InputError where the batch sizes contradict each other.
ConfiguredPlan deepspeed_plan(const std::string& name, const DeepspeedConfig& config,
                              const Problem& problem);

}  // namespace plait
