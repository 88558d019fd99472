#include <chrono>

#include "base/error.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/terminal.h"
#include "cli/verbs/graph_arguments.h"
#include "graph/solve/solve.h"
#include "io/format/json_writer.h"
#include "io/format/text_file.h"
#include "io/graph/instance_json.h"

namespace plait {
namespace {

// What two cores of 2024 do in a second, with room to spare: the work that the time limit stands
// for ends before the time does, and then the answer does not depend on the machine.
constexpr double kWorkOfSecond = 5e8;

}  // namespace

int graph_solve(const GraphArguments& arguments) {
  const std::string& path = graph_file(arguments);
  const auto start = std::chrono::steady_clock::now();
  const auto passed = [start] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const solve::Instance instance = read_instance(path);
  const Interrupt interrupt;
  solve::SolveOptions options;
  options.work = static_cast<std::size_t>(arguments.seconds * kWorkOfSecond);
  options.threads = search_options(arguments).threads;
  options.stop = [&] { return interrupt.happened() || passed() >= arguments.seconds; };
  const solve::Solution solution = solve::solve(instance, options);
  if (!solution.found()) {
    complain(path + ": " + solution.reason);
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

}  // namespace plait
