#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/profile/measure.h"
#include "cli/flags/command.h"

namespace plait {

// Everything that `plait profile` is told.
struct ProfileArguments {
  std::vector<std::string> words;  // "merge", "diff" or "export", and files
  MeasureRequest measure;          // its meter counts for links too
  bool comm = false;
  std::optional<int> local;
  std::vector<int> threads;
  std::vector<int> sizes;
  std::string output;
  bool json = false;
};

std::vector<FlagGroup> profile_flags(ProfileArguments& arguments);

}  // namespace plait
