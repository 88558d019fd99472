#include "runtime/launch/heartbeat.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>

namespace plait::runtime {
namespace {

constexpr std::chrono::milliseconds kBetweenBeats(500);

int descriptor_of_environment() {
  const char* text = std::getenv(kHeartbeatVariable);
  int descriptor = -1;
  if (text != nullptr) {
    const std::string_view digits(text);
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), descriptor);
    if (read.ec != std::errc() || fcntl(descriptor, F_GETFD) == -1) descriptor = -1;
  }
  return descriptor;
}

std::string_view next_word(std::string_view& line) {
  const std::size_t end = line.find(' ');
  const std::string_view word = line.substr(0, end);
  line = end == std::string_view::npos ? std::string_view() : line.substr(end + 1);
  return word;
}

std::optional<std::int64_t> count_of(std::string_view word) {
  std::int64_t value = 0;
  const auto read = std::from_chars(word.data(), word.data() + word.size(), value);
  if (read.ec != std::errc() || read.ptr != word.data() + word.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string beat_line(const Beat& beat) {
  return fmt::format("{} {} {}\n", beat.step, beat.progress,
                     beat.activity == Activity::waiting ? "waiting" : "working");
}

std::optional<Beat> parse_beat_line(std::string_view line) {
  const auto step = count_of(next_word(line));
  const auto progress = count_of(next_word(line));
  if (!step || !progress || (line != "working" && line != "waiting")) return std::nullopt;
  return Beat{*step, *progress, line == "waiting" ? Activity::waiting : Activity::working};
}

void BeatRecord::hear(const Beat& beat) {
  heard_ = Clock::now();
  if (!beat_ || beat.step != beat_->step) {
    if (beat_ && beat.step > beat_->step) {
      const double steps = static_cast<double>(beat.step - beat_->step);
      const std::chrono::duration<double> passed = heard_ - step_begun_;
      longest_step_ = std::max(longest_step_, passed.count() / steps);
      finished_a_step_ = true;
    }
    step_begun_ = heard_;
  }
  if (!beat_ || beat != *beat_) progressed_ = heard_;
  beat_ = beat;
}

double BeatRecord::silent() const {
  return std::chrono::duration<double>(Clock::now() - heard_).count();
}

double BeatRecord::still() const {
  return std::chrono::duration<double>(Clock::now() - progressed_).count();
}

Heartbeat::Heartbeat() : Heartbeat(descriptor_of_environment()) {}

Heartbeat::Heartbeat(int descriptor) : descriptor_(descriptor) {
  if (descriptor_ >= 0) thread_ = std::thread([this] { write_beats(); });
}

Heartbeat::~Heartbeat() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

void Heartbeat::step(std::int64_t number) {
  step_.store(number, std::memory_order_relaxed);
  progress();
}

void Heartbeat::progress() { progress_.fetch_add(1, std::memory_order_relaxed); }

Heartbeat::Wait::Wait(Heartbeat& heart) : heart_(heart) {
  heart_.progress();
  heart_.waits_.fetch_add(1, std::memory_order_relaxed);
}

Heartbeat::Wait::~Wait() {
  heart_.waits_.fetch_sub(1, std::memory_order_relaxed);
  heart_.progress();
}

Beat Heartbeat::last() const {
  return {step_.load(std::memory_order_relaxed), progress_.load(std::memory_order_relaxed),
          waits_.load(std::memory_order_relaxed) > 0 ? Activity::waiting : Activity::working};
}

void Heartbeat::write_beats() {
  std::unique_lock lock(mutex_);
  while (!end_) {
    const std::string line = beat_line(last());
    // The pipe does not block. A launcher that is slow to read does not hold up this rank.
    [[maybe_unused]] const ssize_t written = write(descriptor_, line.data(), line.size());
    ended_.wait_for(lock, kBetweenBeats);
  }
}

}  // namespace plait::runtime
