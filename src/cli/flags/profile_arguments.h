#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/flags/command.h"
#include "runtime/profiler/profile.h"

namespace plait {

// Everything that `plait profile` is told.
struct ProfileArguments {
  std::vector<std::string> words;  // "merge" or "diff" and files
  std::string model;
  std::string ops;
  std::string granularity = "layer";
  std::string what = "all";
  std::vector<int> sequences;
  std::vector<int> tensors{1};
  std::vector<int> micro_batches{1};
  runtime::MeterOptions meter;
  std::string cache = "auto";
  bool fresh = false;
  int rounds = 3;
  double budget = 0;
  bool comm = false;
  std::optional<int> local;
  std::vector<int> threads;
  std::vector<int> sizes;
  std::string format = "native";
  std::string output;
  bool json = false;
};

std::vector<FlagGroup> profile_flags(ProfileArguments& arguments);

}  // namespace plait
