#include "app/plan/quick_search.h"

#include <algorithm>
#include <vector>

#include "cost/op/adapters.h"
#include "search/space/space.h"

namespace plait {
namespace {

using Clock = std::chrono::steady_clock;

const Planner& usual_planner() { return planners().front(); }

// Numbers of micro-batches that are small: the largest ones, and those with one sample for each of
// as many replicas as the devices can be, up to all of them (FSDP has no others).
std::vector<int> counts_of_small_micro_batches(const Problem& problem) {
  constexpr std::size_t kSmallest = 4;
  const int batch = problem.job.global_batch;
  std::vector<int> counts = divisors_of(batch);
  if (counts.size() > kSmallest) counts.erase(counts.begin(), counts.end() - kSmallest);
  for (const int replicas : divisors_of(problem.cluster.device_count()))
    if (batch % replicas == 0) counts.push_back(batch / replicas);
  std::ranges::sort(counts);
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

}  // namespace

Seconds Trial::left() const {
  return Seconds(std::chrono::duration<double>(end - Clock::now()).count());
}

Trial trial_of(const SearchOptions& options, const Session& session) {
  constexpr double kLongest = 1e6;  // seconds
  const std::chrono::duration<double> limit(std::min(options.time_limit.value, kLongest));
  return {options, session, Clock::now() + std::chrono::duration_cast<Clock::duration>(limit)};
}

SearchOptions in_time_left(SearchOptions options, Seconds spent) {
  options.time_limit = std::max(Seconds(0), options.time_limit - spent);
  return options;
}

Bytes state_of(const Problem& problem, const Pins& pins) {
  const StateBytes each = state_bytes(problem.job);
  const double trained = each.gradient + each.optimizer * (1 - pins.offload.value_or(0));
  return Bytes(each.weight * stored_parameters(problem.model, problem.job) +
               trained * trained_parameters(problem.model, problem.job));
}

Bytes memory_of(const Problem& problem) {
  const Cluster& cluster = problem.cluster;
  const Bytes limit = problem.job.memory_limit;
  Bytes memory;
  for (const Device& device : cluster.devices) {
    const Bytes own = cluster.device_types[device.type].memory;
    memory += limit > Bytes(0) ? std::min(limit, own) : own;
  }
  return memory;
}

bool is_hopeless(const Problem& problem, const Pins& pins) {
  return memory_of(problem) < state_of(problem, pins);
}

std::optional<Plan> any_plan(const Problem& problem, const Trial& trial, const Pins& pins) {
  constexpr Seconds kPatience(2);
  const Seconds left = trial.left();
  if (trial.session.stop.stop_requested() || left <= Seconds(0)) return std::nullopt;
  if (is_hopeless(problem, pins) || violation_of(problem, pins, trial.options.target))
    return std::nullopt;
  SearchOptions options = trial.options;
  options.pins = pins;
  options.keep = 1;
  options.time_limit = std::min(left, kPatience);
  std::stop_source found;
  const SearchContext context{
      .problem = problem,
      .options = options,
      .stop = found.get_token(),
      .on_improvement = [&](const RankedPlan&, std::int64_t) { found.request_stop(); },
      .on_progress =
          [&](double) {
            if (trial.session.stop.stop_requested()) found.request_stop();
          }};
  const SearchResult result = run_search(usual_planner(), context);
  if (result.plans.empty()) return std::nullopt;
  return result.plans.front().plan;
}

bool is_solvable(const Problem& problem, const Trial& trial, const Pins& pins) {
  return any_plan(problem, trial, pins).has_value();
}

bool is_solvable_thriftily(const Problem& problem, const Trial& trial, const Pins& pins) {
  Trial sparing = trial;
  Pins sparing_pins = pins;
  if (!pins.micro_batches && !pins.micro_batch)
    sparing.options.promising_micro_batches = counts_of_small_micro_batches(problem);
  if (!pins.recompute && !pins.recompute_layers) sparing_pins.recompute = Recompute::full;
  return is_solvable(problem, sparing, sparing_pins);
}

}  // namespace plait
