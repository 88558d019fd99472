#include "app/plan/advice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "app/plan/quick_search.h"
#include "app/plan/remedies.h"
#include "cost/engine.h"
#include "report/plan_tables.h"
#include "report/quantities.h"

namespace plait {
namespace {

// Stages that recompute as many layers as fit in more memory than there is recompute all of them.
void recompute_throughout(Plan& plan) {
  for (Stage& stage : plan.stages) {
    Recompute most = Recompute::none;
    for (const Span& span : stage.spans) most = std::max(most, span.recompute);
    for (Span& span : stage.spans) span.recompute = most;
    join_alike(stage);
  }
}

std::optional<RankedPlan> nearest_of(const Problem& problem, const Trial& trial,
                                     std::optional<double> within = std::nullopt) {
  constexpr double kMost = 4096;
  const double usual = problem.cluster.device_count() <= 16 ? 1.1 : 1.5;
  const double close_enough = within.value_or(usual);
  const auto with_memory = [&](double factor) {
    Problem larger = problem;
    for (DeviceType& type : larger.cluster.device_types) type.memory = type.memory * factor;
    larger.job.memory_limit = larger.job.memory_limit * factor;
    return any_plan(larger, trial, trial.options.pins);
  };
  double low = 1;
  double high = 2;
  std::optional<Plan> nearest = with_memory(high);
  for (; !nearest && high < kMost; nearest = with_memory(high)) {
    low = high;
    high *= 2;
  }
  if (!nearest) return std::nullopt;
  while (high / low > close_enough) {
    const double middle = std::sqrt(low * high);
    if (auto plan = with_memory(middle)) {
      nearest = std::move(plan);
      high = middle;
    } else {
      low = middle;
    }
  }
  recompute_throughout(*nearest);
  return RankedPlan{*nearest, CostEngine(problem).simulate(*nearest)};
}

std::string why(const Problem& problem, const Pins& pins, const SearchResult& result,
                const std::optional<RankedPlan>& nearest) {
  if (is_hopeless(problem, pins))
    return fmt::format(
        "weights, gradients and optimizer state of {} need {}, and all devices together have {}{}: "
        "{} too little",
        problem.model.name, in_words(state_of(problem, pins)), in_words(memory_of(problem)),
        problem.job.memory_limit > Bytes(0) ? " under the limit" : "",
        in_words(state_of(problem, pins) - memory_of(problem)));
  if (nearest)
    return fmt::format("in the nearest plan ({}) {}", short_description(nearest->plan),
                       shortage(problem, *nearest));
  return result.reason.empty() ? "no plan has the shape that the pins ask for" : result.reason;
}

}  // namespace

std::optional<RankedPlan> nearest_plan(const Problem& problem, const SearchOptions& options,
                                       const Session& session) {
  constexpr double kWithin = 1.01;
  auto nearest = nearest_of(problem, trial_of(options, session), kWithin);
  // Where another search finds a plan, memory is not what is missing.
  if (nearest && nearest->cost.fits) nearest.reset();
  return nearest;
}

bool fits_thriftily(const Problem& problem, const SearchOptions& options, const Session& session) {
  return is_solvable_thriftily(problem, trial_of(options, session), options.pins);
}

NoPlan why_no_plan(const Problem& problem, const SearchOptions& options, const SearchResult& result,
                   const Session& session) {
  NoPlan out;
  out.cut_short = result.cut_short;
  if (out.cut_short) {
    out.nearest = result.nearest;
    if (out.nearest) out.why = why(problem, options.pins, result, out.nearest);
    return out;
  }
  const Trial trial = trial_of(options, session);
  out.hopeless = is_hopeless(problem, options.pins);
  out.nearest = result.nearest;
  // Of a hopeless problem it only shows what takes the memory, which is not worth a long search.
  constexpr int kMostUnits = 500;
  constexpr int kMostDevices = 256;
  const bool quick =
      problem.model.unit_count() <= kMostUnits && problem.cluster.device_count() <= kMostDevices;
  if (!out.nearest && (quick || !out.hopeless)) out.nearest = nearest_of(problem, trial);
  if (out.nearest && out.nearest->cost.fits) {
    out.overlooked = true;
    out.why = short_description(out.nearest->plan);
    out.nearest.reset();
    return out;
  }
  out.why = why(problem, options.pins, result, out.nearest);
  if (!out.nearest && !out.hopeless && result.reason.empty() && trial.left() <= Seconds(0))
    out.why = "no plan that does was found";
  out.remedies = remedies_for(problem, trial);
  out.tried_more_devices = tried_larger_machines(problem);
  out.hurried = trial.left() <= Seconds(0);
  return out;
}

std::string in_words(const NoPlan& no_plan) {
  if (no_plan.cut_short)
    return "nothing found before the search was cut short; give it more `time_limit`" +
           (no_plan.why.empty() ? "" : "; " + no_plan.why);
  if (no_plan.overlooked)
    return "this search found no plan that fits, but there are some (" + no_plan.why +
           "): `planner` auto, which is the default, or more `effort` finds them";
  const std::string text = "nothing fits: " + no_plan.why;
  if (no_plan.remedies.empty() && no_plan.hurried)
    return text + "; there was no time to try what would help: give it more `time_limit`";
  if (no_plan.remedies.empty())
    return text + fmt::format("; a smaller model{} would help",
                              no_plan.hopeless ? " or far more devices"
                              : no_plan.tried_more_devices
                                  ? " or a shorter `sequence`"
                                  : ", a shorter `sequence` or far more devices");
  std::vector<std::string> helps;
  for (const Remedy& remedy : no_plan.remedies) helps.push_back(remedy.words);
  return text + fmt::format("; it fits {}", fmt::join(helps, ", or "));
}

}  // namespace plait
