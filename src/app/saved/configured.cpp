#include "app/saved/configured.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/request/ranked_plan_json.h"
#include "io/plan/plan_json.h"
#include "plan/describe.h"
#include "report/quantities.h"

namespace plait {
namespace {

// The best plan of the program, where it is faster than the configuration or the one that fits.
std::optional<RankedPlan> faster_plan(const ConfiguredEstimateRequest& request,
                                      const Configured& configured, const Problem& problem,
                                      const Estimate& own, const Session& session) {
  constexpr double kWorthwhile = 0.999;
  SearchOptions options;
  options.keep = 1;
  options.threads = request.threads;
  options.time_limit = request.time_limit;
  options.target = configured.target;
  if (why_not(options.target, problem.job) || violation_of(problem, options.pins, options.target))
    return std::nullopt;
  const SearchResult found =
      run_search(planner_named("auto"), search_context(problem, options, session));
  if (found.plans.empty()) return std::nullopt;
  const RankedPlan& best = found.plans.front();
  if (own.fits && best.cost.step >= kWorthwhile * own.step) return std::nullopt;
  return best;
}

// Flags of the program that the faster plan has and the configuration does not.
std::string switches_in_words(const ConfiguredEstimate& answer) {
  if (answer.switches.empty()) return "";
  return fmt::format("and with {} {}, which the configuration does not have\n",
                     answer.switches.size() > 1 ? "the flags" : "the flag",
                     fmt::join(answer.switches, ", "));
}

std::string faster_in_words(const ConfiguredEstimate& answer) {
  const Estimate& own = answer.estimate.simulated;
  if (!answer.faster)
    return own.fits ? fmt::format("no plan of {} on these devices is known to be faster\n",
                                  answer.program)
                    : fmt::format("no plan of {} fits on these devices\n", answer.program);
  const Seconds step = answer.faster->cost.step;
  if (!own.fits)
    return fmt::format("with {} this fits on the same devices, and takes {}:\n  {}\n{}",
                       answer.program, in_words(step), describe(answer.faster->plan),
                       switches_in_words(answer));
  return fmt::format("with {} on the same devices this takes {} instead of {}, {} less:\n  {}\n{}",
                     answer.program, in_words(step), in_words(own.step),
                     percent(1 - step / own.step), describe(answer.faster->plan),
                     switches_in_words(answer));
}

}  // namespace

ConfiguredEstimate answer(const ConfiguredEstimateRequest& request, const Session& session) {
  Configured configured = load_configured(request.configured);
  session.warn(configured.warnings);
  EstimateRequest own{request.configured.path, configured.file, request.trace};
  ConfiguredEstimate out{
      answer(own), std::string(configured.target.program), {}, configured.warnings};
  out.improved = out.estimate.file.problem;
  out.improved.job.framework = configured.with_switches;
  out.switches = configured.switches;
  out.faster = faster_plan(request, configured, out.improved, out.estimate.simulated, session);
  return out;
}

std::string faster_plan_file(const ConfiguredEstimate& answer) {
  if (!answer.faster) return "";
  return plan_file_to_json(answer.improved, answer.faster->plan, answer.faster->cost);
}

std::string to_json(const ConfiguredEstimate& answer) {
  JsonObject object = estimate_object(answer.estimate);
  object.text("program", answer.program)
      .json("faster", answer.faster ? ranked_plan_json(answer.improved, *answer.faster) : "null")
      .json("switches", sentences_json(answer.switches))
      .json("warnings", sentences_json(answer.warnings));
  return lay_out_json(object.str());
}

std::string as_text(const ConfiguredEstimate& answer, const Style& style) {
  return as_text(answer.estimate, style) + "\n" + style.bold("What would be faster") + "\n" +
         faster_in_words(answer);
}

}  // namespace plait
