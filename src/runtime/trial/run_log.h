#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace plait::runtime {

// Patterns of a log that plait does not know, as --time-pattern and --memory-pattern give them:
// extended regular expressions (POSIX, and \d) whose first group is a number and whose second, if
// there is one, its unit ("s", "ms", "us"; "B", "KB", "MiB", "GB" ...). Without a unit: seconds and
// GiB.
struct LogPatterns {
  std::string time;
  std::string memory;
};

// Reads step times and memory from what a training program prints, line by line. Known are
//   plait         step 12 | loss 4.5 | time 0.123 s | ... | memory 1.23 GiB
//   Megatron-LM   elapsed time per iteration (ms): 1234.5
//                 memory (MB) | allocated: ... | max allocated: 23456.7 | ...
//   DeepSpeed     ... CurrSamplesPerSec=12.3, MemAllocated=9.9GB, MaxMemAllocated=12.3GB
//                 time (ms) | fwd: 1.0 | bwd: 2.0 | bwd_inner: ... | step: 0.5
//                 steps: 10 loss: 4.5 iter time (s): 1.234 samples/sec: 12.3
//                 MA 1.2 GB  Max_MA 1.5 GB  CA 2.0 GB  Max_CA 2 GB
//   NeMo          train_step_timing in s: 1.234
// Where a program prints its steps in several of these ways, the first that was seen counts.
class RunLog {
 public:
  // `global_batch` turns samples per second into steps. InputError for a wrong pattern.
  RunLog(const LogPatterns& patterns, int global_batch);

  void read(std::string_view line);

  const std::vector<Seconds>& steps() const { return steps_; }
  std::optional<Bytes> memory() const { return memory_; }              // the largest
  const std::string& out_of_memory() const { return out_of_memory_; }  // the line that says so
  // The last line that tells of an error; where there is none, the last text that is not a step.
  const std::string& last_error() const { return last_error_.empty() ? last_text_ : last_error_; }

  // Of up to `most` steps after the first `warm_up`; nothing when there are none. What a command
  // shows while it is being stopped does not count.
  std::optional<Seconds> median_step(int warm_up, int most) const;

 private:
  void read_time(std::string_view line);
  void read_memory(std::string_view line);

  std::function<std::optional<double>(std::string_view)> own_time_, own_memory_;
  int global_batch_;
  int form_ = -1;  // of the table of known lines; -1 = none seen yet
  std::vector<Seconds> steps_;
  std::optional<Bytes> memory_;
  std::string out_of_memory_;
  std::string last_error_, last_text_;
};

// The number that follows `key` in a line, after blanks.
std::optional<double> number_after(std::string_view line, std::string_view key);

}  // namespace plait::runtime
