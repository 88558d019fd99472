#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/request/memory_rule.h"
#include "app/request/prices.h"
#include "cost/engine.h"
#include "io/format/json_writer.h"
#include "io/plan/plan_json.h"
#include "report/table.h"

namespace plait {

// Predict time and memory of every stage and device of a saved plan.
struct EstimateRequest {
  std::string name;    // what the answer calls the plan: its file
  PlanFile file;       // with a valid plan
  bool trace = false;  // also when every stage would run what
  MemoryRule memory{};
  std::vector<StatedPrice> prices{};
};

struct EstimateAnswer {
  std::string name;
  PlanFile file;
  Estimate formula;
  Estimate simulated;
  std::vector<UnitSource> sources;
  std::optional<std::string> trace;  // a file for Perfetto, where it was asked for
};

EstimateAnswer answer(const EstimateRequest& request);

// Why the plan does not fit; "" when it does.
std::string reason(const EstimateAnswer& answer);

// The members of its JSON, to be added to.
JsonObject estimate_object(const EstimateAnswer& answer);
std::string to_json(const EstimateAnswer& answer);
std::string as_text(const EstimateAnswer& answer, const Style& style);

}  // namespace plait
