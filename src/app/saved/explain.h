#pragma once

#include <string>
#include <vector>

#include "app/request/session.h"
#include "io/plan/plan_json.h"
#include "report/table.h"

namespace plait {

// Say why a saved plan is as fast as it is, and what a change would do.
struct ExplainRequest {
  PlanFile file;                    // with a valid plan
  Seconds time_limit = Seconds(3);  // of each search among other plans
  int threads = 1;
};

// A plan that differs in one thing from the one that is explained.
struct Alternative {
  std::string change;  // "twice the tensor degree, half the data degree"
  RankedPlan plan;
};

// Where the time of a step goes, seen from the stage that has most to do; adds up to the step.
struct StepShares {
  Seconds compute, recompute, communication, bubble, after_pipeline;
};
StepShares shares_of(const RankedPlan& ranked);

struct Explanation {
  Problem problem;
  std::string made_by;  // of the file; "" = it does not say
  RankedPlan subject;
  std::vector<Alternative> alternatives;  // fastest first, those that do not fit last
  SearchResult search;                    // without any pin
  std::string_view target;                // whose plans were searched
};

Explanation answer(const ExplainRequest& request, const Session& session);
std::string to_json(const Explanation& explanation);
std::string as_text(const Explanation& explanation, const Style& style);

}  // namespace plait
