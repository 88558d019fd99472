#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace plait::runtime {

// What a rank does, as it told the launcher last.
enum class Activity {
  working,  // computes, or does anything else that needs nobody
  waiting,  // for other ranks: inside a collective or a receive
};

// One line on the heartbeat pipe: "12 345 working\n". `progress` counts what the training loop has
// done since the start, in whatever pieces it likes; it must rise while the rank is healthy. Any
// program can write such lines to the descriptor in PLAIT_HEARTBEAT_FD.
struct Beat {
  std::int64_t step = 0;
  std::int64_t progress = 0;
  Activity activity = Activity::working;
  friend bool operator==(const Beat&, const Beat&) = default;
};
std::string beat_line(const Beat& beat);  // with its line end
std::optional<Beat> parse_beat_line(
    std::string_view line);  // without; nothing when it is not a beat

// Follows the beats of one rank: when it was heard last, and how long its progress has stood still.
class BeatRecord {
 public:
  void hear(const Beat& beat);
  // As if it had been heard and had progressed just now: the listener was away itself.
  void forgive() { heard_ = progressed_ = Clock::now(); }
  const std::optional<Beat>& beat() const { return beat_; }
  double silent() const;  // seconds since the last beat
  double still() const;   // seconds since the last that had risen
  bool finished_a_step() const { return finished_a_step_; }
  double longest_step() const { return longest_step_; }  // seconds

 private:
  using Clock = std::chrono::steady_clock;
  std::optional<Beat> beat_;
  Clock::time_point heard_{}, progressed_{}, step_begun_{};
  bool finished_a_step_ = false;
  double longest_step_ = 0;
};

// How long a healthy rank may stand still: a hang is told from a long step by what steps took so
// far. The first step may take longer than any other (memory is touched, kernels are compiled).
struct StallLimits {
  double first_step = 300;  // seconds, until a step is finished
  double base = 10;         // seconds, from then on, and
  double steps = 3;         // times the longest step
  double limit(bool finished_a_step, double longest_step) const {
    return finished_a_step ? base + steps * longest_step : first_step;
  }
};

inline constexpr const char* kHeartbeatVariable = "PLAIT_HEARTBEAT_FD";

// A rank's side of the pipe. The training loop says what it does; a thread repeats the last word
// twice a second. So the launcher can tell a process that is stopped (no lines) from a loop that is
// stuck (lines whose progress stands still), and a rank that is stuck from those that wait for it.
// Does nothing where no launcher listens. Example:
//   Heartbeat heart;
//   for (step...) {
//     heart.step(step);
//     for (micro-batch...) { forward(); heart.progress(); }
//     { Heartbeat::Wait wait(heart); all_reduce(); }
//   }
class Heartbeat {
 public:
  Heartbeat();                         // takes the pipe from the environment
  explicit Heartbeat(int descriptor);  // -1 = nobody listens
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  // Cheap (two atomic stores), from any thread.
  void step(std::int64_t number);
  void progress();

  // While it lives, the rank waits for others. May be nested and may be used from several threads:
  // the rank works again when the last is gone, and its progress has risen.
  class Wait {
   public:
    explicit Wait(Heartbeat& heart);
    ~Wait();
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    Heartbeat& heart_;
  };

  Beat last() const;

 private:
  void write_beats();

  int descriptor_;
  std::atomic<std::int64_t> step_{0};
  std::atomic<std::int64_t> progress_{0};
  std::atomic<int> waits_{0};
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::thread thread_;
};

}  // namespace plait::runtime
