#pragma once

#include <memory>
#include <optional>
#include <string>

#include "app/request/search_request.h"
#include "io/plan/plan_json.h"
#include "report/table.h"

namespace plait {

// A plan with all that it was made from: what Python's Plan holds. It never changes, so that
// threads may share it.
struct SavedPlan {
  std::shared_ptr<const Problem> problem;
  Plan plan;
  std::string made_by;
  std::optional<Estimate> cost;  // where a search gave it

  friend bool operator==(const SavedPlan& a, const SavedPlan& b) {
    return a.plan == b.plan && (a.problem == b.problem || *a.problem == *b.problem);
  }
};

// From a file, or from the text of one, which begins with a brace; with a plan that passes
// check_plan(), or as it stands.
SavedPlan read_saved_plan(const std::string& path_or_text);
SavedPlan read_any_plan(const std::string& path_or_text);

PlanFile file_of(const SavedPlan& saved);
// The text of the file that `plait plan -o` writes.
std::string file_text(const SavedPlan& saved);
// As a plan of a result (app/request/ranked_plan_json.h); costed where it has no cost yet.
std::string ranked_json(const SavedPlan& saved);
std::string as_text(const SavedPlan& saved, const Style& style);
std::string timeline(const SavedPlan& saved);  // an SVG
std::string trace(const SavedPlan& saved);     // a file for Perfetto

}  // namespace plait
