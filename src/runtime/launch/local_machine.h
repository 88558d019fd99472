#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "runtime/launch/rank.h"

namespace plait::runtime {

// What this machine has for the ranks that run on it.
struct LocalMachine {
  std::optional<Bytes> free_memory;  // of the host; nothing = unknown
  std::vector<Bytes> gpus;           // memory of each that may be used; 0 = unknown
};

// Looks at /proc, the limit of the control group, and asks nvidia-smi where the machine has a GPU
// of NVIDIA's. CUDA_VISIBLE_DEVICES counts.
LocalMachine local_machine(const Variables& variables);

// "MemAvailable" of /proc/meminfo.
std::optional<Bytes> available_memory(std::string_view meminfo);
// What a control group may still take: its memory.max less its memory.current; nothing for "max".
std::optional<Bytes> group_memory(std::string_view max, std::string_view current);
// One line for each GPU, in MiB: nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits.
std::vector<Bytes> gpu_memories(std::string_view listing);
// Those of `count` GPUs that CUDA_VISIBLE_DEVICES leaves: numbers or names up to the first that is
// not one of them. All where the variable is not set.
int visible_gpus(int count, const std::optional<std::string>& variable);

}  // namespace plait::runtime
