#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace plait {

// The commands that a shell script comes to, without running anything: variables, arrays, defaults,
// arithmetic, conditions on variables, functions and loops over words are followed; what a command
// would say or a file would hold is not known and stays as it is written ("$TP", "$(nproc..)").
struct ScriptCommands {
  struct Command {
    int line;
    std::vector<std::string> words;
  };
  std::vector<Command> commands{};
  std::vector<std::string> warnings{};  // conditions that are not known, with their lines
};

// The text of a file that the script includes; nothing where it cannot be had.
using IncludedFile = std::function<std::optional<std::string>(const std::string& path)>;

// Throws ScriptFault where the text is not a script that can be followed. Commands that only print,
// and those that shells have inside, are left out; those that are handed to bash -c, eval or as a
// here-document to bash or sbatch are followed, and so are scripts that it writes or that stand
// beside it. `path`: $0, with its folder from the root on; "" where it is not known.
ScriptCommands commands_of(const std::string& text, const IncludedFile& included = {},
                           const std::string& path = "");

}  // namespace plait
