#include "runtime/launch/jax_runner.h"

#include "base/error.h"
#include "runtime/launch/child_process.h"

namespace plait::runtime {
std::string run_in_jax(const JaxRun& run) {
  std::vector<std::string> command{
      run.python, run.runner, run.step, "--plan", run.plan, "--steps", std::to_string(run.steps)};
  if (!run.devices.empty()) {
    command.emplace_back("--devices");
    command.push_back(run.devices);
  }
  const ChildOutput output = run_to_end(command);
  if (!output.end.good()) {
    const std::size_t last = output.err.find_last_of('\n', output.err.size() - 2);
    const std::string line = last == std::string::npos ? output.err : output.err.substr(last + 1);
    throw InputError("plait graph run",
                     line.empty() ? in_words(output.end) : line.substr(0, line.find('\n')));
  }
  return output.out;
}

}  // namespace plait::runtime
