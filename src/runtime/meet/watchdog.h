#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/units.h"
#include "runtime/launch/heartbeat.h"
#include "runtime/launch/launcher.h"
#include "runtime/meet/meeting_client.h"

namespace plait::runtime {

struct WatchdogOptions {
  Seconds every{1};  // between looks
  // As in LaunchOptions.
  Seconds silence{7};
  StallLimits stall;
  // Called once, from the watchdog's thread, when a rank has failed. Without it, the process tells
  // which and ends with kPeerLost: its main thread may wait in a collective for ever.
  std::function<void(const RankFailure& failure)> on_failure;
  Tell tell;
};

// Watches over ranks that another launcher started, on any number of machines. A thread of each
// rank writes the rank's beat into the keys of the meeting, over a connection of its own, and reads
// that of the next rank; the last rank watches the first. It writes there what it finds, so that
// all ranks name the same one. When the meeting server does not answer any more, rank 0, which has
// it, or the way to it is gone.
class Watchdog {
 public:
  // Does not wait for anyone. `heart` must live as long.
  Watchdog(const MeetingPlace& place, int rank, const Heartbeat& heart,
           WatchdogOptions options = {});
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // This rank has ended well and is not missed any more. Rank 0 waits until the others have, too.
  void finish();

  // What was found, waiting for it for a while: a rank whose collective failed asks who is to
  // blame.
  std::optional<RankFailure> failure(Seconds patience);

 private:
  bool connect();  // false = it is over before it began
  void run();
  bool look();  // false = nothing more to look for
  std::optional<RankFailure> judge_neighbour();
  void found(const RankFailure& failure);

  using Clock = std::chrono::steady_clock;
  MeetingPlace place_;
  int rank_;
  const Heartbeat& heart_;
  WatchdogOptions options_;
  std::unique_ptr<MeetingClient> store_;
  std::int64_t count_ = 0;  // of own beats

  std::string neighbours_text_;
  BeatRecord neighbour_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool end_ = false;
  bool done_ = false;
  std::optional<RankFailure> failure_;
  std::thread thread_;
};

}  // namespace plait::runtime
