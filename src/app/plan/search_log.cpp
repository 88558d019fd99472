#include "app/plan/search_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "io/format/csv.h"

namespace plait {
namespace {

std::string seconds(const std::optional<Seconds>& value) {
  if (!value || !std::isfinite(value->value) || !(*value > Seconds(0))) return "";
  return fmt::format("{:.6g}", value->value);
}

}  // namespace

void add_passes(const SearchResult& result, Seconds elapsed, std::vector<SearchEvent>& log) {
  std::int64_t evaluations = 0;
  Seconds since;
  for (const PassReport& pass : result.passes) {
    since += pass.elapsed;
    evaluations += pass.evaluations;
    log.push_back({.elapsed = std::min(since, elapsed),
                   .evaluations = evaluations,
                   .best = pass.best,
                   .lower_bound = pass.lower_bound,
                   .what = "pass " + pass.name});
  }
  std::ranges::stable_sort(log, {}, &SearchEvent::elapsed);
  SearchEvent end{.elapsed = elapsed,
                  .evaluations = result.evaluations,
                  .best = result.plans.empty() ? Seconds(HUGE_VAL) : result.plans.front().cost.step,
                  .lower_bound = result.lower_bound,
                  .what = "end"};
  log.push_back(std::move(end));
}

std::string search_log_csv(const std::vector<SearchEvent>& log) {
  std::string text = csv_line({"seconds", "evaluations", "step_s", "lower_bound_s", "what"});
  for (const SearchEvent& event : log)
    text += csv_line({fmt::format("{:.6f}", event.elapsed.value),
                      event.evaluations ? fmt::format("{}", *event.evaluations) : "",
                      seconds(event.best), seconds(event.lower_bound), event.what});
  return text;
}

}  // namespace plait
