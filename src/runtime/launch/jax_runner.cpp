#include "runtime/launch/jax_runner.h"

#include <string_view>

#include "base/error.h"
#include "runtime/launch/child_process.h"

namespace plait::runtime {
namespace {

// "plait: step.py: there is no such file" is the runner's own word; anything else is Python's.
[[noreturn]] void refuse(const std::string& verb, const std::string& said) {
  constexpr std::string_view kOwn = "plait: ";
  const std::size_t colon = said.find(": ", kOwn.size());
  if (!said.starts_with(kOwn) || colon == std::string::npos) throw InputError(verb, said);
  throw InputError(said.substr(kOwn.size(), colon - kOwn.size()), said.substr(colon + 2));
}

std::string report_of(std::vector<std::string> command, const std::string& devices,
                      const std::string& verb) {
  if (!devices.empty()) {
    command.emplace_back("--devices");
    command.push_back(devices);
  }
  const ChildOutput output = run_to_end(command);
  if (!output.end.good()) {
    const std::size_t last = output.err.find_last_of('\n', output.err.size() - 2);
    const std::string line = last == std::string::npos ? output.err : output.err.substr(last + 1);
    refuse(verb, line.empty() ? in_words(output.end) : line.substr(0, line.find('\n')));
  }
  return output.out;
}

}  // namespace

std::string run_in_jax(const JaxRun& run) {
  return report_of(
      {run.python, run.runner, run.step, "--plan", run.plan, "--steps", std::to_string(run.steps)},
      run.devices, "plait graph run");
}

std::string measure_in_jax(const JaxMeasurement& m) {
  return report_of({m.python, m.runner, m.program, "--measure", m.request, "--output", m.output,
                    "--budget", std::to_string(m.budget_s)},
                   m.devices, "plait graph profile");
}

}  // namespace plait::runtime
