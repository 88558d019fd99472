#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/request/configured.h"
#include "app/request/session.h"
#include "app/saved/estimate.h"

namespace plait {

// Price it, and look for what would be faster on the same devices with the same program.
struct ConfiguredEstimateRequest {
  ConfiguredRequest configured;
  bool trace = false;
  int threads = 1;
  Seconds time_limit = Seconds(60);
};

struct ConfiguredEstimate {
  EstimateAnswer estimate;
  std::string program;               // in sentences: "Megatron-LM"
  std::optional<RankedPlan> faster;  // nothing = the configuration is the best plan known
  std::vector<std::string> warnings;
  // What the faster plan is made for: the same, with flags of the program that the configuration
  // does not have.
  Problem improved{};
  std::vector<std::string> switches{};
};
ConfiguredEstimate answer(const ConfiguredEstimateRequest& request, const Session& session);

// The faster plan with all that it was made from, as plan files have it; "" where there is none.
std::string faster_plan_file(const ConfiguredEstimate& answer);

std::string to_json(const ConfiguredEstimate& answer);
std::string as_text(const ConfiguredEstimate& answer, const Style& style);

}  // namespace plait
