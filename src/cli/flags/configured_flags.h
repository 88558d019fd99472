#pragma once

#include <vector>

#include "app/request/configured.h"
#include "cli/flags/plan_arguments.h"

namespace plait {

// What the flags say of a configuration of another program.
struct ConfiguredArguments {
  PlanArguments plan;  // its flags that say the same here
  MemoryRule memory;
  std::vector<StatedPrice> prices;
};

// --model, --cluster, --micro-batch, ..: what the configuration runs on, and what it leaves open;
// --memory-limit, --reserve and --price, which saved plans take, too.
std::vector<Flag> configured_flags(ConfiguredArguments& arguments);
std::vector<Flag> memory_and_price_flags(ConfiguredArguments& arguments);

// The configuration of the program `from` in a file.
ConfiguredRequest configured_request(const std::string& from, const std::string& path,
                                     const ConfiguredArguments& arguments);

}  // namespace plait
