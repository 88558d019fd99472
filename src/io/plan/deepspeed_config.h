#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/plan/megatron_plan.h"
#include "plan/plan.h"
#include "plan/problem.h"

namespace plait {

inline constexpr char kParametersInHostMemory[] =
    "parameters in host memory are not priced; without this the rest is: weights stay on the "
    "devices, which ZeRO 3 cuts them over";

// Two of the three decide the third; the replicas are what the devices leave.
struct DeepspeedBatch {
  std::optional<int> batch;         // train_batch_size
  std::optional<int> micro_batch;   // train_micro_batch_size_per_gpu
  std::optional<int> accumulation;  // gradient_accumulation_steps
};

// What the program that starts DeepSpeed was told: it stands where the file says "auto" or nothing.
struct DeepspeedFilled {
  DeepspeedBatch sizes;
  std::optional<Precision> precision;
  std::optional<Recompute> recompute;
};

// What a ds_config.json says of how a network is trained.
struct DeepspeedConfig {
  DeepspeedBatch sizes;
  ZeroStage zero = ZeroStage::off;
  double offload = 0;
  int zero_group = 0;    // devices that states are cut over; 0 = all replicas
  int reduce_bytes = 0;  // of a gradient that is summed; 0 = as DeepSpeed does
  Precision precision = Precision::fp32;
  Optimizer optimizer = Optimizer::adam;
  bool recomputes = false;
  int stages = 1;                     // "pipeline"
  std::vector<std::string> warnings;  // of what is read and priced as something else
};

// InputError for comments, keys that DeepSpeed does not have, what plait has no words for, values
// that contradict `filled`, and all values at once that are "auto" and not in it.
DeepspeedConfig read_deepspeed_config(const std::string& name, const std::string& text,
                                      const DeepspeedFilled& filled = {});

// The plan on all devices of the cluster. InputError where the batch sizes contradict each other.
ConfiguredPlan deepspeed_plan(const std::string& name, const DeepspeedConfig& config,
                              const Problem& problem);

}  // namespace plait
