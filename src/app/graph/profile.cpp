#include "app/graph/profile.h"

#include <fmt/format.h>

#include "app/request/request_error.h"
#include "graph/search/products.h"
#include "io/format/json_reader.h"
#include "io/format/json_writer.h"
#include "io/format/text_file.h"
#include "io/graph/profile_json.h"
#include "io/profile/profile_json.h"
#include "runtime/launch/jax_runner.h"

namespace plait {

namespace {

GraphProfileAnswer write_products(const GraphProfileRequest& request, const Session& session) {
  const graph::Analysis analysis = load_program(request.source, session);
  const graph::Mesh mesh = load_meshes(request.source, session).front();
  const graph::GraphCosts costs =
      costs_of(analysis, mesh, cost_options(search_options(request.source)));
  const std::vector<OpKey> products = products_of(analysis, mesh, costs);
  if (products.empty())
    throw InputError(request.source.path, "has no products of matrices that blocks could divide");
  write_text_file(request.products, op_list_json(products));
  return {{}, products.size()};
}

}  // namespace

GraphProfileAnswer answer(const GraphProfileRequest& request, const Session& session) {
  if (request.source.mesh.empty()) throw RequestError("mesh", "is missing: profile takes one mesh");
  if (!request.products.empty()) return write_products(request, session);
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

std::string to_json(const GraphProfileAnswer& answer) {
  if (answer.products == 0) return answer.report;
  return JsonObject().number("products", static_cast<double>(answer.products)).str();
}

std::string as_text(const GraphProfileAnswer& answer) {
  if (answer.products > 0)
    return fmt::format(
        "{} products of matrices listed: plait profile measures them, and the search takes what it "
        "writes\n",
        answer.products);
  const JsonValue report = parse_json("the runner's report", answer.report);
  std::string out =
      fmt::format("{} timed, {} known before, {} left for another time\n",
                  report.at("timed").integer(0, 1 << 30), report.at("known").integer(0, 1 << 30),
                  report.at("left").integer(0, 1 << 30));
  for (const JsonValue& failed : report.at("failed").items()) out += failed.text() + "\n";
  return out;
}

}  // namespace plait
