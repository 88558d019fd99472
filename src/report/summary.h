#pragma once

#include <string>
#include <string_view>

#include "model/layers.h"
#include "plan/problem.h"

namespace plait {

// One line each, for the head of a result.
//   "llama-2-7b: 6.74 B parameters, 32 layers, sequences of 4,096 tokens"
//   "2 x 8 A100-80GB + 4 x 4 V100-16GB: 32 GPUs, $114.50 an hour"
//   "global batch 512 (2.1 M tokens), bf16, adam, flash attention, as megatron runs it"
std::string summary_of(const Model& model);
std::string summary_of(const Cluster& cluster);
//
// `target` names the row of targets that the plans below are of, "" = that of the job's framework.
// Where it is another one, the framework says how fast they are, not that it runs them:
//   "..., at the speed of megatron, whichever program runs it"  (any)
//   "..., as torchtitan runs it, at the speed of fsdp-compile"
std::string summary_of(const Problem& problem, std::string_view target = "");

// "speeds: H100 fitted to published runs; V100-16GB copied from A100-40GB, without a run of its
// own"
std::string how_sure(const Problem& problem);

// "8 A100-80GB + 2 T4" for the devices of a stage.
std::string types_of(const Cluster& cluster, const std::vector<DeviceId>& devices);

}  // namespace plait
