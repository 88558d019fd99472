#include <chrono>
#include <memory>

#include "base/error.h"
#include "cli/interrupt.h"
#include "cli/plan_arguments.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "graph/solve/solve.h"
#include "io/format/json_writer.h"
#include "io/format/text_file.h"
#include "io/graph/instance_json.h"

namespace plait {
namespace {

// What two cores of 2024 do in a second, with room to spare: the work that the time limit stands
// for ends before the time does, and then the answer does not depend on the machine.
constexpr double kWorkOfSecond = 5e8;
constexpr int kMostThreads = 1024;

struct GraphSolveArguments {
  std::string path;
  std::string output;
  double seconds = 60;
  int threads = 1;
};

int graph_solve(const GraphSolveArguments& arguments) {
  const auto start = std::chrono::steady_clock::now();
  const auto passed = [start] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const solve::Instance instance = read_instance(arguments.path);
  const Interrupt interrupt;
  solve::SolveOptions options;
  options.work = static_cast<std::size_t>(arguments.seconds * kWorkOfSecond);
  options.threads = arguments.threads;
  options.stop = [&] { return interrupt.happened() || passed() >= arguments.seconds; };
  const solve::Solution solution = solve::solve(instance, options);
  if (!solution.found()) {
    complain(arguments.path + ": " + solution.reason);
    return interrupt.happened() ? kInterrupted : kNothingFits;
  }
  if (!arguments.output.empty())
    write_text_file(arguments.output, solution_json(instance, solution));
  JsonObject line;
  line.json("cost", std::to_string(solution.cost));
  line.json("lower_bound", std::to_string(solution.lower_bound));
  line.number("gap", solution.gap());
  line.number("seconds", passed());
  print(line.str() + "\n");
  return kDone;
}

}  // namespace

Command graph_solve_command() {
  const auto arguments = std::make_shared<GraphSolveArguments>();
  arguments->threads = usual_threads();
  Command command;
  command.groups = {{"Arguments",
                     {{.name = "FILE",
                       .value = "FILE",
                       .help = "an instance of the contest: JSON, or JSON packed by gzip",
                       .set = into_text(arguments->path),
                       .required = true}}},
                    {"Flags",
                     {{.name = "--time-limit",
                       .value = "T",
                       .help = "stop after 10s, 2m ... with the best so far (60s)",
                       .set =
                           [a = arguments.get()](const std::string& flag, const std::string& text) {
                             a->seconds = parse_seconds(flag, text);
                           }},
                      {.name = "--threads",
                       .value = "N",
                       .help = "threads to use; the answer does not depend on them",
                       .set = into_integer(arguments->threads, 1, kMostThreads)},
                      {.name = "--output",
                       .value = "FILE",
                       .help = "write the answer as JSON: the choice of every node",
                       .set = into_text(arguments->output),
                       .letter = "-o"}}}};
  command.run = [arguments] { return graph_solve(*arguments); };
  return command;
}

}  // namespace plait
