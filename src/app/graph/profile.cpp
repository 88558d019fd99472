#include "app/graph/profile.h"

#include <fmt/format.h>

#include "app/request/request_error.h"
#include "io/format/json_reader.h"
#include "io/format/text_file.h"
#include "io/graph/profile_json.h"
#include "runtime/launch/jax_runner.h"

namespace plait {

GraphProfileAnswer answer(const GraphProfileRequest& request, const Session& session) {
  if (request.source.mesh.empty()) throw RequestError("mesh", "is missing: profile takes one mesh");
  if (request.output.empty())
    throw RequestError("output", "is missing: name a file for what is timed");
  const graph::Analysis analysis = load_program(request.source, session);
  if (has_elided_constants(*analysis.module))
    throw InputError(request.source.path,
                     "has constants written as {...}: it can be planned, not run; print it with "
                     "print_large_constants");
  const graph::Mesh mesh = load_meshes(request.source, session).front();
  const graph::GraphCosts costs =
      costs_of(analysis, mesh, cost_options(search_options(request.source)));
  const std::string wanted = request.output + ".request";
  write_text_file(wanted, measurement_request(analysis, mesh, costs));
  return {runtime::measure_in_jax({.python = request.python,
                                   .runner = request.runner,
                                   .program = request.source.path,
                                   .request = wanted,
                                   .output = request.output,
                                   .devices = request.devices,
                                   .budget_s = request.budget.value})};
}

std::string to_json(const GraphProfileAnswer& answer) { return answer.report; }

std::string as_text(const GraphProfileAnswer& answer) {
  const JsonValue report = parse_json("the runner's report", answer.report);
  std::string out =
      fmt::format("{} timed, {} known before, {} left for another time\n",
                  report.at("timed").integer(0, 1 << 30), report.at("known").integer(0, 1 << 30),
                  report.at("left").integer(0, 1 << 30));
  for (const JsonValue& failed : report.at("failed").items()) out += failed.text() + "\n";
  return out;
}

}  // namespace plait
