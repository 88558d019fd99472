#include "app/saved/check.h"

#include <fmt/format.h>

#include "base/printable.h"
#include "cost/engine.h"
#include "io/format/json_writer.h"
#include "plan/describe.h"
#include "report/plan_tables.h"
#include "report/quantities.h"

namespace plait {

CheckAnswer answer(const CheckRequest& request) {
  CheckAnswer out{request.name, request.file, {}, std::nullopt};
  out.violations = check_plan(out.file.problem, out.file.plan);
  if (out.valid()) out.cost = CostEngine(out.file.problem).simulate(out.file.plan);
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
                     tightest + 1, describe(plan.plan));
}

}  // namespace plait
