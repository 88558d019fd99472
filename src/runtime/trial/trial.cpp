#include "runtime/trial/trial.h"

#include <dirent.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>

#include "base/error.h"
#include "runtime/launch/child_process.h"

namespace plait::runtime {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kMark = "PLAIT_TRIAL";
// After the first word of memory that ran out, for the rest of the message; other ranks may wait
// for the one that failed until their own time-outs.
constexpr double kAfterOutOfMemory = 5;
constexpr std::array<std::string_view, 5> kEndNames{"measured", "out-of-memory", "timed-out",
                                                    "failed", "interrupted"};

double seconds_since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

std::string new_mark() {
  std::random_device source;
  return fmt::format("{:08x}{:08x}{:08x}", source(), source(), static_cast<unsigned>(getpid()));
}

// Processes whose environment has the mark: what the command started, wherever it went.
std::vector<pid_t> marked(const std::string& mark) {
  std::vector<pid_t> found;
  const std::string entry = std::string(kMark) + "=" + mark;
  std::error_code fault;
  for (const auto& file : std::filesystem::directory_iterator("/proc", fault)) {
    const std::string name = file.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream stream(file.path() / "environ", std::ios::binary);
    const std::string environment(std::istreambuf_iterator<char>(stream), {});
    if (environment.find(entry) != std::string::npos) found.push_back(std::stoi(name));
  }
  return found;
}

class Trial {
 public:
  explicit Trial(const TrialOptions& options)
      : options_(options), log_(options.patterns, options.global_batch), mark_(new_mark()) {
    if (!options.log_path.empty()) {
      copy_.reset(std::fopen(options.log_path.c_str(), "wb"));
      if (!copy_) throw InputError(options.log_path, "cannot be written");
    }
  }

  TrialResult run() {
    ChildOptions child;
    child.command = {"sh", "-c", options_.command};
    for (const auto& [name, value] : options_.environment)
      child.environment.emplace_back(name, value);
    child.environment.emplace_back(kMark, mark_);
    ChildProcess process(child);
    LineReader out(process.out()), err(process.err());
    const std::optional<ChildEnd> end = watch(process, out, err);
    stop(process, out, err);
    TrialResult result = judge(end);
    result.elapsed = Seconds(seconds_since(begin_));
    return result;
  }

 private:
  bool enough() const {
    return static_cast<int>(log_.steps().size()) >= options_.warm_up + options_.steps;
  }

  // Ends when the command does (then it says how), or when there is a reason to stop it.
  std::optional<ChildEnd> watch(ChildProcess& process, LineReader& out, LineReader& err) {
    std::optional<Clock::time_point> memory_ran_out;
    while (true) {
      listen(out, err);
      if (const auto& end = process.poll_end()) {
        listen(out, err, true);
        return end;
      }
      if (!log_.out_of_memory().empty() && !memory_ran_out) memory_ran_out = Clock::now();
      if (options_.stop.stop_requested()) interrupted_ = true;
      if (seconds_since(begin_) > options_.timeout.value)
        limit_ = fmt::format("was stopped after {:.0f} s", options_.timeout.value);
      if (options_.silence.value > 0 && seconds_since(heard_) > options_.silence.value)
        limit_ = fmt::format("printed nothing for {:.0f} s", options_.silence.value);
      if (interrupted_ || !limit_.empty() || enough() ||
          (memory_ran_out && seconds_since(*memory_ran_out) > kAfterOutOfMemory))
        return std::nullopt;
    }
  }

  void listen(LineReader& out, LineReader& err, bool last = false) {
    std::vector<pollfd> waits;
    for (const LineReader* reader : {&out, &err})
      if (reader->descriptor() >= 0) waits.push_back({reader->descriptor(), POLLIN, 0});
    if (!last) poll(waits.data(), waits.size(), 20);
    for (LineReader* reader : {&out, &err})
      for (const std::string& line : reader->read_lines(last)) {
        heard_ = Clock::now();
        log_.read(line);
        if (copy_) std::fputs((line + "\n").c_str(), copy_.get());
      }
  }

  void stop(ChildProcess& process, LineReader& out, LineReader& err) {
    // The whole tree is asked, so that launchers can end what they started on other machines.
    if (!process.poll_end()) process.signal_group(SIGTERM);
    const Clock::time_point begin = Clock::now();
    while (!process.poll_end() && seconds_since(begin) < options_.grace.value) listen(out, err);
    listen(out, err, true);
    process.signal_group(SIGKILL);
    for (int tries = 0; tries < 10; ++tries) {
      const std::vector<pid_t> left = marked(mark_);
      for (const pid_t pid : left) kill(pid, SIGKILL);
      if (left.empty()) break;
      usleep(20'000);
    }
  }

  TrialResult judge(const std::optional<ChildEnd>& end) const {
    TrialResult result;
    result.memory = log_.memory();
    if (interrupted_) {
      result.end = TrialEnd::interrupted;
      result.reason = "interrupted";
      return result;
    }
    const bool ended_well = end && end->good();
    if (!enough() && !log_.out_of_memory().empty() && !ended_well) {
      result.end = TrialEnd::out_of_memory;
      result.reason = log_.out_of_memory();
      return result;
    }
    if (enough() || ended_well) result.step = log_.median_step(options_.warm_up, options_.steps);
    if (result.step) {
      result.end = TrialEnd::measured;
      result.steps =
          std::min(static_cast<int>(log_.steps().size()) - options_.warm_up, options_.steps);
      return result;
    }
    const std::string seen =
        log_.steps().empty()
            ? std::string("no step time is in its log")
            : fmt::format("its log has {} step times, and the first {} are warm-up",
                          log_.steps().size(), options_.warm_up);
    if (!end) {
      result.end = TrialEnd::timed_out;
      result.reason = limit_ + "; " + seen;
    } else if (!end->good()) {
      result.reason = in_words(*end);
      if (!log_.last_error().empty()) result.reason += ": " + log_.last_error();
    } else {
      result.reason = seen;
    }
    return result;
  }

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  const TrialOptions& options_;
  RunLog log_;
  std::string mark_;
  std::unique_ptr<std::FILE, Close> copy_;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point heard_ = begin_;
  std::string limit_;
  bool interrupted_ = false;
};

}  // namespace

std::string_view name_of(TrialEnd end) { return kEndNames[static_cast<std::size_t>(end)]; }

std::optional<TrialEnd> trial_end_named(std::string_view name) {
  for (std::size_t i = 0; i < kEndNames.size(); ++i)
    if (kEndNames[i] == name) return static_cast<TrialEnd>(i);
  return std::nullopt;
}

TrialResult run_trial(const TrialOptions& options) { return Trial(options).run(); }

}  // namespace plait::runtime
