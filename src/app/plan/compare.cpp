#include "app/plan/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "app/plan/other_programs.h"
#include "app/request/prediction_error.h"
#include "app/request/ranked_plan_json.h"
#include "report/plan_tables.h"
#include "report/quantities.h"

namespace plait {
namespace {

// Problems that the exhaustive planner is run on, and how many plans it may look at.
constexpr int kSmallCluster = 8;
constexpr int kFewUnits = 12;
constexpr std::int64_t kMostPlans = 200'000;

bool is_small(const Problem& problem) {
  return problem.cluster.device_count() <= kSmallCluster && problem.model.unit_count() <= kFewUnits;
}

std::string why_nothing(const Problem& problem, const PlannerResult& entry) {
  if (entry.result.nearest)
    return "nothing fits; in the nearest, " + shortage(problem, *entry.result.nearest);
  if (entry.result.cut_short) return "nothing found in time";
  return entry.result.reason.empty() ? "nothing fits" : entry.result.reason;
}

// How likely it is that the plan and auto's come in the order that they are predicted in.
double order_to_auto(double behind) { return chance_of_order(builtin_error_table(), 1 + behind); }

// nullptr when nothing was found.
const PlannerResult* best_of(const CompareAnswer& answer) {
  const PlannerResult* best = nullptr;
  for (const PlannerResult& entry : answer.planners)
    if (entry.found() && (!best || entry.step() < best->step())) best = &entry;
  return best;
}

// How far off the best plan may be, and which planners' plans cannot be told from it.
std::string errors_in_words(const CompareAnswer& answer) {
  const PlannerResult* best = best_of(answer);
  if (!best) return "";
  std::vector<std::string> close;
  for (const PlannerResult& entry : answer.planners) {
    if (!entry.found() || entry.step() <= best->step()) continue;
    if (order_after(best->result.plans.front(), entry.result.plans.front()) < kSureOrder)
      close.emplace_back(entry.planner);
  }
  std::string out = step_band_in_words(answer.problem, best->result.plans.front());
  if (!close.empty())
    out += fmt::format(
        " Within the error of the difference of two predictions: {}. Measured plans that are "
        "predicted so close came in the predicted order in fewer than {} of pairs.",
        fmt::join(close, ", "), percent(kSureOrder));
  return out;
}

}  // namespace

bool CompareAnswer::found() const { return std::ranges::any_of(planners, &PlannerResult::found); }

std::optional<double> CompareAnswer::behind_auto(const PlannerResult& entry) const {
  const auto usual = std::ranges::find(planners, "auto", &PlannerResult::planner);
  if (usual == planners.end() || !usual->found() || !entry.found()) return std::nullopt;
  return entry.step() / usual->step() - 1;
}

CompareAnswer answer(const CompareRequest& request, const Session& session) {
  // Papers' planners have spaces of their own; the free one holds them all.
  CompareRequest open = request;
  if (open.source.runs_on.empty()) open.source.runs_on = "any";
  LoadedSearch loaded = load_search(open);
  session.warn(loaded.warnings);
  CompareAnswer out{std::move(loaded.problem), {}, std::move(loaded.warnings)};
  out.any_program = loaded.options.target.name == "any";
  for (const Planner& planner : planners()) {
    const bool exhaustive = planner.name == "exhaustive";
    if (session.stop.stop_requested() || (exhaustive && !is_small(out.problem))) continue;
    // Each planner makes its own tables of costs, so that their times can be compared.
    SearchContext context = search_context(out.problem, loaded.options, session);
    context.options.keep = 1;
    if (exhaustive) context.options.max_evaluations = kMostPlans;
    const Stopwatch watch;
    SearchResult result = run_search(planner, context);
    out.planners.push_back({planner.name, std::move(result), watch.elapsed()});
  }
  return out;
}

std::string as_text(const CompareAnswer& answer, const Style& style) {
  Table table({{"planner", Align::left},
               {"step"},
               {"to auto", Align::right, 1},
               {"plans costed", Align::right, 3},
               {"search", Align::right, 2},
               {"", Align::left},
               {"best plan", Align::left}});
  for (const PlannerResult& entry : answer.planners) {
    const auto behind = answer.behind_auto(entry);
    std::string relation;
    if (behind && entry.planner != "auto")
      relation = std::abs(*behind) < 5e-5 ? "the same" : change(*behind, "slower", "faster");
    table.row({std::string(entry.planner), entry.found() ? in_words(entry.step()) : "-", relation,
               grouped(static_cast<double>(entry.result.evaluations)), in_words(entry.elapsed),
               entry.result.cut_short ? "cut short" : "",
               entry.found() ? short_description(entry.result.plans.front().plan)
                             : why_nothing(answer.problem, entry)});
  }
  std::string out = problem_heading(answer.problem, style, answer.any_program ? "any" : "") + "\n" +
                    table.str(style) + paragraph(errors_in_words(answer), style);
  const PlannerResult* best = best_of(answer);
  if (answer.any_program && best)
    out += paragraph("The planners were free to choose what no one program runs. " +
                         runners_remark(answer.problem, best->result.plans.front().plan),
                     style);
  return out;
}

std::string to_json(const CompareAnswer& answer) {
  std::vector<std::string> rows;
  for (const PlannerResult& entry : answer.planners) {
    const auto behind = answer.behind_auto(entry);
    const auto& bound = entry.result.lower_bound;
    JsonObject row;
    row.text("planner", entry.planner)
        .json("step_s", entry.found() ? json_number(entry.step().value) : "null")
        .json("slower_than_auto", behind ? json_number(*behind) : "null")
        .json("chance_of_order", behind ? json_number(order_to_auto(*behind)) : "null")
        .number("evaluations", static_cast<double>(entry.result.evaluations))
        .number("search_s", entry.elapsed.value)
        .boolean("cut_short", entry.result.cut_short)
        .json("lower_bound_s", bound ? json_number(bound->value) : "null");
    if (entry.found())
      row.json("best", ranked_plan_json(answer.problem, entry.result.plans.front()));
    else
      row.text("reason", why_nothing(answer.problem, entry));
    rows.push_back(row.str());
  }
  return lay_out_json(JsonObject()
                          .json("planners", json_list(rows))
                          .json("warnings", sentences_json(answer.warnings))
                          .text("model", answer.problem.model.name)
                          .text("cluster", answer.problem.cluster.name)
                          .str());
}

}  // namespace plait
