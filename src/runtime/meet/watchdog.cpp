#include "runtime/meet/watchdog.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>

namespace plait::runtime {
namespace {

constexpr auto kAnswer = std::chrono::seconds(5);  // the store answers within
constexpr auto kRetryOfWatch = std::chrono::milliseconds(200);
constexpr const char* kFailed = "plait/failed";
constexpr const char* kDone = "done";
// Rank 0 serves the store: it stays until the others have read why everything ends.
constexpr auto kLinger = std::chrono::milliseconds(2500);

std::string beat_key(int rank) { return "plait/beat/" + std::to_string(rank); }

double elapsed_since(std::chrono::steady_clock::time_point then) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count();
}

std::string as_text(const RankFailure& failure) {
  return fmt::format("{} {} {}", failure.rank, failure.step, failure.reason);
}

RankFailure failure_from(const std::string& text) {
  RankFailure failure;
  const char* end = text.data() + text.size();
  auto read = std::from_chars(text.data(), end, failure.rank);
  if (read.ptr < end) read = std::from_chars(read.ptr + 1, end, failure.step);
  if (read.ptr < end) failure.reason.assign(read.ptr + 1, end);
  return failure;
}

}  // namespace

Watchdog::Watchdog(const MeetingPlace& place, int rank, const Heartbeat& heart,
                   WatchdogOptions options)
    : place_(place), rank_(rank), heart_(heart), options_(std::move(options)) {
  if (place_.world > 1) thread_ = std::thread([this] { run(); });
}

// The server is there when rank 0 is, which may start last.
bool Watchdog::connect() {
  for (;;) {
    try {
      store_ = std::make_unique<MeetingClient>(place_, rank_, kRetryOfWatch);
      store_->answer_limit = kAnswer;
      return true;
    } catch (const std::exception&) {
      // Tried again: the ranks' own meeting gives up in time, and says so.
    }
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, kRetryOfWatch, [this] { return end_ || done_; })) return false;
  }
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Watchdog::run() {
  if (!connect()) return;
  std::unique_lock lock(mutex_);
  while (!end_) {
    lock.unlock();
    bool more = true;
    try {
      more = look();
    } catch (const std::exception&) {
      // The step of rank 0 is this one's, or next to it.
      found(
          {0, "cannot be reached (it, its machine or the link to it is gone)", heart_.last().step});
      more = false;
    }
    lock.lock();
    if (!more) return;
    changed_.wait_for(lock, std::chrono::duration<double>(options_.every.value));
  }
}

bool Watchdog::look() {
  {
    const std::lock_guard lock(mutex_);
    if (done_) return false;
  }
  store_->set(beat_key(rank_), std::to_string(++count_) + " " + beat_line(heart_.last()));
  if (const auto text = store_->find(kFailed)) {
    found(failure_from(*text));
    return false;
  }
  const auto failure = judge_neighbour();
  if (!failure) return true;
  store_->set(kFailed, as_text(*failure));
  found(*failure);
  return false;
}

std::optional<RankFailure> Watchdog::judge_neighbour() {
  const int neighbour = (rank_ + 1) % place_.world;
  const auto text = store_->find(beat_key(neighbour));
  if (!text || *text == kDone) return std::nullopt;
  if (*text != neighbours_text_) {
    neighbours_text_ = *text;
    std::string line = text->substr(text->find(' ') + 1);
    if (!line.empty() && line.back() == '\n') line.pop_back();
    if (const std::optional<Beat> beat = parse_beat_line(line)) neighbour_.hear(*beat);
  }
  if (!neighbour_.beat()) return std::nullopt;
  const Beat& beat = *neighbour_.beat();
  if (const double silent = neighbour_.silent(); silent > options_.silence.value)
    return RankFailure{neighbour, fmt::format("has sent no heartbeat for {:.1f} s", silent),
                       beat.step};
  const double limit =
      options_.stall.limit(neighbour_.finished_a_step(), neighbour_.longest_step());
  if (const double still = neighbour_.still(); beat.activity == Activity::working && still > limit)
    return RankFailure{neighbour, fmt::format("has made no progress for {:.1f} s", still),
                       beat.step};
  return std::nullopt;
}

void Watchdog::found(const RankFailure& failure) {
  {
    const std::lock_guard lock(mutex_);
    if (done_) return;
    failure_ = failure;
  }
  changed_.notify_all();
  if (options_.on_failure) return options_.on_failure(failure);
  if (options_.tell) options_.tell(fmt::format("{}; rank {} stops", in_words(failure), rank_));
  std::fflush(nullptr);
  if (rank_ == 0) std::this_thread::sleep_for(kLinger);
  _exit(kPeerLost);
}

void Watchdog::finish() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    if (done_ || failure_) return;
    done_ = true;
  }
  changed_.notify_all();
  thread_.join();
  if (store_ == nullptr) return;
  try {
    store_->set(beat_key(rank_), kDone);
    const Clock::time_point begin = Clock::now();
    for (int rank = 1; rank_ == 0 && rank < place_.world; ++rank)
      while (store_->find(beat_key(rank)).value_or("") != kDone &&
             elapsed_since(begin) < options_.silence.value)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
  } catch (const std::exception&) {
    return;  // rank 0 did not wait for this one: it is of no matter any more
  }
}

std::optional<RankFailure> Watchdog::failure(Seconds patience) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(patience.value),
                    [this] { return failure_.has_value(); });
  if (failure_ && !options_.on_failure) {
    lock.unlock();
    std::this_thread::sleep_for(2 * kLinger);  // the watchdog's thread ends the process
  }
  return failure_;
}

}  // namespace plait::runtime
