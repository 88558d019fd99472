#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/request/memory_rule.h"
#include "io/plan/plan_json.h"
#include "plan/check.h"
#include "report/table.h"

namespace plait {

// Say whether a saved plan is valid and fits in memory.
struct CheckRequest {
  std::string name;  // what the answer calls the plan: its file
  PlanFile file;     // as it stands, sound or not
  MemoryRule memory{};
};

// A program, and why it does not run the plan; "" when it does.
struct Runner {
  std::string_view target;
  std::string why_not;
  std::string not_written{};  // why `plait export` has no files for it, though it runs the plan
};

struct CheckAnswer {
  std::string name;
  PlanFile file;
  std::vector<Violation> violations;
  std::optional<Estimate> cost;  // of a valid plan
  std::vector<Runner> runners;   // the same, in the order of plan/target.h

  bool valid() const { return violations.empty(); }
  bool fits() const { return cost && cost->fits; }
};

CheckAnswer answer(const CheckRequest& request);
std::string to_json(const CheckAnswer& answer);
std::string as_text(const CheckAnswer& answer, const Style& style);

}  // namespace plait
