#include "runtime/state/regular_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace plait::runtime {

RegularFile::RegularFile(const std::string& path) : path_(path) {
  descriptor_ = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  struct stat status {};
  std::string fault;
  if (descriptor_ < 0 || fstat(descriptor_, &status) != 0)
    fault = std::strerror(errno);
  else if (!S_ISREG(status.st_mode))
    fault = "it is not a regular file";
  size_ = status.st_size;
  if (fault.empty()) return;
  if (descriptor_ >= 0) close(descriptor_);
  throw InputError(path, "cannot be read: " + fault);
}

RegularFile::~RegularFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

RegularFile::RegularFile(RegularFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_) {}

void RegularFile::read(std::int64_t begin, std::span<char> into) const {
  std::size_t have = 0;
  while (have < into.size()) {
    const ssize_t got = pread(descriptor_, into.data() + have, into.size() - have,
                              begin + static_cast<std::int64_t>(have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw InputError(path_, std::string("cannot be read: ") + std::strerror(errno));
    if (got == 0)
      throw InputError(
          path_, fmt::format("has become shorter while it was read: it had {} bytes, and has {}",
                             size_, begin + static_cast<std::int64_t>(have)));
    have += static_cast<std::size_t>(got);
  }
}

std::string RegularFile::text() const {
  std::string text(static_cast<std::size_t>(size_), '\0');
  read(0, text);
  return text;
}

}  // namespace plait::runtime
