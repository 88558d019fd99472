#include "cli/terminal/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "cli/terminal/terminal.h"
#include "report/quantities.h"

namespace plait {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(300);
constexpr auto kInterval = std::chrono::milliseconds(50);
constexpr int kWidth = 30;

}  // namespace

Progress::Progress() : on_(is_terminal(stderr)) {}

Progress::~Progress() {
  if (visible_) std::fputs("\r\x1b[K", stderr);
}

void Progress::improved(Seconds step) {
  const std::scoped_lock lock(mutex_);
  if (!best_ || step < *best_) best_ = step;
  draw();
}

void Progress::advanced(double fraction) {
  const std::scoped_lock lock(mutex_);
  fraction_ = std::max(fraction_, std::clamp(fraction, 0.0, 1.0));
  draw();
}

void Progress::expected(Seconds left) {
  const std::scoped_lock lock(mutex_);
  left_ = left;
  draw();
}

void Progress::draw() {
  const auto now = Clock::now();
  if (!on_ || now - begin_ < kPatience || now - drawn_ < kInterval) return;
  drawn_ = now;
  visible_ = true;
  const int done = static_cast<int>(fraction_ * kWidth);
  const std::string bar = std::string(done, '=') + std::string(kWidth - done, ' ');
  std::string line = fmt::format("\r[{}] {:3.0f} %", bar, fraction_ * 100);
  if (best_) line += fmt::format("  best so far {} a step", in_words(*best_));
  if (left_) line += fmt::format("  {} left", in_words(*left_));
  line += "\x1b[K";
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
}

}  // namespace plait
