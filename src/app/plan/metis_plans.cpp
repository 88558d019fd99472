#include "app/plan/metis_plans.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/plan/plain_pipelines.h"
#include "app/request/request_error.h"
#include "cost/engine.h"
#include "io/profile/import_metis.h"
#include "plan/names.h"

namespace plait {
namespace {

constexpr std::size_t kMostTypes = 5;  // 120 orders

MetisLimits limits_of(const PlanRequest& request) {
  if (!request.source.metis) return {};
  return {request.source.metis->max_tensor, request.source.metis->max_micro_batch};
}

bool has_metis_profile(const PlanRequest& request) {
  return !request.source.profile.empty() && is_metis_profile(request.source.profile);
}

// The first pin that Metis' rows have no words for.
std::optional<Dimension> pin_beyond(const Pins& pins) {
  if (pins.recompute.value_or(Recompute::none) != Recompute::none) return Dimension::recompute;
  if (pins.recompute_layers.value_or(0) > 0) return Dimension::recompute_layers;
  return pin_beyond_plain_pipelines(pins);
}

void refuse_beyond_formula(const PlanRequest& request, const Problem& problem) {
  const char* field = "cost_model";
  if (request.planner != "auto")
    throw RequestError(field, "metis has a search of its own; leave `planner` out");
  if (request.objective.needs_prices())
    throw RequestError(field, "metis does not know prices; leave limits and objectives out");
  if (!has_metis_profile(request))
    throw RequestError(field, "metis needs `profile` with a directory of Metis' measurements");
  if (problem.cluster.device_types.size() > kMostTypes)
    throw RequestError(
        field, fmt::format("metis puts device types in every order: at most {} types", kMostTypes));
  if (const auto pin = pin_beyond(request.search.pins))
    throw RequestError(name_of(*pin), "is not a part of Metis' formula (`cost_model` metis)");
}

// The plans with the costs of Metis' own formula, in the rows of its program.
ExportedPlans export_by_formula(const Problem& problem, const MetisOptimum& optimum) {
  std::vector<RankedPlan> plans;
  for (const MetisRanked& ranked : optimum.plans) {
    plans.push_back({ranked.plan, {}});
    plans.back().cost.step = ranked.cost.total();
  }
  return export_plans(*exporter_named("metis"), problem, plans);
}

}  // namespace

bool is_costed_by_metis(const PlanRequest& request) {
  if (!request.cost_model.empty()) return request.cost_model == "metis";
  return request.format == "metis" && request.planner == "auto" &&
         !request.objective.needs_prices() && !pin_beyond(request.search.pins) &&
         has_metis_profile(request);
}

ExportedPlans export_measured(const PlanRequest& request, const Problem& problem,
                              std::span<const RankedPlan> plans) {
  const Exporter& exporter = *exporter_named("metis");
  ExportedPlans all = export_plans(exporter, problem, plans);
  if (!has_metis_profile(request)) return all;
  const MetisTable table = load_metis_table(request.source.profile, problem, limits_of(request));
  const MetisFormula formula(problem, table);
  std::vector<RankedPlan> measured;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Plan& plan = plans[i].plan;
    const auto is_measured = [&](const Stage& stage) {
      return std::ranges::all_of(stage.spans, [&](const Span& span) {
        return formula.cut(stage.devices, span.data, span.tensor, plan.micro_batches).has_value();
      });
    };
    if (std::ranges::all_of(plan.stages, is_measured))
      measured.push_back(plans[i]);
    else
      all.left_out.push_back(
          fmt::format("plan {} has no row in the form of metis: the profile lacks a tensor degree "
                      "or batch of it",
                      i + 1));
  }
  const ExportedPlans kept = export_plans(exporter, problem, measured);
  all.text = kept.text;
  all.written = kept.written;
  return all;
}

PlanAnswer plan_by_metis_formula(const PlanRequest& request, const Session& session) {
  LoadedProblem loaded = load_problem(request.source);
  refuse_beyond_formula(request, loaded.problem);
  ResolvedPins resolved = resolve_pins(request, loaded.problem.model);
  if (!resolved.note.empty()) loaded.warnings.push_back(std::move(resolved.note));
  PlanAnswer out;
  out.problem = std::move(loaded.problem);
  out.options = request.search;
  out.options.pins = std::move(resolved.pins);
  if (const auto violation = violation_among(out.options.pins, out.problem.job.global_batch))
    throw RequestError(*violation);
  const MetisTable table =
      load_metis_table(request.source.profile, out.problem, limits_of(request));
  session.warn(loaded.warnings);
  out.warnings = std::move(loaded.warnings);
  const Stopwatch watch;
  const MetisOptimum optimum = search_metis_optimum(
      MetisFormula(out.problem, table), search_context(out.problem, out.options, session));
  out.elapsed = watch.elapsed();
  out.interrupted = session.stop.stop_requested();
  out.result.evaluations = optimum.evaluations;
  out.result.cut_short = optimum.cut_short;
  out.metis_costs.emplace();
  const CostEngine engine(out.problem);
  for (const MetisRanked& ranked : optimum.plans) {
    out.result.plans.push_back({ranked.plan, engine.simulate(ranked.plan)});
    out.metis_costs->push_back(ranked.cost);
  }
  if (out.found() && request.format == "metis")
    out.exported = export_by_formula(out.problem, optimum);
  else if (out.found() && !request.format.empty())
    out.exported = export_plans(*exporter_named(request.format), out.problem, out.result.plans);
  return out;
}

}  // namespace plait
