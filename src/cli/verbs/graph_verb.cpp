#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

#include "app/graph/analyze.h"
#include "app/graph/enumerate.h"
#include "app/graph/profile.h"
#include "app/graph/run.h"
#include "app/graph/search.h"
#include "app/graph/solve.h"
#include "base/error.h"
#include "cli/flags/command.h"
#include "cli/flags/field_flags.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/terminal.h"
#include "io/format/text_file.h"

namespace plait {
namespace {

namespace fs = std::filesystem;

constexpr int kMostBlocks = 1 << 20;

// What the words and flags of `plait graph` say.
struct GraphArguments {
  std::vector<std::string> words;  // action, file
  std::vector<std::string> given;  // flags, by name
  GraphSource source;
  std::optional<int> random;
  std::vector<int> blocks;
  std::string output;
  std::string annotated;
  bool json = false;
  std::string plan;
  std::string devices;
  int steps = 3;
  std::optional<double> seconds;  // that the search may take
  double budget = 600;            // of profile, in seconds
  std::string products;
};

// Of `search` and `solve`, where --time-limit does not say it.
constexpr double kUsualSeconds = 60;

Session warning_session() {
  Session session;
  session.on_warning = [](const std::string& text) { warn(in_flags(text)); };
  return session;
}

int analyze(const GraphArguments& arguments) {
  const GraphAnalyzeAnswer found = answer(GraphAnalyzeRequest{arguments.source}, warning_session());
  print(arguments.json ? to_json(found) : in_flags(as_text(found, style_of(stdout))));
  return kDone;
}

int search(const GraphArguments& arguments) {
  const Interrupt interrupt;
  Session session = warning_session();
  session.stop = interrupt.token();
  const GraphSearchAnswer found =
      answer(GraphSearchRequest{arguments.source, arguments.random,
                                Seconds(arguments.seconds.value_or(kUsualSeconds))},
             session);
  if (!found.plan) {
    complain(in_flags(found.reason));
    return found.interrupted ? kInterrupted : kNothingFits;
  }
  if (found.cut_short)
    warn(found.interrupted ? "interrupted: this is the best plan so far"
                           : "--time-limit is over: this is the best plan so far");
  if (!arguments.output.empty()) write_text_file(arguments.output, to_json(found));
  if (!arguments.annotated.empty()) write_text_file(arguments.annotated, annotated_program(found));
  print(arguments.json ? to_json(found) : as_text(found, style_of(stdout)));
  return kDone;
}

int enumerate(const GraphArguments& arguments) {
  const Interrupt interrupt;
  Session session = warning_session();
  session.stop = interrupt.token();
  GraphEnumerateRequest request{arguments.source, arguments.blocks};
  if (arguments.seconds) request.limit = Seconds(*arguments.seconds);
  const GraphEnumerateAnswer found = answer(request, session);
  if (found.missing > 0)
    warn(fmt::format("cut short: {} of {} combinations are missing", found.missing,
                     found.missing + static_cast<std::int64_t>(found.combinations.size())));
  if (!arguments.output.empty()) write_text_file(arguments.output, to_csv(found));
  if (arguments.json) {
    print(to_json(found));
  } else if (arguments.output.empty()) {
    print(to_csv(found));
  }
  return kDone;
}

// The Python that has JAX: $PLAIT_JAX_PYTHON, the environment that ./dev setup_jax made beside this
// build, or the usual one.
std::string python_program(const fs::path& self) {
  if (const char* named = std::getenv("PLAIT_JAX_PYTHON"); named != nullptr) return named;
  const fs::path beside = self.parent_path() / "../jax/bin/python";
  return fs::exists(beside) ? beside.lexically_normal().string() : "python3";
}

std::string runner_file(const fs::path& self) {
  if (const char* named = std::getenv("PLAIT_JAX_RUNNER"); named != nullptr) return named;
  // In the sources, and where plait was installed.
  for (const char* place : {"../../python/plait/jax.py", "../share/plait/jax.py"}) {
    const fs::path beside = self.parent_path() / place;
    if (fs::exists(beside)) return beside.lexically_normal().string();
  }
  throw InputError("plait graph",
                   "python/plait/jax.py is not beside this program: name it in PLAIT_JAX_RUNNER");
}

int run(const GraphArguments& arguments) {
  std::error_code ignored;
  const fs::path self = fs::read_symlink("/proc/self/exe", ignored);
  const GraphRunAnswer compared = answer(GraphRunRequest{.step = arguments.source.path,
                                                         .plan = arguments.plan,
                                                         .devices = arguments.devices,
                                                         .steps = arguments.steps,
                                                         .python = python_program(self),
                                                         .runner = runner_file(self)});
  print(arguments.json ? to_json(compared) : as_text(compared, style_of(stdout)));
  return kDone;
}

int profile(const GraphArguments& arguments) {
  std::error_code ignored;
  const fs::path self = fs::read_symlink("/proc/self/exe", ignored);
  const GraphProfileAnswer timed =
      answer(GraphProfileRequest{.source = arguments.source,
                                 .devices = arguments.devices,
                                 .output = arguments.output,
                                 .budget = Seconds(arguments.budget),
                                 .python = python_program(self),
                                 .runner = arguments.products.empty() ? runner_file(self) : "",
                                 .products = arguments.products},
             warning_session());
  print(arguments.json ? to_json(timed) : as_text(timed));
  return kDone;
}

int solve(const GraphArguments& arguments) {
  const Interrupt interrupt;
  Session session;
  session.stop = interrupt.token();
  const std::string& path = arguments.source.path;
  const GraphSolveAnswer solved =
      answer(GraphSolveRequest{path, Seconds(arguments.seconds.value_or(kUsualSeconds)),
                               arguments.source.threads},
             session);
  if (!solved.solution.found()) {
    complain(path + ": " + solved.solution.reason);
    return solved.interrupted ? kInterrupted : kNothingFits;
  }
  if (!arguments.output.empty()) write_text_file(arguments.output, solution_file(solved));
  print(to_json(solved));
  return kDone;
}

// One action of the verb.
struct GraphAction {
  std::string_view name;
  int (*run)(const GraphArguments& arguments);
};
constexpr std::array kActions{
    GraphAction{"analyze", analyze},     GraphAction{"search", search},
    GraphAction{"enumerate", enumerate}, GraphAction{"run", run},
    GraphAction{"profile", profile},     GraphAction{"solve", solve},
};

// Which actions a flag plays a part in; --json in all of them.
struct FlagUse {
  std::string_view flag;
  std::vector<std::string_view> actions;
};
const std::vector<FlagUse>& flag_uses() {
  static const std::vector<FlagUse> kUses{
      {"--cluster", {"search", "enumerate", "profile"}},
      {"--mesh", {"search", "enumerate", "profile"}},
      {"--memory", {"search", "enumerate", "profile"}},
      {"--whole", {"search", "enumerate", "profile"}},
      {"--profile", {"search", "enumerate"}},
      {"--keep-shardings", {"search", "enumerate", "profile"}},
      {"--random", {"search"}},
      {"--threads", {"search", "enumerate", "profile", "solve"}},
      {"--output", {"search", "enumerate", "profile", "solve"}},
      {"--annotated", {"search"}},
      {"--blocks", {"enumerate"}},
      {"--time-limit", {"search", "enumerate", "solve"}},
      {"--plan", {"run"}},
      {"--devices", {"run", "profile"}},
      {"--budget", {"profile"}},
      {"--ops", {"profile"}},
      {"--steps", {"run"}},
  };
  return kUses;
}

void refuse_idle_flags(const std::vector<std::string>& given, const std::string& action) {
  for (const FlagUse& use : flag_uses())
    if (std::ranges::count(given, use.flag) > 0 && std::ranges::count(use.actions, action) == 0)
      throw InputError(std::string(use.flag),
                       fmt::format("goes with plait graph {}", fmt::join(use.actions, ", ")));
}

int run_action(GraphArguments arguments) {
  std::vector<std::string_view> names;
  for (const GraphAction& action : kActions) names.push_back(action.name);
  const std::string& wanted = arguments.words.front();
  const auto found = std::ranges::find(kActions, wanted, &GraphAction::name);
  if (found == kActions.end()) refuse_choice("plait graph", wanted, names);
  if (arguments.words.size() != 2) throw InputError("plait graph " + wanted, "needs one file");
  refuse_idle_flags(arguments.given, wanted);
  arguments.source.path = arguments.words[1];
  return found->run(arguments);
}

std::vector<Flag> plan_flags(GraphArguments& a) {
  return {{.name = "--cluster",
           .value = "C",
           .help = "the devices, as plait plan takes them: 1xA100-80GB:8",
           .set = into_text(a.source.cluster)},
          {.name = "--mesh",
           .value = "2x4",
           .help = "one to three axes; without it all that the devices make are tried",
           .set = into_text(a.source.mesh)},
          {.name = "--memory",
           .value = "GIB",
           .help = "of a device (default: what it has)",
           .set =
               [&a](const std::string& flag, const std::string& text) {
                 char* end = nullptr;
                 const double value = std::strtod(text.c_str(), &end);
                 if (end == text.c_str() || *end != '\0' || !(value > 0) || value > 1e9)
                   throw InputError(flag, "must be a positive number of GiB, is '" + text + "'");
                 a.source.memory_gib = value;
               }},
          {.name = "--whole",
           .value = "",
           .help = "blocks may also be done as a whole on every device of an axis",
           .set = into_switch(a.source.whole)},
          {.name = "--profile",
           .value = "FILE",
           .help = "search, enumerate: times that plait graph profile took on this mesh, or of "
                   "products that plait profile took, or a profile that plait has (h200)",
           .set = into_text(a.source.profile)},
          {.name = "--keep-shardings",
           .value = "",
           .help = "what the program has a sharding for stays where that says",
           .set = into_switch(a.source.keep_shardings)},
          {.name = "--random",
           .value = "SEED",
           .help = "search: not the best plan but some legal one, for checking",
           .set = into_integer(a.random, 0, 1'000'000'000)},
          {.name = "--threads",
           .value = "N",
           .help = "of the search (default: all cores); the answer is the same for any number",
           .set = into_integer(a.source.threads, 1, 4096)}};
}

std::vector<Flag> output_flags(GraphArguments& a) {
  return {
      {.name = "--output",
       .value = "FILE",
       .help = "search: write the plan here; enumerate: the table; profile: what was timed; "
               "solve: the answer",
       .set = into_text(a.output),
       .letter = "-o"},
      {.name = "--annotated",
       .value = "FILE",
       .help = "search: write the program with its shardings here",
       .set = into_text(a.annotated)},
      {.name = "--blocks",
       .value = "LIST",
       .help = "enumerate: numbers of the blocks to vary (default: the first segment's)",
       .set = into_list(a.blocks, 0, kMostBlocks)},
      {.name = "--time-limit",
       .value = "T",
       .help = "search, solve: stop after 10s, 2m ... with the best so far (60s); enumerate: with "
               "what was costed (no limit)",
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
           .help = "run, profile: cpu:8 makes eight devices of this machine",
           .set = into_text(a.devices)},
          {.name = "--budget",
           .value = "T",
           .help = "profile: begin nothing new after 30s, 10m ... (10m); go on by calling it again",
           .set = [&a](const std::string& flag,
                       const std::string& text) { a.budget = parse_seconds(flag, text); }},
          {.name = "--ops",
           .value = "FILE",
           .help = "profile: time nothing, write the products that one device computes here, for "
                   "plait profile --ops",
           .set = into_text(a.products)},
          {.name = "--steps",
           .value = "N",
           .help = "run: steps to compare with one device (default: 3)",
           .set = into_integer(a.steps, 1, 1000)}};
}

}  // namespace

Command graph_command() {
  const auto arguments = std::make_shared<GraphArguments>();
  GraphArguments& a = *arguments;
  Command command;
  command.groups.push_back(
      {"What to do",
       {{.name = "ACTION",
         .value = "ACTION",
         .help =
             "analyze, search, enumerate, profile or run, then the program: HLO text, or of run "
             "FILE.py:FUNCTION; or solve, then an instance of the sharding contest",
         .set = [&a](const std::string&, const std::string& text) { a.words.push_back(text); },
         .required = true,
         .repeats = true}}});
  command.groups.push_back({"Devices", plan_flags(a)});
  command.groups.push_back({"Output", output_flags(a)});
  command.groups.push_back({"Running", run_flags(a)});
  for (FlagGroup& group : command.groups)
    for (Flag& flag : group.flags)
      flag.set = [&a, name = flag.name, set = flag.set](const std::string& as_given,
                                                        const std::string& text) {
        a.given.push_back(name);
        set(as_given, text);
      };
  command.run = [arguments] { return run_action(*arguments); };
  return command;
}

}  // namespace plait
