#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/request/search_request.h"
#include "app/request/session.h"
#include "report/table.h"

namespace plait {

// Run all planners on one problem. `planner` and `search.keep` of the request are not used.
struct CompareRequest : SearchRequest {};

// How a planner did.
struct PlannerResult {
  std::string_view planner;
  SearchResult result;
  Seconds elapsed;

  bool found() const { return !result.plans.empty(); }
  Seconds step() const { return result.plans.front().cost.step; }
};

struct CompareAnswer {
  Problem problem;
  std::vector<PlannerResult> planners;  // `exhaustive` only where the problem is small
  std::vector<std::string> warnings;
  bool any_program = false;  // plans need not be such as the framework runs

  bool found() const;  // by any of them
  // Step time over auto's, less 1; nothing where either has no plan.
  std::optional<double> behind_auto(const PlannerResult& entry) const;
};

CompareAnswer answer(const CompareRequest& request, const Session& session);
std::string to_json(const CompareAnswer& answer);
std::string as_text(const CompareAnswer& answer, const Style& style);

}  // namespace plait
