#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "runtime/launch/heartbeat.h"

namespace plait::runtime {

// Starts the ranks of a program on this machine and watches over them, as torchrun does: they find
// RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT in their environment,
// PLAIT_HEARTBEAT_FD (runtime/launch/heartbeat.h) and PLAIT_RUN_SECRET, a new one for each launch.
struct LaunchOptions {
  std::vector<std::string> command;  // the same for all ranks
  int ranks = 1;
  // Threads of each rank (OMP_NUM_THREADS); one number stands for all ranks, none for equal parts
  // of the machine. Ranks get cores of their own when there are enough of them.
  std::vector<int> threads;
  std::vector<std::pair<std::string, std::string>> environment;  // of all ranks, added

  // A rank that says nothing at all for this long is stopped or gone: its beats come twice a second
  // from a thread of their own.
  Seconds silence{8};
  // A rank whose progress stands still for longer hangs. Ranks that wait for others are not to
  // blame as long as there is one that does not.
  StallLimits stall;
  // Watched from its first beat on; a rank that has not beaten after this long hangs. 0 = for ever.
  Seconds first_beat{0};
  Seconds grace{3};  // between SIGTERM and SIGKILL, when a rank has failed
  // The same when `stop` asks for it: time for the ranks to end their step and save their state.
  Seconds stop_grace{3};

  // What the ranks print; dropped without it.
  std::function<void(int rank, bool error_stream, const std::string& line)> on_line;
  std::function<void(int rank, const Beat& beat)> on_beat;
  std::stop_token stop;  // Ctrl-C: asks all ranks to stop
};

// Exit status of a rank that stops because another one is gone: it is not the one to name.
inline constexpr int kPeerLost = 75;
// Exit status of a rank that stops because it was asked to.
inline constexpr int kRankStopped = 130;

struct RankFailure {
  int rank = 0;
  std::string reason;      // "was killed by SIGKILL", "has made no progress for 12.3 s"
  std::int64_t step = -1;  // that it was in; -1 = it never beat
  int status = 0;          // that it exited with; 0 = it did not exit
};
std::string in_words(const RankFailure& failure);  // "rank 3 was killed by SIGKILL in step 17"

struct LaunchOutcome {
  bool interrupted = false;  // by `stop`
  std::optional<RankFailure> failure;
  std::int64_t last_step = -1;  // the highest that any rank began
  bool good() const { return !interrupted && !failure; }
};

// Runs until all ranks have ended well, or one fails: then the others are stopped. When it returns
// no process of it is left. InputError when the command cannot be run.
LaunchOutcome launch(const LaunchOptions& options);

// A TCP port of the loopback that nobody listens on at the moment.
int free_port();

}  // namespace plait::runtime
