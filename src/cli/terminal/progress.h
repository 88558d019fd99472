#pragma once

#include <chrono>
#include <mutex>
#include <optional>

#include "base/units.h"

namespace plait {

// A bar on stderr while a search takes longer than a moment, gone when it ends. Does nothing where
// stderr is not a terminal. May be called from any thread.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void improved(Seconds step);  // the best so far
  void advanced(double fraction);
  void expected(Seconds left);  // until the end

 private:
  void draw();

  using Clock = std::chrono::steady_clock;
  const bool on_;
  const Clock::time_point begin_ = Clock::now();
  std::mutex mutex_;
  Clock::time_point drawn_ = begin_;
  bool visible_ = false;
  double fraction_ = 0;
  std::optional<Seconds> best_;
  std::optional<Seconds> left_;
};

}  // namespace plait
