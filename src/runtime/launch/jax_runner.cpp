#include "runtime/launch/jax_runner.h"

#include <poll.h>

#include <array>

#include "base/error.h"
#include "runtime/launch/child_process.h"

namespace plait::runtime {
namespace {

struct Output {
  std::string out;
  std::string err;
  ChildEnd end;
};

Output run_child(const std::vector<std::string>& command) {
  ChildProcess child({.command = command, .environment = {}, .cores = {}});
  LineReader out(child.out());
  LineReader err(child.err());
  Output output;
  const auto read = [&](bool last) {
    for (const std::string& line : out.read_lines(last)) output.out += line + "\n";
    for (const std::string& line : err.read_lines(last)) output.err += line + "\n";
  };
  while (!child.poll_end()) {
    std::array<pollfd, 2> files{{{out.descriptor(), POLLIN, 0}, {err.descriptor(), POLLIN, 0}}};
    constexpr int kWaitMs = 50;
    poll(files.data(), files.size(), kWaitMs);
    read(false);
  }
  read(true);
  output.end = *child.poll_end();
  return output;
}

}  // namespace

std::string run_in_jax(const JaxRun& run) {
  std::vector<std::string> command{
      run.python, run.runner, run.step, "--plan", run.plan, "--steps", std::to_string(run.steps)};
  if (!run.devices.empty()) {
    command.emplace_back("--devices");
    command.push_back(run.devices);
  }
  const Output output = run_child(command);
  if (!output.end.good()) {
    const std::size_t last = output.err.find_last_of('\n', output.err.size() - 2);
    const std::string line = last == std::string::npos ? output.err : output.err.substr(last + 1);
    throw InputError("plait graph run",
                     line.empty() ? in_words(output.end) : line.substr(0, line.find('\n')));
  }
  return output.out;
}

}  // namespace plait::runtime
