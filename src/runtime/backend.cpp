#include "runtime/backend.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace plait::runtime {

std::vector<std::string> command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(std::move(word));
  return words;
}

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
  std::vector<std::string> words = command_line();
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
  throw InputError(program, std::string("cannot be run: ") + std::strerror(errno));
}

}  // namespace plait::runtime
