#include "app/saved/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/printable.h"
#include "cost/engine.h"
#include "export/exporter.h"
#include "io/format/json_writer.h"
#include "plan/describe.h"
#include "plan/target.h"
#include "report/plan_tables.h"
#include "report/quantities.h"
#include "runtime/lower/layout.h"

namespace plait {

namespace {

// plait's own runtime also looks at every operation of the network.
std::vector<Runner> runners_of(const PlanFile& file) {
  std::vector<Runner> runners;
  for (const Target& target : targets()) {
    if (target.name == "any") continue;
    std::string reason = target.name == "plait"
                             ? runtime::unsupported_reason(file.problem, file.plan)
                             : why_not(target, file.problem, file.plan).value_or("");
    Runner runner{target.name, std::move(reason)};
    const Exporter* exporter = exporter_named(target.name);
    if (runner.why_not.empty() && exporter != nullptr)
      runner.not_written = not_written(*exporter, file.problem, file.plan);
    runners.push_back(std::move(runner));
  }
  return runners;
}

// "Runs on: megatron, plait" and a line for each of the others.
std::string runners_in_words(const std::vector<Runner>& runners) {
  std::vector<std::string_view> able;
  std::string others;
  for (const auto& [target, reason, unwritten] : runners) {
    if (reason.empty())
      able.push_back(target);
    else
      others += fmt::format("not on {}: {}\n", target, reason);
    if (!unwritten.empty())
      others += fmt::format("on {} by a program of your own: {}\n", target, unwritten);
  }
  return fmt::format("runs on: {}\n",
                     able.empty() ? "nothing known" : fmt::format("{}", fmt::join(able, ", "))) +
         others;
}

}  // namespace

CheckAnswer answer(const CheckRequest& request) {
  CheckAnswer out{request.name, request.file, {}, std::nullopt, {}};
  apply(request.memory, out.file.problem.job);
  memory_warnings(out.file.problem.cluster, out.file.problem.job);
  out.violations = check_plan(out.file.problem, out.file.plan);
  if (!out.valid()) return out;
  out.cost = CostEngine(out.file.problem).simulate(out.file.plan);
  out.runners = runners_of(out.file);
  return out;
}

std::string to_json(const CheckAnswer& answer) {
  std::vector<std::string> items;
  for (const Violation& violation : answer.violations)
    items.push_back(JsonObject().text("where", violation.where).text("what", violation.what).str());
  JsonObject object;
  object.boolean("valid", answer.valid()).json("violations", json_list(items));
  object.json("fits", !answer.cost ? "null" : answer.cost->fits ? "true" : "false");
  if (!answer.file.made_by.empty()) object.text("made_by", answer.file.made_by);
  std::vector<std::string> runners;
  for (const auto& [target, reason, unwritten] : answer.runners)
    runners.push_back(JsonObject()
                          .text("program", target)
                          .boolean("runs", reason.empty())
                          .text("why_not", reason)
                          .text("not_written", unwritten)
                          .str());
  object.json("runs_on", json_list(runners));
  return lay_out_json(object.str());
}

std::string as_text(const CheckAnswer& answer, const Style&) {
  if (!answer.valid()) {
    std::string text = fmt::format("{} is not valid:\n", printable(answer.name));
    for (const auto& [where, what] : answer.violations)
      text += fmt::format("  {}: {}\n", where, what);
    return text;
  }
  const RankedPlan plan{answer.file.plan, *answer.cost};
  if (!answer.fits())
    return fmt::format("{} does not fit: {}\n", printable(answer.name),
                       shortage(answer.file.problem, plan));
  const int tightest = tightest_stage(plan.cost);
  return fmt::format("{} is valid and fits, with {} to spare on stage {}\n{}\n",
                     printable(answer.name), in_words(plan.cost.stages[tightest].spare()),
                     tightest + 1, describe(plan.plan)) +
         runners_in_words(answer.runners);
}

}  // namespace plait
