#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <memory>

#include "base/error.h"
#include "cli/interrupt.h"
#include "cli/money.h"
#include "cli/nothing_fits.h"
#include "cli/plan_arguments.h"
#include "cli/plan_report.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "cost/engine.h"
#include "io/cluster/cluster_shorthand.h"
#include "io/format/json_reader.h"
#include "io/format/json_writer.h"
#include "io/plan/plan_json.h"
#include "plan/describe.h"
#include "report/quantities.h"
#include "report/summary.h"
#include "search/clusters/replan.h"

namespace plait {
namespace {

// Processes start, find each other and compile kernels: what passes before the first step even if
// no state has to move. Large jobs report half a minute to a few minutes.
constexpr double kUsualRestart = 60;

struct ReplanArguments : PlanArguments {
  std::string path;
  std::vector<std::string> lost;
  std::vector<std::string> lost_devices;
  std::vector<std::string> slow;
  std::vector<std::string> add;
  double restart = kUsualRestart;
};

Setter into_words(std::vector<std::string>& into) {
  return [&into](const std::string& flag, const std::string& text) {
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t comma = std::min(text.find(',', begin), text.size());
      into.push_back(text.substr(begin, comma - begin));
      if (into.back().empty()) throw InputError(flag, "has an empty entry");
      begin = comma + 1;
    }
  };
}

int node_named(const Cluster& cluster, const std::string& flag, const std::string& name) {
  std::vector<std::string_view> names;
  for (std::size_t n = 0; n < cluster.nodes.size(); ++n) {
    if (cluster.nodes[n].name == name) return static_cast<int>(n);
    names.push_back(cluster.nodes[n].name);
  }
  const bool many = names.size() > 8;
  const std::string near = suggestion(name, names);
  if (many) names.resize(8);
  throw InputError(flag, fmt::format("no node is called '{}'{}; they are {}{}", name.substr(0, 40),
                                     near, fmt::join(names, ", "), many ? " ..." : ""));
}

// "5" or "5-7" as first and last.
std::pair<int, int> read_devices(const Cluster& cluster, const std::string& text) {
  const char* end = text.data() + text.size();
  int first = 0;
  int last = 0;
  auto read = std::from_chars(text.data(), end, first);
  last = first;
  if (read.ec == std::errc() && read.ptr != end && *read.ptr == '-')
    read = std::from_chars(read.ptr + 1, end, last);
  if (read.ec != std::errc() || read.ptr != end)
    throw InputError("--lost-devices",
                     fmt::format("must be ids such as 5,6 or 8-15, is '{}'", text.substr(0, 40)));
  if (first < 0 || last < first || last >= cluster.device_count())
    throw InputError("--lost-devices", fmt::format("ids are from 0 to {}, not '{}'",
                                                   cluster.device_count() - 1, text.substr(0, 40)));
  return {first, last};
}

ClusterChange read_change(const ReplanArguments& a, const Cluster& cluster) {
  ClusterChange change;
  change.lost.assign(cluster.devices.size(), false);
  change.speed.assign(cluster.nodes.size(), 1);
  for (const std::string& name : a.lost) {
    const int node = node_named(cluster, "--lost", name);
    for (int i = 0; i < cluster.device_count(); ++i)
      if (cluster.devices[i].node == node) change.lost[i] = true;
  }
  for (const std::string& text : a.lost_devices) {
    const auto [first, last] = read_devices(cluster, text);
    for (int i = first; i <= last; ++i) change.lost[i] = true;
  }
  for (const std::string& text : a.slow) {
    const std::size_t equals = text.rfind('=');
    double speed = 0;
    if (equals != text.npos) {
      const char* end = text.data() + text.size();
      const auto read = std::from_chars(text.data() + equals + 1, end, speed);
      if (read.ec != std::errc() || read.ptr != end) speed = 0;
    }
    if (!(speed >= 0.001 && speed <= 1000))
      throw InputError("--slow", fmt::format("must be like node2=0.5, half as fast as before, is "
                                             "'{}'",
                                             text.substr(0, 40)));
    change.speed[node_named(cluster, "--slow", text.substr(0, equals))] = speed;
  }
  const Catalogue catalogue =
      a.catalogue.empty() ? builtin_catalogue() : load_catalogue(a.catalogue);
  for (const std::string& text : a.add) {
    Cluster added = read_cluster_shorthand(text, catalogue, "--add").cluster;
    for (const std::string& zone : added.zones)
      if (cluster.zones.size() > 1 && zone != "default" &&
          std::ranges::find(cluster.zones, zone) == cluster.zones.end())
        throw InputError("--add", fmt::format("there is no zone '{}' in the plan", zone));
    change.added.push_back(std::move(added));
  }
  return change;
}

struct Outcome {
  const Problem& before;
  const Plan& old_plan;
  Estimate old_cost;
  const Problem& after;
  const std::vector<int>& device_before;
  Replanned result;
  Seconds restart;
  Seconds elapsed;

  Seconds pause() const { return restart + result.migration.transfer; }
};

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

std::string as_text(const Outcome& o) {
  const Style style = style_of(stdout);
  const RankedPlan& now = *o.result.plan;
  const Migration& m = o.result.migration;
  Table table({{"", Align::left}, {"devices"}, {"step"}, {"tokens/s"}, {"plan", Align::left}});
  const auto row = [&](const char* name, const Problem& problem, const Plan& plan,
                       const Estimate& cost) {
    table.row({name, grouped(problem.cluster.device_count()), in_words(cost.step),
               grouped(tokens_per_second(problem, cost.step)), short_description(plan)});
  };
  row("before", o.before, o.old_plan, o.old_cost);
  row("now", o.after, now.plan, now.cost);
  std::string out = problem_heading(o.after, style) + "\n" + table.str(style) + "\n";
  out += paragraph("Device ids, before -> now: " + mapping_in_words(o.device_before), style, 2);
  Bytes most;
  for (const DeviceState& state : m.devices) most = std::max(most, state.received);
  std::string moves =
      m.moved > Bytes(0)
          ? fmt::format(
                "{} of weights and optimizer state move, {} of them between nodes; a "
                "device receives at most {}.",
                in_words(m.moved), in_words(m.over_network), in_words(most))
          : "No state moves.";
  if (o.result.kept) moves = "The old plan is still the best. " + moves;
  if (m.lost > Bytes(0))
    moves += fmt::format(" {} of the state are on no device any more: restart from a checkpoint.",
                         in_words(m.lost));
  out += paragraph(moves, style);
  out += paragraph(fmt::format("Pause: {} ({} to restart, {} to move state). Planned in {}.",
                               long_time(o.pause()), long_time(o.restart), in_words(m.transfer),
                               in_words(o.elapsed)),
                   style);
  return out + "\n" + style.bold("The new plan, stage by stage") + "\n" +
         stage_table(o.after, now.plan, now.cost, style);
}

std::string as_json(const Outcome& o) {
  const Migration& m = o.result.migration;
  std::vector<std::string> states;
  for (const DeviceState& state : m.devices)
    states.push_back(JsonObject()
                         .number("device", index(state.device))
                         .number("needed_bytes", state.needed.value)
                         .number("received_bytes", state.received.value)
                         .str());
  std::vector<std::string> mapping;
  for (const int old : o.device_before) mapping.push_back(old < 0 ? "null" : std::to_string(old));
  const std::string moves = JsonObject()
                                .number("moved_bytes", m.moved.value)
                                .number("over_network_bytes", m.over_network.value)
                                .number("lost_bytes", m.lost.value)
                                .json("devices", json_list(states))
                                .str();
  return lay_out_json(JsonObject()
                          .json("plan", ranked_plan_json(o.after, *o.result.plan))
                          .number("step_before_s", o.old_cost.step.value)
                          .boolean("kept", o.result.kept)
                          .json("device_before", json_list(mapping))
                          .json("state", moves)
                          .number("transfer_s", m.transfer.value)
                          .number("restart_s", o.restart.value)
                          .number("pause_s", o.pause().value)
                          .number("search_s", o.elapsed.value)
                          .str());
}

int replan_with(const ReplanArguments& arguments) {
  if (arguments.lost.empty() && arguments.lost_devices.empty() && arguments.slow.empty() &&
      arguments.add.empty())
    throw InputError("plait replan", "what changed? Give --lost, --lost-devices, --slow or --add");
  check_output(arguments.output);
  const PlanFile file = read_plan_file(arguments.path);
  const Planner& planner = named_planner(arguments.planner);
  const ChangedCluster changed =
      changed_cluster(file.problem.cluster, read_change(arguments, file.problem.cluster));
  if (changed.cluster.devices.empty())
    throw InputError(arguments.lost.empty() ? "--lost-devices" : "--lost",
                     "takes all devices; nothing is left to plan for");
  Problem after = file.problem;
  after.cluster = changed.cluster;
  Outcome outcome{file.problem,
                  file.plan,
                  CostEngine(file.problem).simulate(file.plan),
                  after,
                  changed.before,
                  {},
                  Seconds(arguments.restart),
                  {}};
  const auto begin = std::chrono::steady_clock::now();
  bool interrupted = false;
  if (!is_hopeless(after)) {
    Interrupt interrupt;
    const SearchContext context{after, arguments.search, interrupt.token(), {}, {}};
    outcome.result = replan(planner, context, file.problem, file.plan, changed.before);
    interrupted = interrupt.happened();
  }
  outcome.elapsed =
      Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  if (!outcome.result.plan) {
    complain(why_nothing_fits(after, arguments, outcome.result.search));
    return interrupted ? kInterrupted : kNothingFits;
  }
  if (!arguments.output.empty())
    write_text_file(arguments.output,
                    plan_file_to_json(after, outcome.result.plan->plan, outcome.result.plan->cost));
  print(arguments.json ? as_json(outcome) : as_text(outcome));
  return kDone;
}

FlagGroup change_flags(ReplanArguments& a) {
  return {"What changed",
          {{.name = "--lost",
            .value = "NODES",
            .help = "nodes that are gone, by name: node3,node7",
            .set = into_words(a.lost),
            .repeats = true},
           {.name = "--lost-devices",
            .value = "IDS",
            .help = "devices that are gone: 5,6 or 8-15",
            .set = into_words(a.lost_devices),
            .repeats = true},
           {.name = "--slow",
            .value = "NODE=F",
            .help = "a node that computes at a fraction of its speed: node2=0.5",
            .set = into_words(a.slow),
            .repeats = true},
           {.name = "--add",
            .value = "C",
            .help = "nodes that came, as the cluster shorthand has them: 2xA100-80GB:8",
            .set = [&a](const std::string&, const std::string& text) { a.add.push_back(text); },
            .repeats = true},
           {.name = "--restart",
            .value = "T",
            .help = "what a restart takes besides moving state (60s)",
            .set = [&a](const std::string& flag, const std::string& text) {
              a.restart = parse_seconds(flag, text);
            }}}};
}

}  // namespace

Command replan_command() {
  const auto arguments = std::make_shared<ReplanArguments>();
  arguments->search.threads = usual_threads();
  arguments->search.keep = 1;
  std::vector<FlagGroup> groups{{"Arguments", {plan_file_flag(arguments->path)}},
                                change_flags(*arguments)};
  for (FlagGroup& group : plan_flags(*arguments)) {
    std::erase_if(group.flags, [](const Flag& flag) {
      static const std::vector<std::string> kSome{
          "--catalogue", "--planner", "--time-limit", "--threads", "--json", "--output"};
      return std::ranges::find(kSome, flag.name) == kSome.end();
    });
    if (group.flags.empty()) continue;
    if (group.flags.front().name == "--catalogue") group.title = "What can be added";
    groups.push_back(std::move(group));
  }
  Command command;
  command.groups = std::move(groups);
  command.run = [arguments] { return replan_with(*arguments); };
  return command;
}

}  // namespace plait
