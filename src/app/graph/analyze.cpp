#include "app/graph/analyze.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "io/graph/sharding_json.h"
#include "report/quantities.h"

namespace plait {
namespace {

using namespace graph;

std::string space_of(const Analysis& analysis, const Segment& segment) {
  std::vector<std::string> counts;
  for (int b = segment.first; b < segment.first + segment.count; ++b)
    counts.push_back(std::to_string(analysis.blocks.blocks[b].roles.size()));
  return fmt::format("[{}]", fmt::join(counts, ","));
}

// A, B ... Z, AA, AB ...
std::string letters_of(int kind) {
  std::string out;
  for (int left = kind; left >= 0; left = left / 26 - 1)
    out.insert(out.begin(), static_cast<char>('A' + left % 26));
  return out;
}

std::string roles_text(const Block& block) {
  std::vector<std::string> roles;
  for (const Role& role : block.roles)
    roles.push_back(fmt::format("{} {}", role.called, fmt::join(role.sizes, "x")));
  return fmt::format("{}", fmt::join(roles, ", "));
}

std::string summary(const Analysis& analysis) {
  const Program& program = analysis.program;
  int phase[3] = {0, 0, 0};
  for (const Phase p : analysis.phases.of_node) ++phase[static_cast<int>(p)];
  std::string out = fmt::format("{}: {} instructions; forward {}, backward {}, optimizer {}\n",
                                analysis.module->name, instruction_count(*analysis.module),
                                phase[0], phase[1], phase[2]);
  if (analysis.phases.loss >= 0)
    out += fmt::format("loss: {}\n", program.nodes[analysis.phases.loss].source->name);
  for (const Loop& loop : program.loops)
    out += fmt::format("loop {}: {} trips\n", loop.source->name,
                       loop.known ? fmt::format("{}", loop.trips) : "an unknown number of");
  int sharded = 0;
  for (const Computation& computation : analysis.module->computations)
    for (const Instruction& it : computation.instructions)
      sharded += it.attribute("sharding") != nullptr ? 1 : 0;
  if (sharded > 0)
    out += fmt::format(
        "{} with a sharding of the program's own, which a plan replaces unless `keep_shardings` is "
        "given\n",
        counted(sharded, "instruction"));
  return out + "\n";
}

std::string blocks_table(const Analysis& analysis, const Style& style) {
  Table table({{"block"},
               {"segment"},
               {"trips"},
               {"products"},
               {"ops"},
               {"name", Align::left, 1},
               {"ways to divide it", Align::left}});
  for (const Segment& segment : analysis.segments.segments)
    for (int b = segment.first; b < segment.first + segment.count; ++b) {
      const Block& block = analysis.blocks.blocks[b];
      table.row({std::to_string(b), letters_of(segment.kind),
                 segment.trips > 1 ? fmt::format("{}", segment.trips) : "",
                 std::to_string(block.contractions.size()), std::to_string(block.nodes.size()),
                 block.name, roles_text(block)});
    }
  return table.str(style);
}

std::string segments_table(const Analysis& analysis, const Style& style) {
  struct Kind {
    const Segment* first = nullptr;
    int instances = 0;
    double runs = 0;
  };
  std::map<int, Kind> kinds;
  for (const Segment& segment : analysis.segments.segments) {
    Kind& kind = kinds[segment.kind];
    if (kind.first == nullptr) kind.first = &segment;
    ++kind.instances;
    kind.runs += segment.trips;
  }
  Table table({{"segment", Align::left},
               {"blocks"},
               {"in the text"},
               {"in a step"},
               {"space", Align::left}});
  for (const auto& [id, kind] : kinds)
    table.row({letters_of(id), std::to_string(kind.first->count), std::to_string(kind.instances),
               fmt::format("{}", kind.runs), space_of(analysis, *kind.first)});
  return table.str(style);
}

}  // namespace

GraphAnalyzeAnswer answer(const GraphAnalyzeRequest& request, const Session& session) {
  return {load_program(request.source, session)};
}

std::string to_json(const GraphAnalyzeAnswer& answer) { return analysis_json(answer.analysis); }

std::string as_text(const GraphAnalyzeAnswer& answer, const Style& style) {
  return summary(answer.analysis) + blocks_table(answer.analysis, style) + "\n" +
         segments_table(answer.analysis, style);
}

}  // namespace plait
