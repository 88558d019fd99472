#include <algorithm>
#include <array>
#include <memory>
#include <thread>

#include "base/error.h"
#include "cli/terminal/terminal.h"
#include "cli/verbs/graph_arguments.h"
#include "io/cluster/load_cluster.h"
#include "io/format/text_file.h"

namespace plait {
namespace {

constexpr std::array kActions{
    GraphAction{"analyze", graph_analyze},     GraphAction{"search", graph_search},
    GraphAction{"enumerate", graph_enumerate}, GraphAction{"run", graph_run},
    GraphAction{"solve", graph_solve},
};

int run_action(const GraphArguments& arguments) {
  std::vector<std::string_view> names;
  for (const GraphAction& action : kActions) names.push_back(action.name);
  const std::string& wanted = arguments.words.front();
  const auto found = std::ranges::find(kActions, wanted, &GraphAction::name);
  if (found == kActions.end()) refuse_choice("plait graph", wanted, names);
  return found->run(arguments);
}

std::vector<Flag> plan_flags(GraphArguments& a) {
  return {{.name = "--cluster",
           .value = "C",
           .help = "the devices, as plait plan takes them: 1xA100-80GB:8",
           .set = into_text(a.cluster)},
          {.name = "--mesh",
           .value = "2x4",
           .help = "one to three axes; without it all that the devices make are tried",
           .set = into_text(a.mesh)},
          {.name = "--memory",
           .value = "GIB",
           .help = "of a device (default: what it has)",
           .set =
               [&a](const std::string& flag, const std::string& text) {
                 char* end = nullptr;
                 const double value = std::strtod(text.c_str(), &end);
                 if (end == text.c_str() || *end != '\0' || !(value > 0) || value > 1e9)
                   throw InputError(flag, "must be a positive number of GiB, is '" + text + "'");
                 a.memory_gib = value;
               }},
          {.name = "--whole",
           .value = "",
           .help = "blocks may also be done as a whole on every device of an axis",
           .set = into_switch(a.whole)},
          {.name = "--random",
           .value = "SEED",
           .help = "search: not the best plan but some legal one, for checking",
           .set = into_integer(a.random, 0, 1'000'000'000)},
          {.name = "--threads",
           .value = "N",
           .help = "of the search (default: all cores); the answer is the same for any number",
           .set = into_integer(a.threads, 1, 4096)}};
}

std::vector<Flag> output_flags(GraphArguments& a) {
  return {{.name = "--output",
           .value = "FILE",
           .help = "search: write the plan here; enumerate: the table; solve: the answer",
           .set = into_text(a.output),
           .letter = "-o"},
          {.name = "--annotated",
           .value = "FILE",
           .help = "search: write the program with its shardings here",
           .set = into_text(a.annotated)},
          {.name = "--blocks",
           .value = "LIST",
           .help = "enumerate: numbers of the blocks to vary (default: the first segment's)",
           .set = into_text(a.blocks)},
          {.name = "--time-limit",
           .value = "T",
           .help = "solve: stop after 10s, 2m ... with the best so far (60s)",
           .set = [&a](const std::string& flag,
                       const std::string& text) { a.seconds = parse_seconds(flag, text); }},
          {.name = "--json", .value = "", .help = "print JSON", .set = into_switch(a.json)}};
}

std::vector<Flag> run_flags(GraphArguments& a) {
  return {{.name = "--plan",
           .value = "FILE",
           .help = "run: what plait graph search wrote",
           .set = into_text(a.plan)},
          {.name = "--devices",
           .value = "D",
           .help = "run: cpu:8 makes eight devices of this machine",
           .set = into_text(a.devices)},
          {.name = "--steps",
           .value = "N",
           .help = "run: steps to compare with one device (default: 3)",
           .set = into_integer(a.steps, 1, 1000)}};
}

}  // namespace

const std::string& graph_file(const GraphArguments& arguments) {
  if (arguments.words.size() != 2)
    throw InputError("plait graph " + arguments.words.front(), "needs one file");
  return arguments.words[1];
}

graph::Analysis load_program(const GraphArguments& arguments) {
  const std::string& path = graph_file(arguments);
  graph::Analysis analysis = graph::analyze(read_text_file(path), path);
  for (const std::string& warning : analysis.warnings) warn(warning);
  return analysis;
}

std::vector<graph::Mesh> load_meshes(const GraphArguments& arguments) {
  if (arguments.cluster.empty())
    throw InputError("--cluster", "is missing: name the devices, as in 1xA100-80GB:8");
  const LoadedCluster loaded = load_cluster(arguments.cluster);
  for (const std::string& warning : loaded.warnings) warn(warning);
  std::vector<graph::Mesh> meshes;
  if (!arguments.mesh.empty()) {
    const auto sizes = graph::parse_mesh(arguments.mesh, "--mesh");
    meshes.push_back(graph::make_mesh(loaded.cluster, sizes, "--mesh"));
    return meshes;
  }
  constexpr int kMostTried = 2;  // axes, unless three are asked for
  for (const auto& sizes : graph::all_meshes(loaded.cluster.device_count(), kMostTried))
    meshes.push_back(graph::make_mesh(loaded.cluster, sizes, "--cluster"));
  return meshes;
}

graph::SearchOptions search_options(const GraphArguments& arguments) {
  graph::SearchOptions options;
  options.threads = arguments.threads > 0
                        ? arguments.threads
                        : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  options.whole = arguments.whole;
  if (arguments.memory_gib) options.memory = Bytes(*arguments.memory_gib * 0x1p30);
  return options;
}

Command graph_command() {
  const auto arguments = std::make_shared<GraphArguments>();
  GraphArguments& a = *arguments;
  Command command;
  command.groups.push_back(
      {"What to do",
       {{.name = "ACTION",
         .value = "ACTION",
         .help = "analyze, search, enumerate or run, then the program: HLO text, or of run "
                 "FILE.py:FUNCTION; or solve, then an instance of the sharding contest",
         .set = [&a](const std::string&, const std::string& text) { a.words.push_back(text); },
         .required = true,
         .repeats = true}}});
  command.groups.push_back({"Devices", plan_flags(a)});
  command.groups.push_back({"Output", output_flags(a)});
  command.groups.push_back({"Running", run_flags(a)});
  command.run = [arguments] { return run_action(*arguments); };
  return command;
}

}  // namespace plait
