#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "app/profile/profile_files.h"
#include "profile/profile.h"
#include "runtime/profiler/profile.h"

namespace plait {

// Measure the units and ops of a model, or a list of ops, on one device of this machine.
struct MeasureRequest {
  std::string model;                  // one of model and ops
  std::string ops;                    // a file
  std::string granularity = "layer";  // layer or op: what a unit is
  std::string what = "all";           // all, units or ops of the model
  std::vector<int> sequences;         // tokens in a sample; empty = the model's own
  std::vector<int> tensors{1};
  std::vector<int> micro_batches{1};
  runtime::MeterOptions meter;  // `longest` is of all rounds together
  std::string cache = "auto";   // a file; auto = the user's, "" = none
  bool fresh = false;           // measure again what the cache knows
  int rounds = 3;
  Seconds budget{0};              // 0 = none
  std::string format = "native";  // profile_forms()
  std::string command;            // as it was given, for the profile to tell
};

// How a front end takes part.
struct MeasureSession {
  std::stop_token stop;
  std::function<void(double fraction, Seconds left)> progress;
};

struct MeasureAnswer {
  Profile profile;
  std::string device_type;
  std::vector<std::string> warnings;
  std::optional<ConvertProfileAnswer> converted;  // where a format was asked for
  int measured = 0;                               // points
  int from_cache = 0;
  int left_out = 0;
  int did_not_fit = 0;
  bool interrupted = false;
};

MeasureAnswer answer(const MeasureRequest& request, const MeasureSession& session);
std::string to_json(const MeasureAnswer& answer);  // a profile file
// "40 points measured on CPU, 3 known before, 0 left out, 1 did not fit"
std::string as_text(const MeasureAnswer& answer);

}  // namespace plait
