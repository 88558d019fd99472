#include <fmt/format.h>
#include <poll.h>

#include <array>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "cli/terminal/terminal.h"
#include "cli/verbs/graph_arguments.h"
#include "io/format/json_reader.h"
#include "report/quantities.h"
#include "runtime/launch/child_process.h"

namespace plait {
namespace {

namespace fs = std::filesystem;

// The Python that has JAX: $PLAIT_JAX_PYTHON, the environment that ./dev setup_jax made beside this
// build, or the usual one.
std::string python_program(const fs::path& self) {
  if (const char* named = std::getenv("PLAIT_JAX_PYTHON"); named != nullptr) return named;
  const fs::path beside = self.parent_path() / "../jax/bin/python";
  return fs::exists(beside) ? beside.lexically_normal().string() : "python3";
}

std::string runner_file(const fs::path& self) {
  if (const char* named = std::getenv("PLAIT_JAX_RUNNER"); named != nullptr) return named;
  const fs::path beside = self.parent_path() / "../../python/plait/jax.py";
  if (fs::exists(beside)) return beside.lexically_normal().string();
  throw InputError("plait graph run",
                   "python/plait/jax.py is not beside this build: name it in PLAIT_JAX_RUNNER");
}

struct Output {
  std::string out;
  std::string err;
  runtime::ChildEnd end;
};

Output run_child(const std::vector<std::string>& command) {
  runtime::ChildProcess child({.command = command, .environment = {}, .cores = {}});
  runtime::LineReader out(child.out());
  runtime::LineReader err(child.err());
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

std::string report_text(const JsonValue& report) {
  std::string out = fmt::format("largest relative difference to one device: {:.2e}\n\n",
                                report.at("difference").number());
  Table table({{"bytes sent", Align::left}, {"planned"}, {"in the compiled step"}});
  for (const auto& [kind, pair] : report.at("compared").members()) {
    const auto both = pair.items();
    table.row({kind, grouped(both.at(0).number()), grouped(both.at(1).number())});
  }
  return out + table.str(style_of(stdout));
}

}  // namespace

int graph_run(const GraphArguments& arguments) {
  const std::string& step = graph_file(arguments);
  if (arguments.plan.empty())
    throw InputError("--plan", "is missing: plait graph search writes one");
  const JsonValue plan = parse_json(arguments.plan, read_text_file(arguments.plan));
  if (plan.boolean_or("elided_constants", false))
    throw InputError(arguments.plan,
                     "the program that was planned has constants written as {...}: it can be "
                     "planned, not run; print it with print_large_constants");
  std::error_code ignored;
  const fs::path self = fs::read_symlink("/proc/self/exe", ignored);
  std::vector<std::string> command{
      python_program(self),           runner_file(self), step, "--plan", arguments.plan, "--steps",
      std::to_string(arguments.steps)};
  if (!arguments.devices.empty()) {
    command.emplace_back("--devices");
    command.push_back(arguments.devices);
  }
  const Output output = run_child(command);
  if (!output.end.good()) {
    const std::size_t last = output.err.find_last_of('\n', output.err.size() - 2);
    const std::string line = last == std::string::npos ? output.err : output.err.substr(last + 1);
    throw InputError("plait graph run", line.empty() ? runtime::in_words(output.end)
                                                     : line.substr(0, line.find('\n')));
  }
  if (arguments.json) {
    print(output.out);
  } else {
    print(report_text(parse_json("the runner's report", output.out)));
  }
  return kDone;
}

}  // namespace plait
