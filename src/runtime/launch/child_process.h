#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace plait::runtime {

struct ChildOptions {
  std::vector<std::string> command;  // a program, looked for in PATH, and its words
  // Added to this program's environment; a value of nothing takes the name out of it.
  std::vector<std::pair<std::string, std::optional<std::string>>> environment;
  std::vector<int> cores;  // it may run on these; empty = on all that this program may
  bool heartbeat = false;  // give it a pipe in PLAIT_HEARTBEAT_FD
};

// How a process ended.
struct ChildEnd {
  int code = 0;    // exit status
  int signal = 0;  // that killed it; 0 = it exited
  bool good() const { return code == 0 && signal == 0; }
};
std::string in_words(const ChildEnd& end);  // "exited with status 3", "was killed by SIGKILL ..."

// A process in a group of its own, with stdout, stderr and heartbeat on pipes that do not block. It
// is killed when this program ends, however that comes about, and with its group when this object
// goes. Start it from a thread that lives as long as it does: the kernel ties the two together.
class ChildProcess {
 public:
  explicit ChildProcess(const ChildOptions& options);  // InputError when it cannot be started
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  int out() const { return out_; }
  int err() const { return err_; }
  int beats() const { return beats_; }  // -1 without a heartbeat

  // Takes note when it has ended; does not wait.
  const std::optional<ChildEnd>& poll_end();
  bool is_stopped() const;  // by SIGSTOP or its like, at the moment
  void signal_group(int signal) const;

 private:
  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;
  int beats_ = -1;
  std::optional<ChildEnd> end_;
};

// What a pipe has to say, line by line.
class LineReader {
 public:
  explicit LineReader(int descriptor) : descriptor_(descriptor) {}
  int descriptor() const { return open_ ? descriptor_ : -1; }
  // The lines that came since the last call, without their ends; a line is cut after 64 KiB. At the
  // end of the stream, or when `last`, also what stands on an unfinished line.
  std::vector<std::string> read_lines(bool last = false);

 private:
  int descriptor_;
  bool open_ = true;
  std::string rest_;
};

// Runs a command and waits for its end; all that it printed.
struct ChildOutput {
  std::string out;
  std::string err;
  ChildEnd end;
};
ChildOutput run_to_end(const std::vector<std::string>& command);

}  // namespace plait::runtime
