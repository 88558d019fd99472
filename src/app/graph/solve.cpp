#include "app/graph/solve.h"

#include "app/graph/source.h"
#include "io/format/json_writer.h"
#include "io/graph/instance_json.h"

namespace plait {
namespace {

// What two cores of 2024 do in a second, with room to spare: the work that the time limit stands
// for ends before the time does, and then the answer does not depend on the machine.
constexpr double kWorkOfSecond = 5e8;

}  // namespace

GraphSolveAnswer answer(const GraphSolveRequest& request, const Session& session) {
  const Stopwatch watch;
  GraphSolveAnswer out;
  out.instance = read_instance(request.path);
  solve::SolveOptions options;
  options.work = static_cast<std::size_t>(request.limit.value * kWorkOfSecond);
  options.threads = threads_of(request.threads);
  options.stop = [&] { return session.stop.stop_requested() || watch.elapsed() >= request.limit; };
  out.solution = solve::solve(out.instance, options);
  out.elapsed = watch.elapsed();
  out.interrupted = session.stop.stop_requested();
  return out;
}

std::string to_json(const GraphSolveAnswer& answer) {
  return JsonObject()
             .json("cost", std::to_string(answer.solution.cost))
             .json("lower_bound", std::to_string(answer.solution.lower_bound))
             .number("gap", answer.solution.gap())
             .number("seconds", answer.elapsed.value)
             .str() +
         "\n";
}

std::string solution_file(const GraphSolveAnswer& answer) {
  return solution_json(answer.instance, answer.solution);
}

}  // namespace plait
