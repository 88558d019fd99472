#pragma once

#include <optional>
#include <string>

#include "io/plan/deepspeed_config.h"

namespace plait {

// What a configuration file of Hugging Face accelerate says of how a network is trained: by FSDP 1
// or 2, or with replicas that keep everything. Batch sizes are the program's.
struct AccelerateConfig {
  DeepspeedConfig layout;       // in the words that a ds_config.json has for the same things
  bool hybrid = false;          // states are cut over `zero_group` devices, or those of a node
  int zero_group = 0;           // 0 = not said
  std::optional<int> machines;  // that the file starts
  std::optional<int> processes;
};

// InputError for what is no such file, for sections that other programs run (DeepSpeed,
// Megatron-LM), and for what plait has no words for.
AccelerateConfig read_accelerate_config(const std::string& name, const std::string& text,
                                        const DeepspeedFilled& filled = {});

}  // namespace plait
