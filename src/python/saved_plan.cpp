#include "python/saved_plan.h"

#include "app/request/ranked_plan_json.h"
#include "app/request/saved_target.h"
#include "base/version.h"
#include "cost/engine.h"
#include "report/plan_tables.h"
#include "report/timeline.h"
#include "report/timeline_svg.h"

namespace plait {
namespace {

SavedPlan saved(PlanFile file) {
  return {std::make_shared<const Problem>(std::move(file.problem)), std::move(file.plan),
          std::move(file.made_by), std::nullopt};
}

Estimate cost_of(const SavedPlan& saved) {
  return saved.cost ? *saved.cost : CostEngine(*saved.problem).simulate(saved.plan);
}

}  // namespace

SavedPlan read_saved_plan(const std::string& path_or_text) {
  return saved(read_plan_file(path_or_text));
}

SavedPlan read_any_plan(const std::string& path_or_text) {
  return saved(plan_file_from_json(read_json_document(path_or_text, "plan")));
}

PlanFile file_of(const SavedPlan& saved) { return {*saved.problem, saved.plan, saved.made_by}; }

std::string file_text(const SavedPlan& saved) {
  return plan_file_to_json(*saved.problem, saved.plan, cost_of(saved), saved.made_by);
}

std::string ranked_json(const SavedPlan& saved) {
  return ranked_plan_json(*saved.problem, {saved.plan, cost_of(saved)});
}

std::string as_text(const SavedPlan& saved, const Style& style) {
  const Estimate cost = cost_of(saved);
  return problem_heading(*saved.problem, style, saved_target(file_of(saved)).name) + "\n" +
         plan_table(*saved.problem, {{saved.plan, cost}}, style) + "\n" +
         stage_table(*saved.problem, saved.plan, cost, style);
}

std::string timeline(const SavedPlan& saved) {
  Trace trace;
  const Estimate cost = CostEngine(*saved.problem).simulate(saved.plan, &trace);
  return timeline_svg(saved.plan, cost, trace);
}

std::string trace(const SavedPlan& saved) {
  Trace trace;
  const Estimate cost = CostEngine(*saved.problem).simulate(saved.plan, &trace);
  return predicted_trace(saved.plan, cost, trace);
}

}  // namespace plait
