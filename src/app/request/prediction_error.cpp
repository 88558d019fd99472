#include "app/request/prediction_error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "io/format/json_writer.h"
#include "report/plan_tables.h"
#include "report/quantities.h"

namespace plait {
namespace {

// "20.1 s to 24.9 s"
std::string range_in_words(auto value, double low, double high) {
  return fmt::format("{} to {}", in_words(low * value), in_words(high * value));
}

std::string range_json(double value, double low, double high) {
  return fmt::format("[{}, {}]", json_number(low * value), json_number(high * value));
}

std::string listed(const std::vector<std::string>& words) {
  if (words.size() < 2) return fmt::format("{}", fmt::join(words, ""));
  return fmt::format("{} and {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
}

ErrorBand time_band_of(const Problem& problem, const Plan& plan) {
  return time_band(builtin_error_table(), kind_of(problem, plan));
}

ErrorBand memory_band_of(const Problem& problem, const Plan& plan) {
  return memory_band(builtin_error_table(), kind_of(problem, plan));
}

}  // namespace

std::string step_band_in_words(const Problem& problem, const RankedPlan& plan) {
  const ErrorBand band = time_band_of(problem, plan.plan);
  const Seconds step = plan.cost.step;
  std::string out = fmt::format(
      "The step likely takes {} (half of the runs of this kind are within {}; nine in "
      "ten take {})",
      range_in_words(step, band.low, band.high), percent(band.typical()),
      range_in_words(step, band.lowest, band.highest));
  if (!band.because.empty()) out += "; the band is wider because of " + listed(band.because);
  return out + ".";
}

std::string memory_doubt_in_words(const Problem& problem, const RankedPlan& plan) {
  const StageCost& stage = plan.cost.stages[tightest_stage(plan.cost)];
  const ErrorBand band = memory_band_of(problem, plan.plan);
  const Bytes available = stage.capacity - stage.reserve;
  const Bytes used = stage.peak_memory();
  if (used > available || used * band.above <= available) return "";
  return fmt::format(
      "Memory may not suffice: {} of {} are predicted to be used, and one in ten runs of this kind "
      "uses {} or more.",
      in_words(used), in_words(available), in_words(used * band.above));
}

double order_after(const RankedPlan& best, const RankedPlan& later) {
  return chance_of_order(builtin_error_table(), later.cost.step / best.cost.step);
}

std::string ranking_in_words(const std::vector<RankedPlan>& plans) {
  if (plans.size() < 2) return "";
  const auto ratio = [&](std::size_t i) { return plans[i].cost.step / plans[0].cost.step; };
  // In the order of something else than time.
  for (std::size_t i = 1; i < plans.size(); ++i)
    if (ratio(i) < 1) return "";
  const auto chance = [&](std::size_t i) { return order_after(plans[0], plans[i]); };
  std::size_t last = 0;
  while (last + 1 < plans.size() && chance(last + 1) < kSureOrder) ++last;
  if (last == 0)
    return fmt::format(
        "Plan 2 is {} slower: of measured plans predicted so far apart, {} came in "
        "that order.",
        percent(ratio(1) - 1), percent(chance(1)));
  return fmt::format(
      "{} {} slower, which is within the error: of measured plans predicted so far apart, {} came "
      "in that order.",
      last == 1 ? "Plan 2 is" : fmt::format("Plans 2 to {} are up to", last + 1),
      percent(ratio(last) - 1), percent(chance(last)));
}

std::string prediction_error_json(const Problem& problem, const RankedPlan& plan) {
  const ErrorBand time = time_band_of(problem, plan.plan);
  const ErrorBand memory = memory_band_of(problem, plan.plan);
  const double step = plan.cost.step.value;
  const double peak = plan.cost.peak_memory().value / 0x1p30;
  std::vector<std::string> because;
  for (const std::string& words : time.because) because.push_back(json_text(words));
  return JsonObject()
      .number("typical", time.typical())
      .json("step_half_s", range_json(step, time.low, time.high))
      .json("step_nine_tenths_s", range_json(step, time.lowest, time.highest))
      .json("memory_half_GiB", range_json(peak, memory.low, memory.high))
      .json("memory_nine_tenths_GiB", range_json(peak, memory.lowest, memory.highest))
      .number("memory_one_in_ten_GiB", memory.above * peak)
      .json("because", json_list(because))
      .str();
}

}  // namespace plait
