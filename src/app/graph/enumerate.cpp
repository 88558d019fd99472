#include "app/graph/enumerate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/request/request_error.h"
#include "io/format/json_writer.h"

namespace plait {
namespace {

using namespace graph;

constexpr double kMostCombinations = 1 << 20;

std::vector<int> chosen_blocks(const GraphEnumerateRequest& request, const Analysis& analysis) {
  const int count = static_cast<int>(analysis.blocks.blocks.size());
  for (const int b : request.blocks)
    if (b < 0 || b >= count)
      throw RequestError("blocks", fmt::format("{} is not a block: the program has {}", b, count));
  if (!request.blocks.empty()) return request.blocks;
  std::vector<int> chosen;
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

GraphEnumerateAnswer answer(const GraphEnumerateRequest& request, const Session& session) {
  if (request.source.mesh.empty())
    throw RequestError("mesh", "is missing: enumerate takes one mesh");
  const Analysis analysis = load_program(request.source, session);
  const MeasuredSource measured = load_measured(request.source, session);
  const Mesh& mesh = measured.meshes.front();
  graph::SearchOptions options = measured.options();
  const Stopwatch watch;
  options.stop = [&] { return session.stop.stop_requested() || watch.elapsed() >= request.limit; };
  const GraphCosts costs = costs_of(analysis, mesh, cost_options(options));
  const std::vector<int> blocks = chosen_blocks(request, analysis);
  double combinations = 1;
  for (const int b : blocks) combinations *= static_cast<double>(costs.blocks[b].strategies.size());
  if (combinations > kMostCombinations)
    throw RequestError("blocks", fmt::format("{} blocks have {:.0f} combinations; at most {:.0f} "
                                             "are written: name fewer",
                                             blocks.size(), combinations, kMostCombinations));
  graph::SearchResult best = search(analysis, mesh, options);
  std::vector<int> choice(costs.blocks.size(), 0);
  if (best.best) choice = choice_of(costs, *best.best);
  GraphEnumerateAnswer out;
  for (const int b : blocks) choice[b] = 0;
  out.missing = static_cast<std::int64_t>(combinations);
  for (; out.missing > 0 && !options.stop(); --out.missing) {
    const ShardingPlan plan = plan_with(analysis, mesh, costs, choice);
    Bytes sent;
    for (const Bytes bytes : plan.traffic()) sent += bytes;
    out.combinations.push_back({names_of(analysis, mesh, costs, blocks, choice), sent,
                                plan.communication, plan.compute, plan.time(), plan.peak});
    for (const int b : blocks) {
      if (++choice[b] < static_cast<int>(costs.blocks[b].strategies.size())) break;
      choice[b] = 0;
    }
  }
  return out;
}

std::string to_csv(const GraphEnumerateAnswer& answer) {
  std::string out = "strategies,bytes_sent,communication_s,compute_s,time_s,peak_memory_bytes\n";
  for (const GraphCombination& one : answer.combinations)
    out +=
        fmt::format("\"{}\",{:.0f},{:.9g},{:.9g},{:.9g},{:.0f}\n", one.strategies, one.sent.value,
                    one.communication.value, one.compute.value, one.time.value, one.peak.value);
  return out;
}

std::string to_json(const GraphEnumerateAnswer& answer) {
  std::vector<std::string> all;
  for (const GraphCombination& one : answer.combinations)
    all.push_back(JsonObject()
                      .text("strategies", one.strategies)
                      .number("bytes_sent", one.sent.value)
                      .number("communication_s", one.communication.value)
                      .number("compute_s", one.compute.value)
                      .number("time_s", one.time.value)
                      .number("peak_memory_bytes", one.peak.value)
                      .str());
  return lay_out_json(JsonObject()
                          .json("combinations", json_list(all))
                          .number("missing", static_cast<double>(answer.missing))
                          .str());
}

}  // namespace plait
