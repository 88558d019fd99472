#include "io/graph/profile_json.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "graph/search/pieces.h"
#include "io/format/json_reader.h"
#include "io/format/json_writer.h"
#include "io/format/text_file.h"
#include "io/graph/spec_json.h"

namespace plait {
namespace {

using namespace graph;

constexpr double kForm = 2;  // of the file; python/plait/measure.py writes it

std::string part_json(const PiecePart& part) {
  return JsonObject()
      .number("trips", part.trips)
      .json("tags", list_of(part.tags, [](const std::string& tag) { return json_text(tag); }))
      .str();
}

std::string piece_json(const Analysis& analysis, const Mesh& mesh, const GraphCosts& all, int b,
                       std::size_t s) {
  const Block& block = analysis.blocks.blocks[b];
  const BlockCosts& costs = all.blocks[b];
  const Piece piece = piece_of(analysis, mesh, all, b, s);
  const auto dims = [&](int value) { return analysis.program.values[value].dims(); };
  return JsonObject()
      .text("block", costs.signature)
      .text("name", block.name)
      .text("strategy", graph::text_of(costs.strategies[s], block, mesh))
      .number("formula_s", (costs.compute[s] + costs.communication[s]).value)
      .json("parts", list_of(piece.parts, part_json))
      .json("values", list_of(piece.pins.values,
                              [&](const PinnedValue& pin) { return value_json(analysis, pin); }))
      .json("uses",
            list_of(piece.pins.uses, [&](const PinnedUse& pin) { return use_json(analysis, pin); }))
      .json("inputs", list_of(piece.inputs,
                              [&](const PieceInput& input) {
                                return JsonObject()
                                    .text("tag", input.tag)
                                    .number("operand", input.operand)
                                    .json("dims", numbers_json(dims(input.value)))
                                    .json("spec",
                                          spec_json(input.placement, dims(input.value).size()))
                                    .str();
                              }))
      .str();
}

CollectiveKind kind_in(const JsonValue& value) {
  std::vector<std::string_view> names;
  for (int k = 0; k < kCollectiveKinds; ++k)
    names.push_back(name_of(static_cast<CollectiveKind>(k)));
  return static_cast<CollectiveKind>(value.choice(names));
}

AxisSet axes_in(const JsonValue& value, int axes) {
  std::vector<std::string> names;
  for (int a = 0; a < axes; ++a) names.push_back(axis_name(a));
  AxisSet set = 0;
  for (const JsonValue& item : value.items())
    set |= 1U << item.choice({names.begin(), names.end()});
  if (set == 0) throw InputError(value.where(), "must name an axis");
  return set;
}

}  // namespace

GraphProfile read_graph_profile(const std::string& path) {
  const JsonValue root = read_json_file(path);
  if (!root.find("plait_graph_profile"))
    throw InputError(path, "is not a profile of a program: plait graph profile writes one");
  if (root.at("plait_graph_profile").number() != kForm)
    throw InputError(root.at("plait_graph_profile").where(),
                     "is of another version of plait, which timed blocks otherwise: take it again");
  GraphProfile profile;
  for (const JsonValue& size : root.at("mesh").items())
    profile.mesh.push_back(size.integer(1, 1'000'000));
  if (profile.mesh.empty() || profile.mesh.size() > kMostAxes)
    throw InputError(root.at("mesh").where(), "must have one to three sizes");
  for (const JsonValue& entry : root.at("blocks").items())
    profile.blocks[{entry.at("block").text(), entry.at("strategy").text()}] =
        Seconds(entry.at("seconds").at_least(0));
  for (const JsonValue& entry : root.at("transfers").items()) {
    MeasuredTransfer transfer;
    transfer.kind = kind_in(entry.at("kind"));
    transfer.axes = axes_in(entry.at("axes"), static_cast<int>(profile.mesh.size()));
    transfer.size = Bytes(entry.at("bytes").positive());
    transfer.time = Seconds(entry.at("seconds").at_least(0));
    profile.transfers.push_back(transfer);
  }
  return profile;
}

std::string measurement_request(const Analysis& analysis, const Mesh& mesh,
                                const GraphCosts& costs) {
  std::vector<std::string> pieces;
  std::set<std::string> seen;
  for (int b = 0; b < static_cast<int>(costs.blocks.size()); ++b) {
    if (!seen.insert(costs.blocks[b].signature).second) continue;
    for (std::size_t s = 0; s < costs.blocks[b].strategies.size(); ++s)
      pieces.push_back(piece_json(analysis, mesh, costs, b, s));
  }
  std::vector<std::string> axes;
  for (int a = 0; a < mesh.axes(); ++a) axes.push_back(json_text(axis_name(a)));
  return JsonObject()
      .json("mesh", JsonObject()
                        .json("sizes", list_of(mesh.sizes, [](int n) { return json_number(n); }))
                        .json("axes", json_list(axes))
                        .str())
      .json("pieces", json_list(pieces))
      .str();
}

}  // namespace plait
