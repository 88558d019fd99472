#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace plait {

// The user's input is wrong. `where` is a place the user can open: "cluster.json#/nodes/3/devices".
// Thrown by what reads the user's files and words: the readers (model, cluster, plan's one-line
// description, graph/hlo, io), app (RequestError), cli, and runtime for files, flags and
// environment variables of a run. Search, cost and report never throw it. Caught once in main():
// exit 2.
class InputError : public std::runtime_error {
 public:
  InputError(std::string where, const std::string& what)
      : std::runtime_error(where + ": " + what), where_(std::move(where)) {}
  const std::string& where() const { return where_; }

 private:
  std::string where_;
};

// Our own mistake. Always on, also in release builds; names the condition and the place.
[[noreturn]] void check_failed(const char* condition, const char* file, int line);
#define PLAIT_CHECK(cond) ((cond) ? void() : ::plait::check_failed(#cond, __FILE__, __LINE__))

}  // namespace plait
