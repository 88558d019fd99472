#include "runtime/launch/launcher.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "runtime/launch/child_process.h"
#include "runtime/launch/cores.h"
#include "runtime/launch/run_secret.h"

namespace plait::runtime {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostLocalRanks = 4096;
// How often ranks are looked at, and how long one that fails is given to turn out a victim of
// another: the dead close their sockets at once, and the kernel reports both within milliseconds.
constexpr std::chrono::milliseconds kLook(20);
constexpr double kSettle = 0.5;
// A launcher that did not look for so long was stopped itself, or could not print: so were,
// perhaps, ranks that print.
constexpr double kAway = 2;

double seconds_since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

struct Rank {
  ChildProcess process;
  LineReader out, err, beats;
  Clock::time_point started = Clock::now();
  Clock::time_point ran = started;  // seen last, of one that has not beaten yet
  BeatRecord record;
  bool ended = false;

  explicit Rank(const ChildOptions& options)
      : process(options), out(process.out()), err(process.err()), beats(process.beats()) {}
};

class Supervisor {
 public:
  explicit Supervisor(const LaunchOptions& options) : options_(options) { start(); }

  LaunchOutcome run() {
    while (true) {
      listen();
      const bool all_ended = note_ends();
      if (options_.stop.stop_requested()) outcome_.interrupted = true;
      if (outcome_.interrupted) break;
      if (suspect_ && (all_ended || settled())) break;
      if (all_ended) return outcome_;
      if (!suspect_ || suspect_->weight == kVictim) look_for_hangs();
    }
    if (suspect_ && !outcome_.interrupted) outcome_.failure = suspect_->failure;
    stop_all();
    return outcome_;
  }

 private:
  // Of the evidence: a rank that says it lost another, one that failed, one that was killed or
  // hangs.
  enum Weight { kVictim, kFailed, kCertain };
  struct Suspect {
    RankFailure failure;
    Weight weight;
    Clock::time_point since;
  };

  void start();
  void listen();
  void take_beats(int number, Rank& rank);
  bool note_ends();
  bool settled() const;
  void look_for_hangs();
  void suspect(int rank, std::string reason, Weight weight, int status = 0);
  void stop_all();
  void tell(int rank, bool error_stream, const std::vector<std::string>& lines) const;
  void drain(int number, Rank& rank);

  const LaunchOptions& options_;
  std::vector<Rank> ranks_;
  LaunchOutcome outcome_;
  std::optional<Suspect> suspect_;
  Clock::time_point moved_ = Clock::now();  // any of them
  Clock::time_point looked_ = Clock::now();
  double longest_step_ = 0;
  bool finished_a_step_ = false;
};

std::vector<int> threads_of(const LaunchOptions& options, std::size_t cores) {
  const auto ranks = static_cast<std::size_t>(options.ranks);
  if (options.threads.size() == ranks) return options.threads;
  if (options.threads.size() == 1) return std::vector<int>(ranks, options.threads.front());
  if (!options.threads.empty())
    throw InputError("`threads_per_rank`",
                     fmt::format("has {} numbers for {} ranks: give one for each, or one for all",
                                 options.threads.size(), ranks));
  return std::vector<int>(ranks, static_cast<int>(std::max<std::size_t>(1, cores / ranks)));
}

void Supervisor::start() {
  if (options_.ranks < 1 || options_.ranks > kMostLocalRanks)
    throw InputError("`local`",
                     fmt::format("must be from 1 to {}, is {}", kMostLocalRanks, options_.ranks));
  const std::vector<int> available = available_cores();
  const std::vector<int> threads = threads_of(options_, available.size());
  const auto cores = cores_of_ranks(threads, available);
  const std::string port = std::to_string(free_port());
  const std::string world = std::to_string(options_.ranks);
  const std::string secret = new_secret();
  ranks_.reserve(static_cast<std::size_t>(options_.ranks));
  for (int rank = 0; rank < options_.ranks; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    ChildOptions child;
    child.command = options_.command;
    child.cores = cores[r];
    child.heartbeat = true;
    child.environment = {{"RANK", std::to_string(rank)},
                         {"WORLD_SIZE", world},
                         {"LOCAL_RANK", std::to_string(rank)},
                         {"LOCAL_WORLD_SIZE", world},
                         {"MASTER_ADDR", "127.0.0.1"},
                         {"MASTER_PORT", port},
                         {kSecretVariable, secret},
                         {kSecretFileVariable, std::nullopt},
                         {"OMP_NUM_THREADS", std::to_string(threads[r])},
                         {"MKL_NUM_THREADS", std::to_string(threads[r])}};
    // All ranks are on this machine: nothing of theirs listens to others.
    for (const char* name : {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"})
      if (std::getenv(name) == nullptr) child.environment.emplace_back(name, "lo");
    if (!child.cores.empty()) child.environment.emplace_back(kCoresOfRun, list_of_cores(available));
    for (const auto& [name, value] : options_.environment)
      child.environment.emplace_back(name, value);
    ranks_.emplace_back(child);
  }
}

void Supervisor::listen() {
  std::vector<pollfd> waits;
  for (const Rank& rank : ranks_)
    for (const LineReader* reader : {&rank.out, &rank.err, &rank.beats})
      if (reader->descriptor() >= 0) waits.push_back({reader->descriptor(), POLLIN, 0});
  poll(waits.data(), waits.size(), static_cast<int>(kLook.count()));
  for (int number = 0; number < options_.ranks; ++number) {
    Rank& rank = ranks_[static_cast<std::size_t>(number)];
    tell(number, false, rank.out.read_lines());
    tell(number, true, rank.err.read_lines());
    take_beats(number, rank);
  }
}

void Supervisor::take_beats(int number, Rank& rank) {
  for (const std::string& line : rank.beats.read_lines()) {
    const std::optional<Beat> beat = parse_beat_line(line);
    if (!beat) continue;
    if (rank.record.beat() != beat) moved_ = Clock::now();
    rank.record.hear(*beat);
    longest_step_ = std::max(longest_step_, rank.record.longest_step());
    finished_a_step_ = finished_a_step_ || rank.record.finished_a_step();
    outcome_.last_step = std::max(outcome_.last_step, beat->step);
    if (options_.on_beat) options_.on_beat(number, *beat);
  }
}

bool Supervisor::note_ends() {
  bool all = true;
  for (int number = 0; number < options_.ranks; ++number) {
    Rank& rank = ranks_[static_cast<std::size_t>(number)];
    if (rank.ended) continue;
    const std::optional<ChildEnd>& end = rank.process.poll_end();
    if (!end) {
      all = false;
      continue;
    }
    rank.ended = true;
    moved_ = Clock::now();
    drain(number, rank);
    const bool stopped = outcome_.interrupted && end->signal == 0 && end->code == kRankStopped;
    if (!end->good() && !stopped)
      suspect(number, in_words(*end),
              end->signal != 0         ? kCertain
              : end->code == kPeerLost ? kVictim
                                       : kFailed,
              end->code);
  }
  return all;
}

void Supervisor::suspect(int rank, std::string reason, Weight weight, int status) {
  if (suspect_ && suspect_->weight >= weight) return;
  const std::optional<Beat>& beat = ranks_[static_cast<std::size_t>(rank)].record.beat();
  suspect_ = {{rank, std::move(reason), beat ? beat->step : -1, status},
              weight,
              suspect_ ? suspect_->since : Clock::now()};
}

// A rank that says it lost a peer waits longer for that peer to be found: it may be stopped, and
// its silence has to be long enough first.
bool Supervisor::settled() const {
  if (suspect_->weight == kCertain) return true;
  return seconds_since(suspect_->since) >
         (suspect_->weight == kVictim ? options_.silence.value + 1 : kSettle);
}

void Supervisor::look_for_hangs() {
  const bool away = seconds_since(looked_) > kAway;
  looked_ = Clock::now();
  if (away) {
    moved_ = looked_;
    for (Rank& rank : ranks_) {
      rank.record.forgive();
      rank.ran = looked_;
    }
  }
  const double limit = options_.stall.limit(finished_a_step_, longest_step_);
  int stalled_rank = -1;
  bool stalled_works = false;
  double longest = 0;
  for (int number = 0; number < options_.ranks; ++number) {
    Rank& rank = ranks_[static_cast<std::size_t>(number)];
    if (rank.ended) continue;
    if (!rank.record.beat()) {
      if (!rank.process.is_stopped()) rank.ran = looked_;
      if (const double stopped = seconds_since(rank.ran); stopped > options_.silence.value)
        return suspect(number, fmt::format("has been stopped for {:.1f} s", stopped), kCertain);
      if (options_.first_beat.value > 0 && seconds_since(rank.started) > options_.first_beat.value)
        return suspect(number,
                       fmt::format("has not sent its first heartbeat after {:.1f} s",
                                   seconds_since(rank.started)),
                       kCertain);
      continue;
    }
    if (const double silent = rank.record.silent(); silent > options_.silence.value)
      return suspect(
          number,
          fmt::format("has sent no heartbeat for {:.1f} s (stopped or starved of CPU)", silent),
          kCertain);
    const double still = rank.record.still();
    const bool works = rank.record.beat()->activity == Activity::working;
    if (still <= limit) continue;
    // The one that works is to blame before those that wait, then the one that stands longest.
    if (std::pair(works, still) > std::pair(stalled_works, longest)) {
      stalled_rank = number;
      stalled_works = works;
      longest = still;
    }
  }
  if (stalled_rank < 0 || (!stalled_works && seconds_since(moved_) <= limit)) return;
  suspect(stalled_rank,
          stalled_works ? fmt::format("has made no progress for {:.1f} s", longest)
                        : fmt::format("has been waiting for {:.1f} s, as all ranks have: for a "
                                      "message that was lost, or for each other",
                                      longest),
          kCertain);
}

void Supervisor::drain(int number, Rank& rank) {
  take_beats(number, rank);
  tell(number, false, rank.out.read_lines(true));
  tell(number, true, rank.err.read_lines(true));
}

void Supervisor::stop_all() {
  for (const Rank& rank : ranks_)
    if (!rank.ended) {
      rank.process.signal_group(SIGTERM);
      rank.process.signal_group(SIGCONT);
    }
  // Ranks that are asked to stop need each other to save; once one of them has failed, they cannot.
  suspect_.reset();
  const Clock::time_point begin = Clock::now();
  const double grace = outcome_.interrupted ? options_.stop_grace.value : options_.grace.value;
  while (!note_ends() && seconds_since(begin) < grace &&
         !(suspect_ && seconds_since(suspect_->since) > options_.grace.value))
    listen();
  for (const Rank& rank : ranks_) rank.process.signal_group(SIGKILL);
  while (!note_ends()) listen();
}

void Supervisor::tell(int rank, bool error_stream, const std::vector<std::string>& lines) const {
  for (const std::string& line : lines)
    if (options_.on_line) options_.on_line(rank, error_stream, line);
}

}  // namespace

std::string in_words(const RankFailure& failure) {
  return fmt::format(
      "rank {} {}{}", failure.rank, failure.reason,
      failure.step < 0 ? ", before its first step" : fmt::format(", in step {}", failure.step));
}

LaunchOutcome launch(const LaunchOptions& options) { return Supervisor(options).run(); }

int free_port() {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  const bool found = descriptor >= 0 &&
                     bind(descriptor, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  const int error = errno;
  if (descriptor >= 0) close(descriptor);
  if (!found)
    throw InputError("127.0.0.1", std::string("has no free port: ") + std::strerror(error));
  return ntohs(address.sin_port);
}

}  // namespace plait::runtime
