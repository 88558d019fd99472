#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

// Longer texts are no command lines, nor scripts that people write to launch a training.
inline constexpr std::size_t kMostScriptBytes = std::size_t{1} << 20;

// The flags of somebody's command line: a whole launch script, or just the flags ("--num-layers 24
// --hidden_size=1024 ..."). '_' in a flag stands for '-'; lines may end in '\' and have '#'
// comments; quoted lists of flags are taken apart. A flag without value has an empty one, a
// repeated one its last. Shell variables that the text itself sets (NAME=value) are filled in.
// Messages name a flag as the text does: --num_layers where that is how it was written.
class ShellFlags {
 public:
  // `name` stands for the text in messages; the program's own flags are written with `joint`.
  ShellFlags(std::string name, const std::string& text, char joint = '-');

  bool has(const std::string& flag) const { return values_.contains(flag); }

  // A whole number; `fallback` where the flag is absent.
  int size(const std::string& flag, int fallback, int least = 1) const;
  int required(const std::string& flag, const std::string& instead = "") const;
  double number(const std::string& flag, double fallback) const;    // at least 0
  bool above_zero(const std::string& flag, double fallback) const;  // whether a probability is
  std::string text(const std::string& flag, const std::string& fallback) const;
  std::string choice(const std::string& flag, const std::vector<std::string_view>& names) const;
  // All words up to the next flag.
  std::vector<std::string> list(const std::string& flag) const;

  // What the text sets a shell variable to; nothing where it does not.
  std::optional<std::string> variable(const std::string& name) const;
  // Takes the value of a variable for a flag that is absent, empty or waits for a variable.
  void fill(const std::string& flag, const std::string& variable);

  // "--num_layers" or, where a variable gave the value, "NUM_LAYERS".
  std::string spelled(const std::string& flag) const;
  // Where a complaint about the flag points: "run.sh --num_layers".
  std::string where(const std::string& flag) const { return name_ + " " + spelled(flag); }
  // Flags whose value replaced another one, with that one.
  const std::map<std::string, std::string>& earlier_values() const { return earlier_; }
  [[noreturn]] void fail(const std::string& flag, const std::string& what) const;

 private:
  void take(const std::string& word, std::string& flag);
  void set(const std::string& flag, std::string value);
  void take_all(const std::string& list, std::string& flag);
  std::string filled_in(std::string word) const;
  std::string value_of(const std::string& reference) const;

  [[noreturn]] void fail_number(const std::string& flag, const std::string& wanted) const;

  std::string name_;
  char joint_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::vector<std::string>> further_;  // words after the first value
  std::map<std::string, std::string> before_;                // the value that a repeated flag had
  std::map<std::string, std::string> earlier_;  // of those, what was replaced by another value
  std::map<std::string, std::string> variables_;
  std::map<std::string, std::string> spelled_;  // by flag: how it was said
};

}  // namespace plait
