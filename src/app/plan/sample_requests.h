#pragma once

// Requests for tests: small enough to be answered in milliseconds.

#include <string>

#include "app/plan/plan.h"
#include "app/request/search_request.h"
#include "base/error.h"
#include "base/sample_complaint.h"
#include "io/plan/plan_json.h"

namespace plait::samples {

// GPT-2 on 4 A10 of one node, 8 samples a step. It fits.
inline SearchRequest small_request() {
  SearchRequest request;
  request.source.model = "gpt2";
  request.source.cluster = "1xA10:4";
  request.source.job.global_batch = 8;
  request.search.keep = 3;
  return request;
}

inline PlanRequest small_plan_request() {
  PlanRequest request;
  static_cast<SearchRequest&>(request) = small_request();
  return request;
}

// The best plan for it, as a file has it.
inline PlanFile small_plan_file() {
  PlanAnswer found = answer(small_plan_request(), Session());
  return {std::move(found.problem), std::move(found.result.plans.front().plan)};
}

}  // namespace plait::samples
