#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "app/clusters/replan.h"
#include "app/request/ranked_plan_json.h"
#include "app/request/saved_target.h"
#include "cost/engine.h"
#include "report/plan_tables.h"
#include "report/quantities.h"

namespace plait {
namespace {

// "0-7 -> 0-7, 16-31 -> 8-23": runs of devices that kept their order.
std::string mapping_in_words(const std::vector<int>& device_before) {
  std::vector<std::string> parts;
  const int count = static_cast<int>(device_before.size());
  for (int begin = 0; begin < count;) {
    int end = begin + 1;
    const int old = device_before[begin];
    while (end < count && device_before[end] == (old < 0 ? -1 : old + end - begin)) ++end;
    const auto range = [](int from, int size) {
      return size == 1 ? std::to_string(from) : fmt::format("{}-{}", from, from + size - 1);
    };
    parts.push_back(
        old < 0 ? fmt::format("new: {}", range(begin, end - begin))
                : fmt::format("{} -> {}", range(old, end - begin), range(begin, end - begin)));
    begin = end;
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

// "5 of the 29 devices stay out: Megatron-LM uses all devices of a node on which it is started, and
// fewer of some nodes are faster. Processes to start: 6 on node-0, 6 on node-1."
std::string left_out_in_words(const ReplanAnswer& answer) {
  if (answer.left_out == 0) return "";
  const Cluster& cluster = answer.after.cluster;
  std::vector<int> sizes(cluster.nodes.size());
  for (const Device& device : cluster.devices) ++sizes[device.node];
  std::vector<std::string> nodes;
  for (std::size_t n = 0; n < sizes.size(); ++n)
    if (sizes[n] > 0) nodes.push_back(fmt::format("{} on {}", sizes[n], cluster.nodes[n].name));
  constexpr std::size_t kMost = 8;
  const bool many = nodes.size() > kMost;
  if (many) nodes.resize(kMost);
  return fmt::format(
      "{} of the {} devices {} out: {} uses all devices of a node on which it is started, and "
      "fewer of some nodes are faster. Processes to start: {}{}.",
      grouped(answer.left_out), grouped(cluster.device_count() + answer.left_out),
      answer.left_out == 1 ? "stays" : "stay", saved_target(answer.before).program,
      fmt::join(nodes, ", "), many ? " ..." : "");
}

// "The new plan leaves 7 of the 31 devices idle: Megatron-LM uses all devices of a node or none."
std::string idle_in_words(const ReplanAnswer& answer) {
  const Cluster& cluster = answer.after.cluster;
  std::vector<int> used(cluster.nodes.size());
  std::vector<int> all(cluster.nodes.size());
  int idle = cluster.device_count();
  for (const Device& device : cluster.devices) ++all[device.node];
  for (const Stage& stage : answer.result.plan->plan.stages)
    for (const DeviceId id : stage.devices) {
      ++used[cluster.device(id).node];
      --idle;
    }
  if (idle == 0) return "";
  const std::string count = fmt::format("The new plan leaves {} of the {} devices idle",
                                        grouped(idle), grouped(cluster.device_count()));
  // A node that lost some of its devices, and is not used for what is left of it.
  const bool whole = std::ranges::equal(used, all, [](int u, int a) { return u == 0 || u == a; });
  const Target target = saved_target(answer.before);
  if (target.idle_in_node || !whole || used.size() < 2) return count + ".";
  return fmt::format("{}: {} uses all devices of a node or none.", count, target.program);
}

}  // namespace

std::string reason(const ReplanAnswer& answer) {
  return answer.no_plan ? in_words(*answer.no_plan) : "";
}

std::string plan_file(const ReplanAnswer& answer) {
  const RankedPlan& now = *answer.result.plan;
  return plan_file_to_json(answer.after, now.plan, now.cost);
}

std::string as_text(const ReplanAnswer& answer, const Style& style) {
  const RankedPlan& now = *answer.result.plan;
  const Migration& m = answer.result.migration;
  Table table({{"", Align::left}, {"devices"}, {"step"}, {"tokens/s"}, {"plan", Align::left}});
  const auto row = [&](const char* name, const Problem& problem, const Plan& plan,
                       const Estimate& cost) {
    table.row({name, grouped(problem.cluster.device_count()), in_words(cost.step),
               grouped(tokens_per_second(problem, cost.step)), short_description(plan)});
  };
  row("before", answer.before.problem, answer.before.plan, answer.old_cost);
  row("now", answer.after, now.plan, now.cost);
  std::string out = problem_heading(answer.after, style, saved_target(answer.before).name) + "\n" +
                    table.str(style) + "\n";
  out +=
      paragraph("Device ids, before -> now: " + mapping_in_words(answer.device_before), style, 2);
  Bytes most;
  for (const DeviceState& state : m.devices) most = std::max(most, state.received);
  std::string moves =
      m.moved > Bytes(0)
          ? fmt::format(
                "{} of weights and optimizer state move, {} of them between nodes; a "
                "device receives at most {}.",
                in_words(m.moved), in_words(m.over_network), in_words(most))
          : "No state moves.";
  if (answer.result.kept) moves = "The old plan is still the best. " + moves;
  if (m.lost > Bytes(0))
    moves += fmt::format(" {} of the state are on no device any more: restart from a checkpoint.",
                         in_words(m.lost));
  out += paragraph(moves, style);
  out += paragraph(fmt::format("Pause: {} ({} to restart, {} to move state). Planned in {}.",
                               long_time(answer.pause()), long_time(answer.restart),
                               in_words(m.transfer), in_words(answer.elapsed)),
                   style);
  for (const std::string& words : {left_out_in_words(answer), idle_in_words(answer)})
    if (!words.empty()) out += paragraph(words, style);
  return out + "\n" + style.bold("The new plan, stage by stage") + "\n" +
         stage_table(answer.after, now.plan, now.cost, style);
}

std::string to_json(const ReplanAnswer& answer) {
  const Migration& m = answer.result.migration;
  std::vector<std::string> states;
  for (const DeviceState& state : m.devices)
    states.push_back(JsonObject()
                         .number("device", index(state.device))
                         .number("needed_bytes", state.needed.value)
                         .number("received_bytes", state.received.value)
                         .str());
  std::vector<std::string> mapping;
  for (const int old : answer.device_before)
    mapping.push_back(old < 0 ? "null" : std::to_string(old));
  const std::string moves = JsonObject()
                                .number("moved_bytes", m.moved.value)
                                .number("over_network_bytes", m.over_network.value)
                                .number("lost_bytes", m.lost.value)
                                .json("devices", json_list(states))
                                .str();
  return lay_out_json(JsonObject()
                          .json("plan", ranked_plan_json(answer.after, *answer.result.plan))
                          .number("step_before_s", answer.old_cost.step.value)
                          .boolean("kept", answer.result.kept)
                          .json("device_before", json_list(mapping))
                          .number("left_out", answer.left_out)
                          .json("state", moves)
                          .number("transfer_s", m.transfer.value)
                          .number("restart_s", answer.restart.value)
                          .number("pause_s", answer.pause().value)
                          .number("search_s", answer.elapsed.value)
                          .str());
}

}  // namespace plait
