#include "app/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/plan/aceso_plans.h"
#include "app/plan/metis_plans.h"
#include "app/plan/other_programs.h"
#include "app/plan/quick_search.h"
#include "app/request/request_error.h"
#include "cost/engine.h"
#include "io/plan/plan_json.h"
#include "plan/names.h"
#include "report/plan_tables.h"

namespace plait {
namespace {

// The plans that are best in time and money, over all ways to leave nodes out.
void search_mixes(const PlanRequest& request, const SearchContext& context, PlanAnswer& out) {
  const std::vector<MixKind> kinds = mix_kinds(context.problem.cluster);
  if (mix_count(kinds) > kMaxMixes)
    throw RequestError(
        "cluster", fmt::format("has {} kinds of nodes, of which there are more than {} mixes to "
                               "rent; name fewer kinds",
                               kinds.size(), kMaxMixes));
  Problem rented = context.problem;
  rented.cluster.is_part = true;
  const SearchContext weighed{rented, context.options, context.stop, context.on_improvement,
                              context.on_progress};
  ParetoResult found = pareto_front(planner_named(request.planner), weighed, kinds);
  out.mixes = found.mixes;
  out.result.evaluations = found.evaluations;
  out.result.cut_short = found.cut_short;
  out.result.nearest = std::move(found.nearest);
  Chosen chosen = choose(request.objective, context.problem, found.front);
  out.missed = std::move(chosen.missed);
  if (out.missed.starts_with("the fastest training"))
    out.missed += "; `plait pareto` finds how many nodes meet a deadline";
  for (MixPoint& point : chosen.points)
    if (static_cast<int>(out.result.plans.size()) < context.options.keep)
      out.result.plans.push_back(std::move(point.best));
}

// Tells as before, and writes it down.
using Tell = std::function<void(const RankedPlan&, std::int64_t evaluations)>;
Tell logged(Tell tell, const Stopwatch& watch, std::vector<SearchEvent>& log) {
  return [tell = std::move(tell), &watch, &log](const RankedPlan& best, std::int64_t evaluations) {
    log.push_back({.elapsed = watch.elapsed(),
                   .evaluations = evaluations,
                   .best = best.cost.step,
                   .what = short_description(best.plan)});
    if (tell) tell(best, evaluations);
  };
}

// Of programs with one layout the best plan is the same for any number of plans that are shown, up
// to the usual one: searches for others come across better ones now and then.
void search_for_plans(const PlanRequest& request, SearchContext context, PlanAnswer& out) {
  const auto asked = static_cast<std::size_t>(context.options.keep);
  if (context.options.target.one_layout)
    context.options.keep = std::max(context.options.keep, SearchOptions{}.keep);
  out.result = run_search(planner_named(request.planner), context);
  if (out.result.plans.size() > asked) out.result.plans.resize(asked);
}

void search(const PlanRequest& request, const Session& session, PlanAnswer& out) {
  const CostEngine engine(out.problem);
  SearchContext context = search_context(out.problem, out.options, session);
  context.engine = &engine;
  const Stopwatch watch;
  context.on_improvement = logged(context.on_improvement, watch, out.log);
  out.length = length_of(request.objective, out.problem);
  if (request.objective.needs_prices())
    search_mixes(request, context, out);
  else
    search_for_plans(request, context, out);
  out.elapsed = watch.elapsed();
  add_passes(out.result, out.elapsed, out.log);
  out.interrupted = session.stop.stop_requested();
}

// Where older devices decided precision and attention, the newer ones alone may be faster with what
// they have; whichever is slower is another way, if it is near.
void try_newer_devices(const PlanRequest& request, const Job& job, const Session& session,
                       PlanAnswer& out) {
  constexpr double kNear = 1.1;
  PlanAnswer newer;
  newer.problem = out.problem;
  newer.options = out.options;
  newer.problem.job = job;
  const auto is_new = [&](const DeviceType& type) {
    return !why_not(newer.options.target, newer.problem.job, type);
  };
  if (std::ranges::none_of(newer.problem.cluster.device_types, is_new)) return;
  newer.options.time_limit -= out.elapsed;
  if (newer.options.time_limit <= Seconds(0)) return;
  search(request, session, newer);
  if (!newer.found()) return;
  const bool wins =
      !out.found() || newer.result.plans.front().cost.step < out.result.plans.front().cost.step;
  if (wins) {
    std::swap(out.problem.job, newer.problem.job);
    std::swap(out.result, newer.result);
  }
  const std::string where =
      fmt::format("{}, in {} with {} attention", wins ? "all devices" : "the newer devices alone",
                  name_of(newer.problem.job.precision), name_of(newer.problem.job.attention));
  const std::string asks =
      fmt::format("`precision` {} `attention` {}", name_of(newer.problem.job.precision),
                  name_of(newer.problem.job.attention));
  out.elapsed += newer.elapsed;
  out.result.evaluations += newer.result.evaluations;
  // Both may be one plan on the newer devices.
  if (newer.found() && newer.result.plans.front().plan != out.result.plans.front().plan &&
      newer.result.plans.front().cost.step < kNear * out.result.plans.front().cost.step)
    out.other_ways.push_back({where, asks, newer.result.plans.front()});
}

// The layout that is to be judged; nothing where the request does not say one, or asks for more
// than the fastest plan.
std::optional<SaidLayout> said_layout(const PlanRequest& request, const LoadedSearch& loaded) {
  if (request.objective.needs_prices() || request.planner != "auto" || !request.format.empty())
    return std::nullopt;
  if (loaded.own_pins) return layout_of_script(loaded);
  std::optional<SaidLayout> said = pinned_layout(
      loaded.options.pins, request.search.pins.schedule.has_value(), loaded.options.target);
  // What the batch followed from is not said any more.
  const bool followed = request.source.job.global_batch == 0 && !request.source.batch_tokens;
  if (said && followed)
    said->request += fmt::format(", with `global_batch` {}", loaded.problem.job.global_batch);
  return said;
}

void check_names(const PlanRequest& request) {
  planner_named(request.planner);
  if (!request.cost_model.empty())
    refuse_unknown("cost_model", request.cost_model, cost_model_names());
  if (request.format.empty()) return;
  const std::vector<std::string> formats = format_names();
  refuse_unknown("format", request.format, {formats.begin(), formats.end()});
}

}  // namespace

const std::vector<std::string_view>& cost_model_names() {
  static const std::vector<std::string_view> kNames{"plait", "metis", "aceso"};
  return kNames;
}

std::optional<double> PlanAnswer::gap() const {
  if (!result.lower_bound || !found()) return std::nullopt;
  return std::max(0.0, result.plans.front().cost.step / *result.lower_bound - 1);
}

PlanAnswer answer(const PlanRequest& request, const Session& session) {
  const Stopwatch watch;
  check_names(request);
  if (is_costed_by_metis(request)) return plan_by_metis_formula(request, session);
  if (is_costed_by_aceso(request)) return plan_by_aceso_formula(request, session);
  PlanRequest pinned = request;
  const Exporter* exporter = exporter_named(request.format);
  if (exporter && exporter->narrow) exporter->narrow(pinned.search.pins);
  // Another program's words say what it can run, and papers' planners have spaces of their own.
  const bool own_space = request.planner != "auto" && request.planner != "exhaustive";
  if ((exporter || own_space) && pinned.source.runs_on.empty())
    pinned.source.runs_on = request.format == "aceso" ? "aceso" : "any";
  LoadedSearch loaded = load_search(pinned);
  check_objective(request.objective, loaded.problem);
  for (std::string& warning : missing_collectives(request, loaded.problem))
    loaded.warnings.push_back(std::move(warning));
  session.warn(loaded.warnings);
  const std::optional<SaidLayout> said = said_layout(request, loaded);
  PlanAnswer out;
  out.problem = std::move(loaded.problem);
  out.options = std::move(loaded.options);
  out.warnings = std::move(loaded.warnings);
  out.explain_search = request.explain_search;
  out.options.initial = initial_plans(request, out.problem);
  if (!is_hopeless(out.problem, out.options.pins)) search(request, session, out);
  if (loaded.newer_job && !request.objective.needs_prices())
    try_newer_devices(request, *loaded.newer_job, session, out);
  if (said) judge_layout(*said, session, out);
  if (out.found() && request.source.runs_on == "any")
    out.remarks.push_back(runners_remark(out.problem, out.result.plans.front().plan));
  if (std::string remark = no_files_remark(out); !remark.empty() && !exporter)
    out.remarks.push_back(std::move(remark));
  for (OtherWay& way : other_ways(request, out, session)) out.other_ways.push_back(std::move(way));
  if (!out.found() && out.missed.empty())
    out.no_plan =
        why_no_plan(out.problem, in_time_left(out.options, watch.elapsed()), out.result, session);
  if (!out.found() || !exporter) return out;
  out.exported = request.format == "metis" ? export_measured(request, out.problem, out.result.plans)
                                           : export_plans(*exporter, out.problem, out.result.plans);
  return out;
}

std::string plan_file(const PlanAnswer& answer) {
  const RankedPlan& best = answer.result.plans.front();
  return plan_file_to_json(answer.problem, best.plan, best.cost);
}

}  // namespace plait
