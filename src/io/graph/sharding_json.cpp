#include "io/graph/sharding_json.h"

#include <filesystem>

#include "graph/hlo/attributes.h"
#include "io/format/json_reader.h"
#include "io/format/json_writer.h"
#include "io/graph/spec_json.h"

namespace plait {
namespace {

using namespace graph;

std::string block_json(const Analysis& analysis, const Block& block) {
  int count[3] = {0, 0, 0};
  for (const int n : block.contractions) ++count[static_cast<int>(analysis.phases.of_node[n])];
  return JsonObject()
      .text("name", block.name)
      .text("key", analysis.program.nodes[block.key].source->name)
      .json("strategies", list_of(block.roles, [](const Role& r) { return json_text(r.called); }))
      .json("sizes", list_of(block.roles, [](const Role& r) { return numbers_json(r.sizes); }))
      .number("forward_contractions", count[0])
      .number("backward_contractions", count[1] + count[2])
      .number("instructions", static_cast<double>(block.nodes.size()))
      .number("trips", analysis.program.trips(block.key))
      .str();
}

std::string segment_json(const Analysis& analysis, const Segment& segment) {
  std::vector<std::string> space;
  for (int b = segment.first; b < segment.first + segment.count; ++b)
    space.push_back(json_number(static_cast<double>(analysis.blocks.blocks[b].roles.size())));
  return JsonObject()
      .number("kind", segment.kind)
      .number("first_block", segment.first)
      .number("blocks", segment.count)
      .number("trips", segment.trips)
      .json("space", json_list(space))
      .str();
}

std::string type_of(const Analysis& analysis, int value) {
  return graph::text_of(*analysis.program.values[value].shape, false);
}

const std::vector<std::int64_t>& dims_of(const Analysis& analysis, int value) {
  return analysis.program.values[value].dims();
}

std::string plan_blocks(const ShardingReport& report) {
  const auto second = runners_up(report.costs, report.plan);
  const std::vector<int> choice = choice_of(report.costs, report.plan);
  std::vector<std::string> made;
  for (std::size_t b = 0; b < choice.size(); ++b) {
    const Block& block = report.analysis.blocks.blocks[b];
    const BlockCosts& costs = report.costs.blocks[b];
    JsonObject object;
    object.text("name", block.name)
        .text("strategy", graph::text_of(report.plan.strategies[b], block, report.plan.mesh))
        .number("compute_s", costs.compute[choice[b]].value)
        .number("communication_s", costs.communication[choice[b]].value)
        .number("memory_GiB", costs.memory[choice[b]].value / 0x1p30);
    if (second[b])
      object.text("runner_up", graph::text_of(second[b]->strategy, block, report.plan.mesh))
          .number("runner_up_loses_s", second[b]->loss.value);
    made.push_back(object.str());
  }
  return json_list(made);
}

std::string plan_arguments(const ShardingReport& report) {
  const Program& program = report.analysis.program;
  std::vector<std::string> made;
  for (std::size_t a = 0; a < program.arguments.size(); ++a) {
    const int value = program.nodes[program.arguments[a]].outputs.front();
    const Placement& placement = report.plan.placements[value];
    const auto& dims = dims_of(report.analysis, value);
    made.push_back(
        JsonObject()
            .text("name", argument_path(report, static_cast<int>(a)))
            .text("type", type_of(report.analysis, value))
            .json("dims", numbers_json(dims))
            .json("spec", spec_json(placement, dims.size()))
            .text("partition_spec",
                  partition_spec(placement, static_cast<int>(dims.size()), report.plan.mesh.axes()))
            .str());
  }
  return json_list(made);
}

std::string plan_results(const ShardingReport& report) {
  const std::vector<PlacedResult> results = placed_results(report.analysis, report.plan);
  std::vector<std::string> made;
  for (std::size_t r = 0; r < results.size(); ++r) {
    const auto& dims = dims_of(report.analysis, report.analysis.program.results[r]);
    made.push_back(JsonObject()
                       .json("dims", numbers_json(dims))
                       .json("spec", spec_json(results[r].at, dims.size()))
                       .json("route", list_of(results[r].route,
                                              [&](const Placement& step) {
                                                return spec_json(step, dims.size());
                                              }))
                       .str());
  }
  return json_list(made);
}

std::string plan_collectives(const ShardingReport& report) {
  const std::vector<Bytes> traffic = report.plan.traffic();
  std::vector<std::string> made;
  for (int k = 0; k < kCollectiveKinds; ++k) {
    double count = 0;
    for (const Movement& m : report.plan.movements)
      if (static_cast<int>(m.transfer.kind) == k) count += m.times;
    made.push_back(JsonObject()
                       .text("kind", name_of(static_cast<CollectiveKind>(k)))
                       .number("count", count)
                       .number("bytes_sent", traffic[k].value)
                       .str());
  }
  return json_list(made);
}

// The ops that make and want what is moved, by their tags, else by their names.
std::string plan_movements(const ShardingReport& report) {
  const Program& program = report.analysis.program;
  const auto name = [&](int node) {
    if (node < 0) return std::string();
    const std::string tag = frontend_attribute(*program.nodes[node].source, "plait");
    return tag.empty() ? program.nodes[node].source->name : tag;
  };
  return list_of(report.plan.movements, [&](const Movement& m) {
    std::vector<std::string> axes;
    for (int a = 0; a < report.plan.mesh.axes(); ++a)
      if ((m.transfer.axes >> a & 1U) != 0) axes.push_back(json_text(axis_name(a)));
    const Bytes sent =
        traffic_of(report.plan.mesh, m.transfer.kind, m.transfer.axes, m.transfer.size);
    return JsonObject()
        .text("kind", name_of(m.transfer.kind))
        .json("axes", json_list(axes))
        .text("value", name(program.values[m.value].node))
        .text("consumer", name(m.consumer))
        .text("type", type_of(report.analysis, m.value))
        .number("bytes_sent", sent.value)
        .number("times", m.times)
        .str();
  });
}

}  // namespace

std::string analysis_json(const Analysis& analysis) {
  const Program& program = analysis.program;
  int phase[3] = {0, 0, 0};
  for (const Phase p : analysis.phases.of_node) ++phase[static_cast<int>(p)];
  JsonObject object;
  object.text("program", analysis.module->name)
      .number("instructions", instruction_count(*analysis.module))
      .number("nodes", static_cast<double>(program.nodes.size()))
      .number("forward_nodes", phase[0])
      .number("backward_nodes", phase[1])
      .number("optimizer_nodes", phase[2])
      .json("loss", analysis.phases.loss < 0
                        ? "null"
                        : json_text(program.nodes[analysis.phases.loss].source->name))
      .json("loops", list_of(program.loops,
                             [](const Loop& loop) {
                               return JsonObject()
                                   .text("name", loop.source->name)
                                   .number("trips", loop.trips)
                                   .boolean("known", loop.known)
                                   .str();
                             }))
      .json("blocks", list_of(analysis.blocks.blocks,
                              [&](const Block& b) { return block_json(analysis, b); }))
      .number("segment_kinds", analysis.segments.kinds)
      .boolean("segments_exact", analysis.segments.exact)
      .json("segments", list_of(analysis.segments.segments,
                                [&](const Segment& s) { return segment_json(analysis, s); }))
      .json("warnings",
            list_of(analysis.warnings, [](const std::string& w) { return json_text(w); }));
  return lay_out_json(object.str());
}

std::string sharding_plan_json(const ShardingReport& report) {
  const ShardingPlan& plan = report.plan;
  const Pins pins = pins_of(report.analysis, report.costs, plan);
  std::vector<std::string> axes;
  for (int a = 0; a < plan.mesh.axes(); ++a) axes.push_back(json_text(axis_name(a)));
  JsonObject object;
  object.number("plait_sharding", 1)
      .text("program", report.analysis.module->name)
      .text("cluster", report.cluster)
      .json("mesh",
            JsonObject()
                .json("sizes", list_of(plan.mesh.sizes, [](int n) { return json_number(n); }))
                .json("axes", json_list(axes))
                .str())
      .number("time_s", plan.time().value)
      .number("compute_s", plan.compute.value)
      .number("communication_s", plan.communication.value)
      .number("bound_s", plan.bound.value)
      .number("peak_memory_GiB", plan.peak.value / 0x1p30)
      .boolean("elided_constants", has_elided_constants(*report.analysis.module))
      .json("collectives", plan_collectives(report))
      .json("movements", plan_movements(report))
      .json("blocks", plan_blocks(report))
      .json("arguments", plan_arguments(report))
      .json("results", plan_results(report))
      .json("values",
            list_of(pins.values,
                    [&](const PinnedValue& pin) { return value_json(report.analysis, pin); }))
      .json("uses", list_of(pins.uses,
                            [&](const PinnedUse& pin) { return use_json(report.analysis, pin); }));
  return lay_out_json(object.str());
}

std::vector<std::string> read_argument_names(const std::string& program_path) {
  const std::string path = program_path + ".names.json";
  std::vector<std::string> names;
  if (program_path == "-" || !std::filesystem::exists(path)) return names;
  for (const JsonValue& item : parse_json(path, read_text_file(path)).items())
    names.push_back(item.text());
  return names;
}

std::string argument_path(const ShardingReport& report, int argument) {
  const auto at = static_cast<std::size_t>(argument);
  if (report.names.size() == report.analysis.program.arguments.size()) return report.names[at];
  return argument_name(report.analysis.program, argument);
}

}  // namespace plait
