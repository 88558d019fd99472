#include "runtime/launch/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "runtime/launch/heartbeat.h"

extern char** environ;

namespace plait::runtime {
namespace {

constexpr std::size_t kLongestLine = 64 * 1024;
constexpr int kHeartbeat = 3;  // one digit, so that Debian's sh can write to it: >&3

// Closed on exec unless the child makes it its own.
struct Pipe {
  int read = -1;
  int write = -1;
  Pipe() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0)
      throw InputError("a pipe", std::string("cannot be made: ") + std::strerror(errno));
    read = ends[0];
    write = ends[1];
    fcntl(read, F_SETFL, O_NONBLOCK);
  }
  ~Pipe() {
    if (read >= 0) close(read);
    if (write >= 0) close(write);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int keep_read() { return std::exchange(read, -1); }
};

std::vector<std::string> environment_of(const ChildOptions& options) {
  auto changes = options.environment;
  changes.emplace_back(kHeartbeatVariable, options.heartbeat
                                               ? std::optional(std::to_string(kHeartbeat))
                                               : std::nullopt);
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    if (std::none_of(changes.begin(), changes.end(),
                     [&](const auto& change) { return change.first == name; }))
      entries.emplace_back(text);
  }
  for (const auto& [name, value] : changes)
    if (value) entries.push_back(name + "=" + *value);
  return entries;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

// What the child does between fork and exec: nothing that takes a lock or memory.
struct Launch {
  char* const* words;
  char* const* environment;
  const cpu_set_t* cores;
  int in, out, err, beats, trouble;
  pid_t parent;

  [[noreturn]] void run() const {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    signal(SIGINT, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    if (cores != nullptr) sched_setaffinity(0, sizeof(*cores), cores);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    const int complaint = fcntl(trouble, F_DUPFD_CLOEXEC, kHeartbeat + 1);
    if (beats >= 0) {
      fcntl(beats, F_SETFL, O_NONBLOCK);
      if (beats == kHeartbeat)
        fcntl(beats, F_SETFD, 0);
      else
        dup2(beats, kHeartbeat);
    }
    environ = const_cast<char**>(environment);
    execvp(words[0], words);
    const int error = errno;
    if (write(complaint, &error, sizeof(error)) < 0) _exit(126);
    _exit(127);
  }
};

}  // namespace

std::string in_words(const ChildEnd& end) {
  if (end.signal == 0) return fmt::format("exited with status {}", end.code);
  const char* name = sigabbrev_np(end.signal);
  const std::string text =
      fmt::format("was killed by SIG{}", name != nullptr ? name : std::to_string(end.signal));
  return end.signal == SIGKILL ? text + " (kill -9, or the kernel was out of memory)" : text;
}

ChildProcess::ChildProcess(const ChildOptions& options) {
  PLAIT_CHECK(!options.command.empty());
  Pipe out, err, trouble;
  std::optional<Pipe> beats;
  if (options.heartbeat) beats.emplace();
  std::vector<std::string> words = options.command;
  std::vector<std::string> entries = environment_of(options);
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (const int core : options.cores) CPU_SET(static_cast<std::size_t>(core), &cores);
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const std::vector<char*> word_pointers = pointers(words), entry_pointers = pointers(entries);
  const Launch launch{word_pointers.data(),
                      entry_pointers.data(),
                      options.cores.empty() ? nullptr : &cores,
                      nothing,
                      out.write,
                      err.write,
                      beats ? beats->write : -1,
                      trouble.write,
                      getpid()};
  pid_ = fork();
  if (pid_ == 0) launch.run();
  close(nothing);
  if (pid_ < 0)
    throw InputError(words.front(), std::string("cannot be started: ") + std::strerror(errno));
  setpgid(pid_, pid_);
  close(std::exchange(trouble.write, -1));
  fcntl(trouble.read, F_SETFL, 0);
  int error = 0;
  ssize_t got = 0;
  while ((got = read(trouble.read, &error, sizeof(error))) < 0 && errno == EINTR) continue;
  if (got == sizeof(error)) {
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
    throw InputError(words.front(), std::string("cannot be run: ") + std::strerror(error));
  }
  out_ = out.keep_read();
  err_ = err.keep_read();
  if (beats) beats_ = beats->keep_read();
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      out_(std::exchange(other.out_, -1)),
      err_(std::exchange(other.err_, -1)),
      beats_(std::exchange(other.beats_, -1)),
      end_(other.end_) {}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) {
    signal_group(SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
  }
  for (const int descriptor : {out_, err_, beats_})
    if (descriptor >= 0) close(descriptor);
}

const std::optional<ChildEnd>& ChildProcess::poll_end() {
  // Left as a zombie until this object goes, so that the group's number is not given to another.
  siginfo_t how{};
  if (!end_ && waitid(P_PID, static_cast<id_t>(pid_), &how, WEXITED | WNOHANG | WNOWAIT) == 0 &&
      how.si_pid == pid_)
    end_ = how.si_code == CLD_EXITED ? ChildEnd{how.si_status, 0} : ChildEnd{0, how.si_status};
  return end_;
}

bool ChildProcess::is_stopped() const {
  siginfo_t how{};
  return waitid(P_PID, static_cast<id_t>(pid_), &how, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
         how.si_pid == pid_;
}

void ChildProcess::signal_group(int signal) const { kill(-pid_, signal); }

std::vector<std::string> LineReader::read_lines(bool last) {
  std::vector<std::string> lines;
  std::array<char, 16384> buffer{};
  while (open_) {
    const ssize_t got = read(descriptor_, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) break;
    if (got == 0) open_ = false;
    rest_.append(buffer.data(), static_cast<std::size_t>(got));
    std::size_t begin = 0;
    for (std::size_t end; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1)
      lines.push_back(rest_.substr(begin, end - begin));
    rest_.erase(0, begin);
    if (rest_.size() >= kLongestLine) lines.push_back(std::exchange(rest_, {}));
  }
  if ((last || !open_) && !rest_.empty()) lines.push_back(std::exchange(rest_, {}));
  return lines;
}

ChildOutput run_to_end(const std::vector<std::string>& command) {
  ChildProcess child({.command = command, .environment = {}, .cores = {}});
  LineReader out(child.out());
  LineReader err(child.err());
  ChildOutput output;
  const auto read = [&](bool last) {
    for (const std::string& line : out.read_lines(last)) output.out += line + "\n";
    for (const std::string& line : err.read_lines(last)) output.err += line + "\n";
  };
  while (!child.poll_end()) {
    std::array<pollfd, 2> files{{{out.descriptor(), POLLIN, 0}, {err.descriptor(), POLLIN, 0}}};
    constexpr int kWaitMs = 50;
    poll(files.data(), files.size(), kWaitMs);
    read(false);
  }
  read(true);
  output.end = *child.poll_end();
  return output;
}

}  // namespace plait::runtime
