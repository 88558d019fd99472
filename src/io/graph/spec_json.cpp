#include "io/graph/spec_json.h"

#include "graph/hlo/attributes.h"

namespace plait {
namespace {

using namespace graph;

std::string route_json(const std::vector<Placement>& route, std::size_t rank) {
  return list_of(route, [&](const Placement& placement) { return spec_json(placement, rank); });
}

}  // namespace

std::string numbers_json(const std::vector<std::int64_t>& all) {
  return list_of(all, [](std::int64_t n) { return json_number(static_cast<double>(n)); });
}

std::string spec_json(const Placement& placement, std::size_t rank) {
  std::vector<std::string> dims;
  for (std::size_t d = 0; d < rank; ++d)
    dims.push_back(list_of(placement.axes_of(static_cast<int>(d)),
                           [](int axis) { return json_text(axis_name(axis)); }));
  return json_list(dims);
}

std::string value_json(const Analysis& analysis, const PinnedValue& pin) {
  const Value& value = analysis.program.values[pin.value];
  return JsonObject()
      .text("tag", pin.tag)
      .number("result", pin.result)
      .boolean("enters", pin.enters)
      .text("op", analysis.program.nodes[value.node].source->opcode)
      .json("dims", numbers_json(value.dims()))
      .json("route", route_json(pin.route, value.dims().size()))
      .str();
}

std::string use_json(const Analysis& analysis, const PinnedUse& pin) {
  const auto& dims = analysis.program.values[pin.value].dims();
  JsonObject object;
  object.text("tag", pin.tag)
      .number("operand", pin.operand)
      .number("region", pin.region)
      .json("dims", numbers_json(dims))
      .json("route", route_json(pin.route, dims.size()))
      .boolean("again", pin.again);
  if (pin.moved >= 0) {
    const Value& moved = analysis.program.values[pin.moved];
    const graph::Node& maker = analysis.program.nodes[moved.node];
    const bool given = maker.kind == NodeKind::argument;
    object.json("moved", JsonObject()
                             .text("tag", given ? "" : frontend_attribute(*maker.source, "plait"))
                             .number("number", given ? maker.argument : moved.output)
                             .json("permutation", numbers_json(pin.permutation))
                             .str());
  }
  return object.str();
}

}  // namespace plait
