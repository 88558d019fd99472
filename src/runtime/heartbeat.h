#pragma once

#include <atomic>
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
std::string beat_line(const Beat& beat);                     // with its line end
std::optional<Beat> parse_beat_line(std::string_view line);  // without; nothing when it is no beat

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
