#pragma once

#include <string>
#include <vector>

namespace plait {

// The command line of Megatron-LM that a launch script comes to, as one line of quoted words.
struct MegatronScript {
  std::string text;
  std::vector<std::string> warnings;
};

// Follows the script (io/shell), with the files beside it that it includes; a text that is not a
// script, or that starts nothing, such as a list of flags, stays as it is. InputError where it
// starts trainings that differ.
MegatronScript read_megatron_script(const std::string& path, const std::string& text);

}  // namespace plait
