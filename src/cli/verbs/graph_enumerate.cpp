#include <fmt/format.h>

#include "base/error.h"
#include "cli/terminal/terminal.h"
#include "cli/verbs/graph_arguments.h"
#include "io/format/text_file.h"

namespace plait {
namespace {

using namespace graph;

constexpr double kMostCombinations = 1 << 20;

std::vector<int> chosen_blocks(const GraphArguments& arguments, const Analysis& analysis) {
  std::vector<int> chosen;
  const int count = static_cast<int>(analysis.blocks.blocks.size());
  if (!arguments.blocks.empty()) {
    into_list(chosen, 0, std::max(0, count - 1))("--blocks", arguments.blocks);
    return chosen;
  }
  for (const Segment& segment : analysis.segments.segments)
    if (segment.count > 1 || analysis.segments.segments.size() == 1) {
      for (int b = 0; b < segment.count; ++b) chosen.push_back(segment.first + b);
      return chosen;
    }
  for (int b = 0; b < count; ++b) chosen.push_back(b);
  return chosen;
}

// "rows over x | columns over x"
std::string names_of(const Analysis& analysis, const Mesh& mesh, const GraphCosts& costs,
                     const std::vector<int>& blocks, const std::vector<int>& choice) {
  std::vector<std::string> names;
  for (const int b : blocks)
    names.push_back(
        graph::text_of(costs.blocks[b].strategies[choice[b]], analysis.blocks.blocks[b], mesh));
  return fmt::format("{}", fmt::join(names, " | "));
}

}  // namespace

int graph_enumerate(const GraphArguments& arguments) {
  const Analysis analysis = load_program(arguments);
  const std::vector<Mesh> meshes = load_meshes(arguments);
  if (arguments.mesh.empty()) throw InputError("--mesh", "is missing: enumerate takes one mesh");
  const Mesh& mesh = meshes.front();
  const SearchOptions options = search_options(arguments);
  const GraphCosts costs = costs_of(analysis, mesh, {options.threads, options.whole});
  const std::vector<int> blocks = chosen_blocks(arguments, analysis);
  double combinations = 1;
  for (const int b : blocks) combinations *= static_cast<double>(costs.blocks[b].strategies.size());
  if (combinations > kMostCombinations)
    throw InputError("--blocks", fmt::format("{} blocks have {:.0f} combinations; at most {:.0f} "
                                             "are written: name fewer",
                                             blocks.size(), combinations, kMostCombinations));
  SearchResult best = search(analysis, mesh, options);
  std::vector<int> choice(costs.blocks.size(), 0);
  if (best.best) choice = choice_of(costs, *best.best);
  std::string out = "strategies,bytes_sent,communication_s,compute_s,time_s,peak_memory_bytes\n";
  for (const int b : blocks) choice[b] = 0;
  for (double i = 0; i < combinations; ++i) {
    const ShardingPlan plan = plan_with(analysis, mesh, costs, choice);
    Bytes sent;
    for (const Bytes bytes : plan.traffic()) sent += bytes;
    out += fmt::format("\"{}\",{:.0f},{:.9g},{:.9g},{:.9g},{:.0f}\n",
                       names_of(analysis, mesh, costs, blocks, choice), sent.value,
                       plan.communication.value, plan.compute.value, plan.time().value,
                       plan.peak.value);
    for (const int b : blocks) {
      if (++choice[b] < static_cast<int>(costs.blocks[b].strategies.size())) break;
      choice[b] = 0;
    }
  }
  if (arguments.output.empty()) {
    print(out);
  } else {
    write_text_file(arguments.output, out);
  }
  return kDone;
}

}  // namespace plait
