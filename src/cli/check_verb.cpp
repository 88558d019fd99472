#include <fmt/format.h>

#include <memory>

#include "base/printable.h"
#include "cli/nothing_fits.h"
#include "cli/plan_report.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "cost/engine.h"
#include "io/format/json_writer.h"
#include "io/plan/plan_json.h"
#include "plan/check.h"
#include "plan/describe.h"
#include "report/quantities.h"

namespace plait {
namespace {

struct CheckArguments {
  std::string path;
  bool json = false;
};

std::string as_json(const std::vector<Violation>& violations, const std::optional<bool>& fits) {
  std::vector<std::string> items;
  for (const Violation& violation : violations)
    items.push_back(JsonObject().text("where", violation.where).text("what", violation.what).str());
  JsonObject object;
  object.boolean("valid", violations.empty()).json("violations", json_list(items));
  object.json("fits", !fits ? "null" : *fits ? "true" : "false");
  return lay_out_json(object.str());
}

int check(const CheckArguments& arguments) {
  const PlanFile file = plan_file_from_json(read_json_file(arguments.path));
  const std::vector<Violation> violations = check_plan(file.problem, file.plan);
  if (!violations.empty()) {
    std::string text = fmt::format("{} does not hold together:\n", arguments.path);
    for (const auto& [where, what] : violations) text += fmt::format("  {}: {}\n", where, what);
    print(arguments.json ? as_json(violations, std::nullopt) : text);
    return kWrongInput;
  }
  const RankedPlan plan{file.plan, CostEngine(file.problem).simulate(file.plan)};
  if (arguments.json) print(as_json(violations, plan.cost.fits));
  if (!plan.cost.fits) {
    if (!arguments.json)
      print(fmt::format("{} does not fit: {}\n", printable(arguments.path),
                        shortage(file.problem, plan)));
    return kNothingFits;
  }
  const int tightest = tightest_stage(plan.cost);
  if (!arguments.json)
    print(fmt::format("{} is sound and fits, with {} to spare on stage {}\n{}\n",
                      printable(arguments.path), in_words(plan.cost.stages[tightest].spare()),
                      tightest + 1, describe(plan.plan)));
  return kDone;
}

}  // namespace

Command check_command() {
  const auto arguments = std::make_shared<CheckArguments>();
  Command command;
  command.groups = {{"Arguments", {plan_file_flag(arguments->path)}},
                    {"Flags",
                     {{.name = "--json",
                       .value = "",
                       .help = "print JSON",
                       .set = into_switch(arguments->json)}}}};
  command.run = [arguments] { return check(*arguments); };
  return command;
}

}  // namespace plait
