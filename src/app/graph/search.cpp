#include "app/graph/search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <random>

#include "graph/search/pins.h"
#include "io/graph/sharding_json.h"
#include "report/quantities.h"

namespace plait {
namespace {

using namespace graph;

// Traffic may be little: KiB below a MiB.
std::string sent_in_words(Bytes bytes) {
  if (bytes >= Bytes(0x1p20)) return in_words(bytes);
  return fmt::format("{:.{}f} KiB", bytes.value / 0x1p10, bytes < Bytes(10 * 0x1p10) ? 1 : 0);
}

// Along which axes devices do the same work.
std::string copies_in_words(const ShardingReport& report) {
  const Mesh& mesh = report.plan.mesh;
  std::string out;
  for (int a = 0; a < mesh.axes(); ++a) {
    const auto count = std::ranges::count_if(report.plan.strategies,
                                             [&](const Strategy& s) { return s.role[a] < 0; });
    if (count == 0 || mesh.sizes[a] == 1) continue;
    out += fmt::format("Along {} all {} devices do the same work in {} of {} blocks", axis_name(a),
                       mesh.sizes[a], count, report.plan.strategies.size());
    out += report.costs.whole ? ".\n"
                              : fmt::format(": their sizes do not divide by {}.\n", mesh.sizes[a]);
  }
  return out;
}

std::string head(const ShardingReport& report) {
  const ShardingPlan& plan = report.plan;
  const double gap = plan.time().value > 0 ? 1 - plan.bound.value / plan.time().value : 0;
  std::string out =
      fmt::format("{} on {}, mesh {}: {} a step (compute {}, communication {}), {} a device\n",
                  report.analysis.module->name, report.cluster, graph::text_of(plan.mesh.sizes),
                  in_words(plan.time()), in_words(plan.compute), in_words(plan.communication),
                  in_words(plan.peak));
  out += gap < 1e-9
             ? "No choice of strategies for this mesh is faster.\n"
             : fmt::format("At most {:.2f} % slower than the best for this mesh.\n", 100 * gap);
  const std::vector<Bytes> traffic = plan.traffic();
  std::vector<std::string> kinds;
  for (int k = 0; k < kCollectiveKinds; ++k)
    if (traffic[k] > Bytes(0))
      kinds.push_back(
          fmt::format("{} {}", name_of(static_cast<CollectiveKind>(k)), sent_in_words(traffic[k])));
  if (!kinds.empty()) out += fmt::format("Each device sends {}.\n", fmt::join(kinds, ", "));
  return out + copies_in_words(report) + "\n";
}

// Under a limit of memory another strategy may be faster, but not fit.
std::string runner_up_in_words(const RunnerUp& second, const Block& block, const Mesh& mesh) {
  const std::string words = graph::text_of(second.strategy, block, mesh);
  if (second.loss >= Seconds(0)) return fmt::format("{} ({})", in_words(second.loss), words);
  return fmt::format("gains {}, takes memory ({})", in_words(Seconds(-second.loss.value)), words);
}

std::string blocks_table(const ShardingReport& report, const Style& style) {
  const auto second = runners_up(report.costs, report.plan);
  const std::vector<int> choice = choice_of(report.costs, report.plan);
  Table table({{"block"},
               {"name", Align::left, 1},
               {"compute"},
               {"communication"},
               {"memory"},
               {"strategy", Align::left},
               {"runner-up loses", Align::left}});
  for (std::size_t b = 0; b < choice.size(); ++b) {
    const BlockCosts& costs = report.costs.blocks[b];
    const Block& block = report.analysis.blocks.blocks[b];
    table.row({std::to_string(b), block.name, in_words(costs.compute[choice[b]]),
               in_words(costs.communication[choice[b]]), in_words(costs.memory[choice[b]]),
               graph::text_of(report.plan.strategies[b], block, report.plan.mesh),
               second[b] ? runner_up_in_words(*second[b], block, report.plan.mesh) : ""});
  }
  return table.str(style);
}

std::string arguments_table(const ShardingReport& report, const Style& style) {
  const Program& program = report.analysis.program;
  Table table({{"argument", Align::left},
               {"type", Align::left},
               {"sharding", Align::left},
               {"because of", Align::left}});
  for (int a = 0; a < static_cast<int>(program.arguments.size()); ++a) {
    const int node = program.arguments[a];
    const int value = program.nodes[node].outputs.front();
    const auto& shape = *program.values[value].shape;
    const int block = report.analysis.blocks.of_node[node];
    table.row({argument_path(report, a), graph::text_of(shape, false),
               partition_spec(report.plan.placements[value], static_cast<int>(shape.dims.size()),
                              report.plan.mesh.axes()),
               block < 0 ? "used by several blocks"
                         : fmt::format("block {}: {}", block,
                                       graph::text_of(report.plan.strategies[block],
                                                      report.analysis.blocks.blocks[block],
                                                      report.plan.mesh))});
  }
  return table.str(style);
}

// The best mesh; of equal ones the first.
struct Found {
  graph::SearchResult result;
  Bytes needed;
};
Found best_of(const Analysis& analysis, const std::vector<Mesh>& meshes,
              const graph::SearchOptions& options) {
  Found found;
  for (const Mesh& mesh : meshes) {
    if ((found.result.best || found.result.why_not) && options.stop()) break;
    graph::SearchResult result = search(analysis, mesh, options);
    if (result.why_not && (found.needed == Bytes(0) || result.why_not->needed < found.needed))
      found.needed = result.why_not->needed;
    const bool better =
        result.best && (!found.result.best || result.best->time() < found.result.best->time());
    if (better || (!found.result.best && result.why_not)) found.result = std::move(result);
  }
  return found;
}

// Some legal plan for the first mesh, the same for the same seed.
Found random_plan(const Analysis& analysis, const Mesh& mesh, const graph::SearchOptions& options,
                  int seed) {
  const GraphCosts costs = costs_of(analysis, mesh, cost_options(options));
  std::mt19937 random(static_cast<std::uint32_t>(seed));
  std::vector<int> choice;
  for (const BlockCosts& block : costs.blocks)
    choice.push_back(static_cast<int>(random() % block.strategies.size()));
  Found found;
  found.result.best = plan_with(analysis, mesh, costs, choice);
  return found;
}

ShardingReport report_of(const GraphSearchAnswer& answer) {
  return {answer.analysis, answer.costs, *answer.plan, answer.cluster, answer.argument_names};
}

}  // namespace

GraphSearchAnswer answer(const GraphSearchRequest& request, const Session& session) {
  GraphSearchAnswer out;
  out.analysis = load_program(request.source, session);
  const MeasuredSource measured = load_measured(request.source, session);
  const std::vector<Mesh>& meshes = measured.meshes;
  graph::SearchOptions options = measured.options();
  const Stopwatch watch;
  options.stop = [&] {
    if (!session.stop.stop_requested() && watch.elapsed() < request.limit) return false;
    out.cut_short = true;
    return true;
  };
  Found found = request.random ? random_plan(out.analysis, meshes.front(), options, *request.random)
                               : best_of(out.analysis, meshes, options);
  out.interrupted = session.stop.stop_requested();
  if (!found.result.best && out.cut_short) {
    out.reason = out.interrupted ? "interrupted before a plan that fits was found"
                                 : "no plan that fits was found within `time_limit`";
    return out;
  }
  if (!found.result.best) {
    out.reason = fmt::format(
        "no plan fits: the smallest that was found needs {} a device, and there are {}; more "
        "devices, fewer samples or recomputation (jax.checkpoint) would help",
        in_words(found.needed), in_words(found.result.why_not->limit));
    return out;
  }
  out.plan = std::move(found.result.best);
  out.costs = costs_of(out.analysis, out.plan->mesh, cost_options(options));
  out.cluster = request.source.cluster;
  out.argument_names = read_argument_names(request.source.path);
  return out;
}

std::string to_json(const GraphSearchAnswer& answer) {
  return sharding_plan_json(report_of(answer));
}

std::string as_text(const GraphSearchAnswer& answer, const Style& style) {
  const ShardingReport report = report_of(answer);
  return head(report) + blocks_table(report, style) + "\n" + arguments_table(report, style);
}

std::string annotated_program(const GraphSearchAnswer& answer) {
  return annotated_hlo(answer.analysis, *answer.plan);
}

}  // namespace plait
