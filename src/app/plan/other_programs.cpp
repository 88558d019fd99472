#include "app/plan/other_programs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "app/plan/quick_search.h"
#include "cost/engine.h"
#include "export/exporter.h"
#include "io/cluster/catalogue.h"
#include "report/plan_tables.h"
#include "report/quantities.h"
#include "runtime/lower/layout.h"
#include "search/bound/cluster_lower_bound.h"

namespace plait {
namespace {

constexpr int kMostDevices = 256;     // of a cluster that is looked at again
constexpr double kWorthwhile = 0.99;  // of the step that is known

std::vector<int> devices_by_type(const Cluster& cluster) {
  std::vector<int> devices(cluster.device_types.size());
  for (const Device& device : cluster.devices) ++devices[device.type];
  return devices;
}

bool is_mixed(const Cluster& cluster) {
  const std::vector<int> devices = devices_by_type(cluster);
  return std::ranges::count_if(devices, [](int n) { return n > 0; }) > 1;
}

// What a further search may take, so that both keep to the time limit; may be nothing.
SearchOptions options_for_what_is_left(const PlanAnswer& answer) {
  SearchOptions options = answer.options;
  options.time_limit -= answer.elapsed;
  return options;
}

// The best plan for another problem on the same cluster that takes less than the limit.
std::optional<RankedPlan> faster_plan(const Problem& problem, SearchOptions options, Seconds limit,
                                      const Session& session) {
  options.keep = 1;
  options.cutoff = limit;
  if (options.time_limit <= Seconds(0)) return std::nullopt;
  if (violation_of(problem, options.pins, options.target)) return std::nullopt;
  const CostEngine engine(problem);
  const Stopwatch watch;
  const ClusterLowerBound floor(engine, options.pins, options.target, [&] {
    return session.stop.stop_requested() || watch.elapsed() >= options.time_limit;
  });
  if (floor.step(devices_by_type(problem.cluster)) >= limit) return std::nullopt;
  Session quiet;
  quiet.stop = session.stop;
  options = in_time_left(options, watch.elapsed());
  SearchContext context = search_context(problem, options, quiet);
  context.engine = &engine;
  const SearchResult found = run_search(planner_named("auto"), context);
  if (found.plans.empty() || found.plans.front().cost.step >= limit) return std::nullopt;
  return found.plans.front();
}

// plait train runs on all of the devices in its number formats.
std::optional<OtherWay> on_own_runtime(const PlanAnswer& answer, const Session& session) {
  const Target& runtime = *target_named("plait");
  Problem problem = answer.problem;
  problem.job.framework = find_framework(builtin_catalogue(), "plait", "framework");
  if (why_not(runtime, problem.job)) return std::nullopt;
  for (const DeviceType& type : problem.cluster.device_types)
    if (!type.supports(compute_dtype(problem.job.precision))) return std::nullopt;
  SearchOptions options = options_for_what_is_left(answer);
  options.target = runtime;
  options.pins.even_layers = false;
  auto plan =
      faster_plan(problem, options, kWorthwhile * answer.result.plans.front().cost.step, session);
  if (!plan || !runtime::unsupported_reason(problem, plan->plan).empty()) return std::nullopt;
  return OtherWay{"plait's own runtime", "`framework` plait", *std::move(plan)};
}

// The best plan of another framework (`name`; the default's if empty), if it takes at most `limit`.
std::optional<OtherWay> of_framework(const PlanAnswer& answer, const Session& session,
                                     std::string_view name, Seconds limit, const char* program) {
  Problem problem = answer.problem;
  problem.job.framework = find_framework(builtin_catalogue(), name, "framework");
  SearchOptions options = options_for_what_is_left(answer);
  options.target = *target_named(problem.job.framework.target);
  if (why_not(options.target, problem.job)) return std::nullopt;
  auto plan = faster_plan(problem, options, limit, session);
  if (!plan) return std::nullopt;
  return OtherWay{program, fmt::format("`framework` {}", problem.job.framework.name),
                  *std::move(plan)};
}

// Adapters in the default's program, which a library beside it adds.
std::optional<OtherWay> through_bridge(const PlanAnswer& answer, const Session& session) {
  return of_framework(answer, session, "", kWorthwhile * answer.result.plans.front().cost.step,
                      "Megatron-LM, to which Megatron Bridge adds adapters");
}

// What PyTorch's program makes of a network or a job that the default's has no flags for.
std::optional<OtherWay> in_pytorch(const PlanAnswer& answer, const Session& session) {
  return of_framework(answer, session, "fsdp", Seconds(1e30),
                      "PyTorch FSDP2, which takes any network of PyTorch's");
}

}  // namespace

std::string no_files_remark(const PlanAnswer& answer) {
  const Target& target = answer.options.target;
  const Exporter* exporter = exporter_named(target.name);
  if (!answer.found() || exporter == nullptr) return "";
  const std::string reason =
      not_written(*exporter, answer.problem, answer.result.plans.front().plan);
  if (reason.empty()) return "";
  return fmt::format("Only a program of your own around {} runs the best plan: {}.", target.program,
                     reason);
}

void judge_layout(const SaidLayout& said, const Session& session, PlanAnswer& out) {
  if (!out.found()) return;
  const Seconds step = out.result.plans.front().cost.step;
  Problem problem = out.problem;
  Seconds reached = step;  // without another layout
  if (!said.switches.empty()) {
    problem.job.framework = said.with_switches;
    reached = CostEngine(problem).simulate(out.result.plans.front().plan).step;
    if (reached < kWorthwhile * step)
      out.remarks.push_back(fmt::format(
          "With the flag{} {}, which the launch script lacks, this plan takes {}, {} less.",
          said.switches.size() > 1 ? "s" : "", fmt::join(said.switches, " and "), in_words(reached),
          percent(1 - reached / step)));
  }
  if (out.problem.cluster.device_count() > kMostDevices) return;
  SearchOptions options = options_for_what_is_left(out);
  options.pins = said.open;
  const Stopwatch watch;
  const auto plan = faster_plan(problem, options, kWorthwhile * std::min(reached, step), session);
  out.elapsed += watch.elapsed();  // others have what is left then
  if (plan)
    out.other_ways.push_back(
        {fmt::format("{}{}, {} less", said.where, reached < kWorthwhile * step ? " too" : "",
                     percent(1 - plan->cost.step / step)),
         said.request, *plan});
  else if (!session.stop.stop_requested() && options.time_limit > Seconds(0))
    out.remarks.push_back(said.praise);
}

SaidLayout layout_of_script(const LoadedSearch& loaded) {
  return {*loaded.own_pins,
          "With the layout of the launch script left open",
          "`free_layout`",
          "The layout of the launch script is good: with it left open, no plan was found that is "
          "faster by 1 %.",
          loaded.switches,
          loaded.with_switches};
}

std::optional<SaidLayout> pinned_layout(const Pins& pins, bool said_schedule,
                                        const Target& target) {
  // Replicas of PyTorch's networks are what their batch, states and recompute are.
  const bool replicas = !target.tensor && pins.pipeline.value_or(1) == 1 &&
                        (pins.micro_batch || pins.micro_batches) && (pins.recompute || pins.zero);
  if (!replicas && (!pins.tensor || !pins.pipeline)) return std::nullopt;
  Pins open = pins;
  std::vector<Dimension> dropped;
  const auto drop = [&](auto& pin, Dimension dimension) {
    if (pin) dropped.push_back(dimension);
    pin.reset();
  };
  if (!replicas) {
    drop(open.tensor, Dimension::tensor);
    drop(open.pipeline, Dimension::pipeline);
  }
  drop(open.data, Dimension::data);
  drop(open.context, Dimension::context);
  drop(open.expert, Dimension::expert);
  drop(open.micro_batch, Dimension::micro_batch);
  drop(open.micro_batches, Dimension::micro_batches);
  drop(open.chunks, Dimension::chunks);
  if (replicas) {
    drop(open.recompute, Dimension::recompute);
    drop(open.zero, Dimension::zero);
  }
  const bool stays_whole = replicas && !pins.pipeline && target.cuts != CutRule::none;
  if (stays_whole) open.pipeline = 1;
  // What is cut into chunks has several stages, which is a degree, too.
  if (pins.chunks.value_or(1) > 1) {
    if (said_schedule && pins.schedule) dropped.push_back(Dimension::schedule);
    open.schedule.reset();
  }
  if (!open.stages.empty()) dropped.push_back(Dimension::stages);
  open.stages.clear();
  open.even_layers = false;
  std::vector<std::string> names;
  for (const Dimension dimension : dropped)
    names.push_back(fmt::format("`{}`", name_of(dimension)));
  const char* what = replicas ? "settings" : "degrees";
  return SaidLayout{
      std::move(open), fmt::format("With other {}", what),
      fmt::format("without {}{}", fmt::join(names, " "), stays_whole ? ", with `pipeline` 1" : ""),
      fmt::format("The {} are good: with others, no plan was found that is faster by 1 %.", what)};
}

std::string runners_remark(const Problem& problem, const Plan& best) {
  std::vector<std::string_view> names;
  for (const Target& target : targets()) {
    if (target.name == "any") continue;
    const bool runs = target.name == "plait" ? runtime::unsupported_reason(problem, best).empty()
                                             : !why_not(target, problem, best);
    if (runs) names.push_back(target.program);
  }
  if (names.empty())
    return "No program that plait knows runs the best plan; `plait check` says why for each.";
  return fmt::format("The best plan runs on {}.", fmt::join(names, ", "));
}

std::vector<OtherWay> other_ways(const PlanRequest& request, const PlanAnswer& answer,
                                 const Session& session) {
  std::vector<OtherWay> ways;
  const bool asked = !request.source.runs_on.empty() || !request.source.framework.empty();
  if (asked || !answer.found() || request.objective.needs_prices() ||
      answer.problem.cluster.device_count() > kMostDevices || !answer.options.target.one_layout ||
      request.planner != "auto" || session.stop.stop_requested())
    return ways;
  std::optional<OtherWay> way;
  if (answer.problem.job.adapters && !answer.problem.job.four_bit_weights)
    way = through_bridge(answer, session);
  else if (!no_files_remark(answer).empty())
    way = in_pytorch(answer, session);
  else if (is_mixed(answer.problem.cluster))
    way = on_own_runtime(answer, session);
  if (way) ways.push_back(*std::move(way));
  return ways;
}

}  // namespace plait
