#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "runtime/trial/run_log.h"

namespace plait::runtime {

// A command that trains for a few steps, and when to stop waiting for it.
struct TrialOptions {
  std::string command;  // of the shell
  std::vector<std::pair<std::string, std::string>> environment;
  std::string log_path;  // all that it prints goes here as well; "" = nowhere
  LogPatterns patterns;
  int global_batch = 1;
  int warm_up = 3;       // steps that do not count
  int steps = 10;        // that count: then it is stopped
  Seconds timeout{600};  // of the whole
  Seconds silence{0};    // without a line: it hangs; 0 = for ever
  Seconds grace{10};     // between SIGTERM and SIGKILL
  std::stop_token stop;
};

enum class TrialEnd { measured, out_of_memory, timed_out, failed, interrupted };
std::string_view name_of(TrialEnd end);  // measured, out-of-memory, timed-out, failed, interrupted
std::optional<TrialEnd> trial_end_named(std::string_view name);

struct TrialResult {
  TrialEnd end = TrialEnd::failed;
  std::string reason;           // in words, where it is not measured
  std::optional<Seconds> step;  // median of those that count
  std::optional<Bytes> memory;  // largest that the log tells
  int steps = 0;                // that count
  Seconds elapsed;
};

// Runs the command until it ends, has shown enough steps, or a limit is reached. When it returns,
// no process of this machine that the command started is left, whatever group or session it moved
// to: they are known by a variable in their environment. Others (of ssh, srun) must be ended by the
// command when it gets SIGTERM.
TrialResult run_trial(const TrialOptions& options);

}  // namespace plait::runtime
