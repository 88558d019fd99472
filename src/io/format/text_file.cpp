#include "io/format/text_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/error.h"

namespace plait {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{64} << 20;
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

int open_to_read(const std::string& path) {
  if (path == "-") return dup(STDIN_FILENO);
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) throw InputError(path, std::strerror(errno));
  if (S_ISDIR(status.st_mode)) throw InputError(path, "is a directory, a file is needed");
  // A pipe without a writer would keep open() waiting for ever.
  return open(path.c_str(), O_RDONLY | O_CLOEXEC | (S_ISFIFO(status.st_mode) ? O_NONBLOCK : 0));
}

// The next bytes, 0 at the end. A pipe ends where its writers have gone; one that never had any
// looks the same, so that the first byte is waited for.
ssize_t next_bytes(int file, char* block, std::size_t size, bool first) {
  struct stat status {};
  const bool pipe = fstat(file, &status) == 0 && S_ISFIFO(status.st_mode);
  for (int waited = 0;; waited += kPipePause) {
    const ssize_t got = read(file, block, size);
    pollfd input{.fd = file, .events = POLLIN, .revents = 0};
    if (got < 0 && errno == EAGAIN)
      poll(&input, 1, -1);
    else if (got < 0 && errno == EINTR)
      continue;
    else if (got != 0 || !pipe || !first || waited >= kPipePatience)
      return got;
    else
      poll(nullptr, 0, kPipePause);
  }
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
  if (got < 0) throw InputError(path, "cannot be read");
  if (text.size() > kMaxFileBytes) throw InputError(path, "is larger than 64 MiB");
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  return text;
}

void write_text_file(const std::string& path, std::string_view text) {
  struct stat status {};
  const bool exists = stat(path.c_str(), &status) == 0;
  // Renaming onto a device or a pipe would replace it by a file.
  const bool in_place = exists && (!S_ISREG(status.st_mode) || path.starts_with("/dev/"));
  if (exists && S_ISFIFO(status.st_mode)) {
    const OpenFile reader(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    if (reader.get() < 0 && errno == ENXIO)
      throw InputError(path, "cannot be written: nobody reads from this pipe");
  }
  const std::string target = in_place ? path : file_behind(path);
  const std::string temporary = in_place ? path : fmt::format("{}.tmp.{}", target, getpid());
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  if (file == nullptr)
    throw InputError(path, fmt::format("cannot be written: {}", std::strerror(errno)));
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool closed = std::fclose(file) == 0;
  const bool done = written && closed;
  if (done && (in_place || std::rename(temporary.c_str(), target.c_str()) == 0)) return;
  const std::string why = std::strerror(errno);
  if (!in_place) std::remove(temporary.c_str());
  throw InputError(path, "cannot be written: " + why);
}

}  // namespace plait
