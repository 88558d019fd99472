#include "io/format/text_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "io/format/random_name.h"

namespace plait {
namespace {

constexpr int kPipePatience = 800;  // ms until somebody must have opened a pipe to write
constexpr int kPipePause = 10;      // ms between two looks

// The file that a link leads to, so that writing keeps the link; other paths as they are.
std::string file_behind(const std::string& path) {
  std::error_code error;
  const std::filesystem::path file = std::filesystem::canonical(path, error);
  return error ? path : file.string();
}

// An open file that is closed at the end of its scope.
class OpenFile {
 public:
  explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

// While it lives, what would end the program waits, so that no half-written file stays behind.
class SignalsHeldBack {
 public:
  SignalsHeldBack() {
    sigset_t ending;
    sigemptyset(&ending);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGALRM, SIGUSR1, SIGUSR2})
      sigaddset(&ending, signal);
    pthread_sigmask(SIG_BLOCK, &ending, &before_);
  }
  SignalsHeldBack(const SignalsHeldBack&) = delete;
  SignalsHeldBack& operator=(const SignalsHeldBack&) = delete;
  ~SignalsHeldBack() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

int open_to_read(const std::string& path) {
  if (path == "-") return dup(STDIN_FILENO);
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) throw InputError(path, std::strerror(errno));
  if (S_ISDIR(status.st_mode)) throw InputError(path, "is a directory, a file is needed");
  // A pipe without a writer would keep open() waiting for ever.
  return open(path.c_str(), O_RDONLY | O_CLOEXEC | (S_ISFIFO(status.st_mode) ? O_NONBLOCK : 0));
}

// The next bytes, 0 at the end. A pipe ends where its writers have gone; one that never had any
// looks the same, so that the first byte is waited for. Negative where a signal ended the waiting.
ssize_t next_bytes(int file, char* block, std::size_t size, bool first) {
  struct stat status {};
  const bool pipe = fstat(file, &status) == 0 && S_ISFIFO(status.st_mode);
  for (int waited = 0;; waited += kPipePause) {
    const ssize_t got = read(file, block, size);
    pollfd input{.fd = file, .events = POLLIN, .revents = 0};
    if (got < 0 && errno == EAGAIN) {
      if (poll(&input, 1, -1) < 0) return -1;
    } else if (got != 0 || !pipe || !first || waited >= kPipePatience) {
      return got;
    } else if (poll(nullptr, 0, kPipePause) < 0) {
      return -1;
    }
  }
}

[[noreturn]] void cannot_write(const std::string& path) {
  throw InputError(path, fmt::format("cannot be written: {}", std::strerror(errno)));
}

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

void write_in_place(const std::string& path, std::string_view text, bool pipe) {
  if (pipe) {
    const OpenFile reader(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    if (reader.get() < 0 && errno == ENXIO)
      throw InputError(path, "cannot be written: nobody reads from this pipe");
  }
  const OpenFile file(open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (file.get() < 0 || !write_all(file.get(), text)) cannot_write(path);
}

// False, and errno says why, when it cannot be done. `before` is the file that is replaced.
bool write_new_file(const std::string& name, std::string_view text, const struct stat* before) {
  const OpenFile file(open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                           before == nullptr ? 0666 : 0600));
  if (file.get() < 0) return false;
  if (before != nullptr) {
    // Only root may give a file away; for others it is theirs already, or the mode is all there is.
    [[maybe_unused]] const int given = fchown(file.get(), before->st_uid, before->st_gid);
    if (fchmod(file.get(), before->st_mode & 0777) != 0) return false;
  }
  return write_all(file.get(), text) && fsync(file.get()) == 0;
}

// The name of a file is on the disk when its directory is. Not all file systems can.
void sync_directory(const std::string& directory) {
  const OpenFile opened(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.get() >= 0) fsync(opened.get());
}

void replace_file(const std::string& path, std::string_view text, const struct stat* before) {
  const std::string target = file_behind(path);
  const std::filesystem::path parent = std::filesystem::path(target).parent_path();
  const std::string directory = parent.empty() ? "." : parent.string();
  const std::string temporary = fmt::format("{}/.plait-{}.tmp", directory, random_name());
  const SignalsHeldBack held_back;
  if (write_new_file(temporary, text, before) &&
      std::rename(temporary.c_str(), target.c_str()) == 0)
    return sync_directory(directory);
  const int fault = errno;
  unlink(temporary.c_str());
  errno = fault;
  cannot_write(path);
}

}  // namespace

std::string read_text_file(const std::string& path) {
  const OpenFile file(open_to_read(path));
  if (file.get() < 0) throw InputError(path, std::strerror(errno));
  std::string text;
  char block[1 << 16];
  ssize_t got = 0;
  while (text.size() <= kMaxFileBytes &&
         (got = next_bytes(file.get(), block, sizeof block, text.empty())) > 0)
    text.append(block, static_cast<std::size_t>(got));
  if (got < 0) throw InputError(path, errno == EINTR ? "reading it was stopped" : "cannot be read");
  if (text.size() > kMaxFileBytes) throw InputError(path, "is larger than 64 MiB");
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  return text;
}

std::string random_name() {
  std::uint64_t number = 0;
  while (getrandom(&number, sizeof(number), 0) != sizeof(number))
    if (errno != EINTR) throw InputError("random numbers of the kernel", std::strerror(errno));
  return fmt::format("{:016x}", number);
}

void write_text_file(const std::string& path, std::string_view text) {
  struct stat status {};
  const bool exists = stat(path.c_str(), &status) == 0;
  // Renaming onto a device or a pipe would replace it by a file.
  if (exists && (!S_ISREG(status.st_mode) || path.starts_with("/dev/")))
    write_in_place(path, text, S_ISFIFO(status.st_mode));
  else
    replace_file(path, text, exists ? &status : nullptr);
}

}  // namespace plait
