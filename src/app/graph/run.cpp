#include "app/graph/run.h"

#include <fmt/format.h>

#include "app/request/request_error.h"
#include "io/format/json_reader.h"
#include "io/format/text_file.h"
#include "report/quantities.h"
#include "runtime/launch/jax_runner.h"

namespace plait {

GraphRunAnswer answer(const GraphRunRequest& request) {
  if (request.plan.empty()) throw RequestError("plan", "is missing: plait graph search writes one");
  const JsonValue plan = parse_json(request.plan, read_text_file(request.plan));
  if (!plan.find("plait_sharding"))
    throw InputError(request.plan, "is not a plan of a program: plait graph search writes one");
  if (plan.boolean_or("elided_constants", false))
    throw InputError(request.plan,
                     "the program that was planned has constants written as {...}: it can be "
                     "planned, not run; print it with print_large_constants");
  return {runtime::run_in_jax({.python = request.python,
                               .runner = request.runner,
                               .step = request.step,
                               .plan = request.plan,
                               .devices = request.devices,
                               .steps = request.steps})};
}

std::string to_json(const GraphRunAnswer& answer) { return answer.report; }

std::string as_text(const GraphRunAnswer& answer, const Style& style) {
  const JsonValue report = parse_json("the runner's report", answer.report);
  std::string out = fmt::format(
      "largest relative difference to one device: {:.2e}\n"
      "one device to itself, with its arguments rounded otherwise: {:.2e}\n\n",
      report.at("difference").number(), report.at("own_difference").number());
  Table table({{"bytes sent", Align::left}, {"planned"}, {"in the compiled step"}});
  for (const auto& [kind, pair] : report.at("compared").members()) {
    const auto both = pair.items();
    table.row({kind, grouped(both.at(0).number()), grouped(both.at(1).number())});
  }
  return out + table.str(style);
}

}  // namespace plait
