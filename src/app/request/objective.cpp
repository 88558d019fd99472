#include "app/request/objective.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/request/request_error.h"
#include "report/quantities.h"

namespace plait {
namespace {

constexpr double kMostSteps = 1e15;

// "$120 (12.0 %) more than the budget of $1,000"
constexpr double kManyTimes = 10;  // of a limit, from where a percentage says little

std::string over_budget(Usd price, Usd budget) {
  if (price / budget >= kManyTimes)
    return fmt::format("{:.0f} times the budget of {}", price / budget, in_words(budget));
  return fmt::format("{} ({}) more than the budget of {}", in_words(price - budget),
                     percent(price / budget - 1), in_words(budget));
}

std::string over_deadline(Seconds time, Seconds deadline) {
  if (time / deadline >= kManyTimes)
    return fmt::format("{:.0f} times the deadline of {}", time / deadline, long_time(deadline));
  return fmt::format("{} ({}) more than the deadline of {}", long_time(time - deadline),
                     percent(time / deadline - 1), long_time(deadline));
}

double score(Metric metric, const MixPoint& point) {
  switch (metric) {
    case Metric::time:
      return point.step().value;
    case Metric::cost:
      return point.price().value;
    case Metric::cost_time:
      return point.price().value * point.step().value;
  }
  return 0;
}

// Why no point of the front, cheapest and slowest first, is within the limits.
std::string why_none(const Objective& objective, double steps, const std::vector<MixPoint>& front) {
  const auto time_of = [&](const MixPoint& p) { return steps * p.step(); };
  const auto price_at = [&](const MixPoint& p) { return steps * p.price(); };
  const MixPoint& cheapest = front.front();
  const MixPoint& fastest = front.back();
  std::string why;
  if (objective.deadline && time_of(fastest) > *objective.deadline)
    why += fmt::format("the fastest training takes {}, {}", long_time(time_of(fastest)),
                       over_deadline(time_of(fastest), *objective.deadline));
  if (objective.budget && price_at(cheapest) > *objective.budget)
    why += fmt::format("{}the cheapest training costs {}, {}", why.empty() ? "" : "; ",
                       in_words(price_at(cheapest)),
                       over_budget(price_at(cheapest), *objective.budget));
  if (!why.empty()) return why;
  // Each limit alone can be met.
  const auto in_time = std::ranges::find_if(
      front, [&](const MixPoint& p) { return time_of(p) <= *objective.deadline; });
  const auto beyond = std::ranges::find_if(
      front, [&](const MixPoint& p) { return price_at(p) > *objective.budget; });
  return fmt::format(
      "deadline and budget cannot be met together: the cheapest training within the deadline costs "
      "{}, {}; the fastest within the budget takes {}, {}",
      in_words(price_at(*in_time)), over_budget(price_at(*in_time), *objective.budget),
      long_time(time_of(*(beyond - 1))),
      over_deadline(time_of(*(beyond - 1)), *objective.deadline));
}

}  // namespace

const std::vector<std::string_view>& metric_names() {
  static const std::vector<std::string_view> names{"time", "cost", "cost-time"};
  return names;
}

std::optional<Metric> metric_named(std::string_view name) {
  const auto it = std::ranges::find(metric_names(), name);
  if (it == metric_names().end()) return std::nullopt;
  return static_cast<Metric>(it - metric_names().begin());
}

bool Objective::needs_prices() const {
  return budget || deadline || (metric && *metric != Metric::time);
}

Metric Objective::best_by() const {
  if (metric) return *metric;
  return deadline && !budget ? Metric::cost : Metric::time;
}

namespace {

// Less than these are slips, and times and prices would be numbers that no JSON can say.
void check_least(const Objective& objective) {
  constexpr double kLeastGoodput = 1e-6;
  constexpr Seconds kShortestDeadline(1e-3);
  constexpr Usd kLeastBudget(1e-6);
  if (!(objective.goodput >= kLeastGoodput && objective.goodput <= 1))
    throw RequestError("goodput", fmt::format("must be from {:.0e} to 1", kLeastGoodput));
  if (objective.deadline && !(*objective.deadline >= kShortestDeadline))
    throw RequestError("deadline", "must be at least a millisecond");
  if (objective.budget && !(*objective.budget >= kLeastBudget))
    throw RequestError("budget", fmt::format("must be at least {:.0e} USD", kLeastBudget.value));
}

}  // namespace

void check_objective(const Objective& objective, const Problem& problem) {
  check_least(objective);
  if (objective.tokens && objective.steps)
    throw RequestError("steps", "contradicts `tokens`; give one");
  const char* limit = objective.deadline ? "deadline" : "budget";
  if ((objective.deadline || objective.budget) && !objective.tokens && !objective.steps)
    throw RequestError(limit, "needs to know how long the training is: give `tokens` or `steps`");
  if (objective.goodput != 1 && !objective.tokens && !objective.steps)
    throw RequestError("goodput",
                       "needs to know how long the training is: give `tokens` or "
                       "`steps`");
  const auto length = length_of(objective, problem);
  if (length && length->steps > kMostSteps)
    throw RequestError(objective.tokens ? "tokens" : "steps",
                       fmt::format("is {:.3g} steps, more than {:.0e}", length->steps, kMostSteps));
  const std::string unpriced = unpriced_node(problem.cluster);
  if (!objective.needs_prices() || unpriced.empty()) return;
  const bool by_metric = objective.metric && *objective.metric != Metric::time;
  throw RequestError(by_metric ? "objective" : limit,
                     fmt::format("needs the price of every node, and that of '{}' is unknown; give "
                                 "`price` NAME=USD, name cloud instances (plait instances), or "
                                 "write price_usd_per_hour in a cluster file",
                                 unpriced));
}

std::optional<TrainingLength> length_of(const Objective& objective, const Problem& problem) {
  if (objective.tokens)
    return TrainingLength{steps_for_tokens(problem, *objective.tokens), objective.goodput};
  if (objective.steps) return TrainingLength{*objective.steps, objective.goodput};
  return std::nullopt;
}

Chosen choose(const Objective& objective, const Problem& problem,
              const std::vector<MixPoint>& front) {
  const TrainingLength length = length_of(objective, problem).value_or(TrainingLength{1});
  const double steps = length.steps / length.goodput;  // in whose time it is over
  Chosen chosen;
  for (const MixPoint& point : front) {
    if (objective.deadline && steps * point.step() > *objective.deadline) continue;
    if (objective.budget && steps * point.price() > *objective.budget) continue;
    chosen.points.push_back(point);
  }
  const Metric metric = objective.best_by();
  std::ranges::stable_sort(chosen.points, {},
                           [metric](const MixPoint& p) { return score(metric, p); });
  if (chosen.points.empty() && !front.empty()) chosen.missed = why_none(objective, steps, front);
  return chosen;
}

}  // namespace plait
