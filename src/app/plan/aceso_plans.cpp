#include "app/plan/aceso_plans.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <set>
#include <utility>

#include "app/plan/plain_pipelines.h"
#include "app/request/request_error.h"
#include "cost/engine.h"
#include "cost/framework/framework.h"
#include "io/format/unit_factors.h"
#include "io/plan/aceso_plan.h"
#include "io/profile/aceso_models.h"
#include "io/profile/import_aceso.h"
#include "io/profile/import_profile.h"
#include "plan/names.h"
#include "search/papers/aceso_optimum.h"

namespace plait {
namespace {

constexpr const char* kField = "cost_model";

// The first pin that Aceso's configurations have no words for.
std::optional<Dimension> pin_unknown_to_aceso(const Pins& pins) {
  if (const auto beyond = pin_beyond_plain_pipelines(pins)) return beyond;
  if (pins.tensor) return Dimension::tensor;
  if (pins.data) return Dimension::data;
  if (pins.recompute) return Dimension::recompute;
  if (pins.micro_batches) return Dimension::micro_batches;
  if (!pins.stages.empty()) return Dimension::stages;
  return std::nullopt;
}

int devices_of_first_node(const Cluster& cluster) {
  return static_cast<int>(std::ranges::count(cluster.devices, 0, &Device::node));
}

void refuse_unknown_to_aceso(const PlanRequest& request, const Problem& problem) {
  if (request.planner != "auto" && request.planner != "aceso")
    throw RequestError(kField, "aceso goes with the planners auto and aceso");
  if (request.objective.needs_prices())
    throw RequestError(kField, "aceso does not know prices; leave limits and objectives out");
  if (const auto pin = pin_unknown_to_aceso(request.search.pins))
    throw RequestError(name_of(*pin), "is not chosen under Aceso's formula (`cost_model` aceso)");
  const Cluster& cluster = problem.cluster;
  if (cluster.device_types.size() > 1)
    throw RequestError(kField, "aceso knows devices of one type only");
  if (devices_of_first_node(cluster) * static_cast<int>(cluster.nodes.size()) !=
      cluster.device_count())
    throw RequestError(kField, "aceso knows nodes of equally many devices only");
}

// Its MB are 2^20 bytes: a limit in MB or GB is meant in them, one in MiB or GiB is what it says.
Bytes limit_of(const Problem& problem) {
  const Bytes limit = problem.job.memory_limit;
  if (limit <= Bytes(0)) return usable_memory(problem.job, problem.cluster.device_types.front());
  const bool decimal = std::fmod(limit.value, 1e6) == 0 && std::fmod(limit.value, kMebibyte) != 0;
  return decimal ? limit * (kMebibyte / 1e6) : limit;
}

// Sizes of micro-batches of the files.
std::set<int> measured_micro_batches(const AcesoTable& table) {
  std::set<int> sizes;
  for (const auto& [point, rows] : table.points) sizes.insert(point.micro_batch);
  return sizes;
}

void refuse_micro_batches(const AcesoTable& table, const PlanRequest& request,
                          const Problem& problem) {
  const std::set<int> sizes = measured_micro_batches(table);
  const auto& pin = request.search.pins.micro_batch;
  if (pin && !sizes.contains(*pin))
    throw RequestError("micro_batch", fmt::format("{} is in no file of {}; there are {}", *pin,
                                                  table.name, fmt::join(sizes, ", ")));
  const int batch = problem.job.global_batch;
  if (std::ranges::none_of(sizes, [&](int size) { return batch % size == 0; }))
    throw RequestError("global_batch",
                       fmt::format("{} is a multiple of none of the micro-batches of {}: {}", batch,
                                   table.name, fmt::join(sizes, ", ")));
}

// The ends of the names of prim_*.csv that changes of layout over up to so many devices need.
std::vector<std::string> missing_files(
    int most, const std::function<bool(const char* collective, int members)>& is_there) {
  std::vector<std::string> missing;
  for (const char* collective : {"all_gather", "all_to_all"})
    for (int members = 2; members <= most; members *= 2)
      if (!is_there(collective, members))
        missing.push_back(fmt::format("{}_{}gpus", collective, members));
  return missing;
}

std::string any_of(const std::vector<std::string>& ends) {
  return ends.size() == 1 ? ends.front() : fmt::format("{{{}}}", fmt::join(ends, ","));
}

std::vector<std::string> formula_warnings(const AcesoFormula& formula, int devices) {
  if (!formula.reshards()) return {};
  const AcesoTable& table = formula.table();
  int most = 1;
  for (const auto& [point, rows] : table.points) most = std::max(most, point.tensor);
  const std::vector<std::string> missing =
      missing_files(std::min({most, devices, formula.devices_per_node()}),
                    [&](const char* collective, int members) {
                      return table.collectives.contains({collective, members});
                    });
  if (!table.collectives.empty() && missing.empty()) return {};
  return {
      fmt::format("there is no prim_{}_{}.csv: the formula takes a ring of sends where ops of "
                  "a stage are cut differently",
                  table.name, table.collectives.empty() ? "*gpus" : any_of(missing))};
}

AcesoTask task_of(const PlanRequest& request, const Problem& problem) {
  AcesoTask task;
  task.global_batch = problem.job.global_batch;
  task.devices = problem.cluster.device_count();
  task.memory = limit_of(problem);
  task.first_stages = request.search.first_stages;
  task.last_stages = request.search.last_stages;
  task.micro_batch = request.search.pins.micro_batch;
  if (request.search.pins.pipeline)
    task.first_stages = task.last_stages = *request.search.pins.pipeline;
  return task;
}

// By how much the states of the weights alone miss the memory, or that the rest does.
std::string why_nothing(const AcesoFormula& formula, const AcesoTask& task) {
  Bytes weights;
  for (int op = 0; op < formula.op_count(); ++op) {
    std::optional<Bytes> least;
    for (const auto& [point, rows] : formula.table().points)
      if (const AcesoOp* row = formula.row(op, point))
        least = std::min(least.value_or(row->weights * point.tensor),
                         row->weights * static_cast<double>(point.tensor));
    weights += least.value_or(Bytes(0));
  }
  const Bytes states = weights * formula.state_share() / static_cast<double>(task.devices);
  const auto mebibytes = [](Bytes bytes) { return bytes.value / kMebibyte; };
  if (states > task.memory)
    return fmt::format(
        "weights, gradients and optimizer states alone take {:.0f} MiB on each of {} devices by "
        "Aceso's formula, {:.0f} MiB more than `memory_limit` leaves",
        mebibytes(states), task.devices, mebibytes(states - task.memory));
  return fmt::format(
      "no pipeline of {} to {} stages fits into {:.0f} MiB a device by Aceso's formula, with the "
      "degrees and micro-batches that were measured",
      task.first_stages, std::min(task.last_stages, task.devices), mebibytes(task.memory));
}

// What the search began with, where nothing better was found.
void add_start(const Plan& plan, const AcesoFormula& formula, const AcesoTask& task,
               AcesoOptimum& optimum) {
  AcesoRanked own{aceso_stages(plan), task.global_batch / plan.micro_batches, {}};
  const auto cost = formula.cost(own.stages, task.global_batch, own.micro_batch);
  if (!cost || cost->memory > task.memory) return;
  own.cost = *cost;
  optimum.plans.push_back(std::move(own));
  std::ranges::stable_sort(optimum.plans, {}, [](const AcesoRanked& r) { return r.cost.step; });
}

void add_plan(const AcesoRanked& ranked, const CostEngine& engine, PlanAnswer& out) {
  const int micro_batches = out.problem.job.global_batch / ranked.micro_batch;
  const Plan plan = plan_of(ranked.stages, micro_batches);
  out.result.plans.push_back({plan, engine.simulate(plan)});
  out.aceso_costs->push_back(ranked.cost);
}

}  // namespace

std::vector<Plan> initial_plans(const PlanRequest& request, const Problem& problem) {
  const std::string& path = request.initial_point;
  if (path.empty() || path == "balance") return {};
  if (!is_aceso_name(request.source.model))
    throw RequestError("initial_point", "needs a model of Aceso's names, such as aceso:gpt_1_3B");
  const AcesoPlan read = read_aceso_plan(path, request.source.profile, problem.cluster);
  const Model& model = read.problem.model;
  if (model.name != problem.model.name || model.unit_count() != problem.model.unit_count())
    throw InputError(
        path, fmt::format("is a configuration of {} with {} ops, not of {} with {}", model.name,
                          model.unit_count(), problem.model.name, problem.model.unit_count()));
  if (read.problem.job.global_batch != problem.job.global_batch)
    throw InputError(path, fmt::format("is for a batch of {}, not of {}",
                                       read.problem.job.global_batch, problem.job.global_batch));
  return {read.plan};
}

std::vector<std::string> missing_collectives(const PlanRequest& request, const Problem& problem) {
  const bool by_ops = is_aceso_name(request.source.model) ||
                      (request.source.granularity == Granularity::op &&
                       problem.profile.provenance.source == kAcesoImporter.name);
  if (!by_ops || problem.cluster.device_count() < 2) return {};
  std::set<std::pair<std::string, int>> there;
  for (const auto& [key, curve] : problem.profile.collectives)
    if (key.collective != "send") there.emplace(key.collective, key.devices_per_node);
  int most = 1;
  for (const auto& [key, sample] : problem.profile.compute) most = std::max(most, key.tensor);
  const std::vector<std::string> missing = missing_files(
      std::min(most, devices_of_first_node(problem.cluster)), [&](const char* name, int members) {
        return there.contains({name, members});
      });
  if (!there.empty() && missing.empty()) return {};
  return {fmt::format("there is no prim_*_{}.csv in {}: {} from the cluster's links",
                      there.empty() ? "Ngpus" : any_of(missing), request.source.profile,
                      there.empty() ? "collectives are predicted" : "what it lacks is predicted")};
}

bool is_costed_by_aceso(const PlanRequest& request) { return request.cost_model == "aceso"; }

PlanAnswer plan_by_aceso_formula(const PlanRequest& request, const Session& session) {
  if (!is_aceso_name(request.source.model))
    throw RequestError(kField, "aceso needs a model of Aceso's names, such as aceso:gpt_1_3B");
  LoadedProblem loaded = load_problem(request.source);
  refuse_unknown_to_aceso(request, loaded.problem);
  const AcesoModel model = aceso_model_named(request.source.model, request.source.layers);
  const AcesoTable table =
      read_aceso_tables(find_profile_files(request.source.profile), model.table);
  refuse_micro_batches(table, request, loaded.problem);
  const AcesoFormula formula(table, aceso_op_list(model.family, model.layers),
                             devices_of_first_node(loaded.problem.cluster));
  for (std::string& warning : formula_warnings(formula, loaded.problem.cluster.device_count()))
    loaded.warnings.push_back(std::move(warning));
  session.warn(loaded.warnings);
  PlanAnswer out;
  out.problem = std::move(loaded.problem);
  out.options = request.search;
  out.warnings = std::move(loaded.warnings);
  SearchContext context = search_context(out.problem, out.options, session);
  context.deadline = std::chrono::steady_clock::now() +
                     std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                         std::chrono::duration<double>(out.options.time_limit.value));
  const Stopwatch watch;
  const AcesoTask task = task_of(request, out.problem);
  AcesoOptimum optimum = search_aceso_optimum(formula, task, context);
  for (const Plan& plan : initial_plans(request, out.problem))
    add_start(plan, formula, task, optimum);
  out.elapsed = watch.elapsed();
  out.interrupted = session.stop.stop_requested();
  out.result.evaluations = optimum.evaluations;
  out.result.cut_short = optimum.cut_short;
  for (const AcesoRanked& ranked : optimum.plans)
    out.log.push_back({.elapsed = out.elapsed,
                       .evaluations = optimum.evaluations,
                       .best = ranked.cost.step,
                       .what = fmt::format("micro-batches of {}", ranked.micro_batch)});
  out.aceso_costs.emplace();
  const CostEngine engine(out.problem);
  for (const AcesoRanked& ranked : optimum.plans)
    if (static_cast<int>(out.result.plans.size()) < request.search.keep)
      add_plan(ranked, engine, out);
  if (!out.found() && !out.result.cut_short) out.result.reason = why_nothing(formula, task);
  if (out.found() && !request.format.empty())
    out.exported = export_plans(*exporter_named(request.format), out.problem, out.result.plans);
  return out;
}

}  // namespace plait
