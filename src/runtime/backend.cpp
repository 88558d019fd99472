#include "runtime/backend.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"

namespace plait::runtime {
namespace {

std::vector<std::string>& words() {
  static std::vector<std::string> value;
  return value;
}

}  // namespace

void set_command_line(std::vector<std::string> value) { words() = std::move(value); }

const std::vector<std::string>& command_line() { return words(); }

std::string program_file() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

std::string torch_program_file() {
  return (std::filesystem::path(program_file()).parent_path() / "plait-torch").string();
}

void need_torch_program(const std::string& verb) {
  const std::string program = torch_program_file();
  if (access(program.c_str(), X_OK) != 0)
    throw InputError("plait " + verb, "needs libtorch, which this build lacks (no " + program +
                                          "): run ./dev build torch");
}

const Backend& need_backend(const std::string& verb) {
  if (backend() != nullptr) return *backend();
  need_torch_program(verb);
  const std::string program = torch_program_file();
  std::vector<char*> arguments;
  for (std::string& word : words()) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
  throw InputError(program, std::string("cannot be run: ") + std::strerror(errno));
}

}  // namespace plait::runtime
