#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/request/search_request.h"
#include "io/plan/plan_json.h"

namespace plait {

// Somebody's configuration for another program, on a cluster.
struct ConfiguredRequest {
  std::string from;      // configuration_forms()
  std::string path;      // the launch script or the ds_config.json
  ProblemSource source;  // the cluster; the model where the file does not say it
};
const std::vector<std::string_view>& configuration_forms();  // megatron deepspeed

// The configuration as a plan.
struct Configured {
  PlanFile file;
  Target target;  // what the program runs and plait can write for it
  std::vector<std::string> warnings;
};
Configured load_configured(const ConfiguredRequest& request);

}  // namespace plait
