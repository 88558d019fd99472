#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/request/search_request.h"
#include "io/plan/deepspeed_config.h"
#include "io/plan/plan_json.h"

namespace plait {

// Somebody's configuration for another program, on a cluster.
struct ConfiguredRequest {
  std::string from;      // configuration_forms()
  std::string path;      // a launch script, a ds_config.json or its JSON itself, an accelerate.yaml
  ProblemSource source;  // the cluster; the model where the file does not say it
  // What a ds_config.json or an accelerate.yaml leaves to the program that it starts; its global
  // batch and number format are those of `source`.
  DeepspeedFilled told{};
};
const std::vector<std::string_view>& configuration_forms();  // megatron deepspeed fsdp

// The first field that tells what a ds_config.json leaves open; "" = none does.
std::string_view first_told(const ConfiguredRequest& request);

// The configuration as a plan.
struct Configured {
  PlanFile file;
  Target target;  // what the program runs and plait can write for it
  std::vector<std::string> warnings;
  // Flags by which the program overlaps communication with compute and the script does not have;
  // the framework is priced without. `with_switches` is the framework as it is with them.
  std::vector<std::string> switches{};
  Framework with_switches{};
};
Configured load_configured(const ConfiguredRequest& request);

}  // namespace plait
