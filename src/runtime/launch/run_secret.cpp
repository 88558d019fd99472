#include "runtime/launch/run_secret.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace plait::runtime {
namespace {

constexpr std::size_t kShortestSecret = 16;
constexpr std::size_t kLongestSecret = 1024;

// A FIFO is not opened, and of a large file no more is read than a secret may have.
std::string secret_in_file(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  struct stat status {};
  if (descriptor < 0 || fstat(descriptor, &status) != 0) {
    const int error = errno;
    if (descriptor >= 0) close(descriptor);
    throw InputError(path, std::string("cannot be read: ") + std::strerror(error));
  }
  std::string text(kLongestSecret + 2, '\0');
  const bool regular = S_ISREG(status.st_mode);
  const ssize_t got = regular ? read(descriptor, text.data(), text.size()) : 0;
  close(descriptor);
  if (!regular) throw InputError(path, "is not a regular file; the secret of a run is in one");
  if ((status.st_mode & 077) != 0)
    throw InputError(path, "can be read by others: the secret of a run needs chmod 600");
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, got)));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

}  // namespace

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  for (std::size_t have = 0; have < count;) {
    const ssize_t got = getrandom(bytes.data() + have, count - have, 0);
    if (got < 0 && errno != EINTR) throw InputError("getrandom", std::strerror(errno));
    if (got > 0) have += static_cast<std::size_t>(got);
  }
  return bytes;
}

std::string new_secret() {
  std::string digits;
  for (const char byte : random_bytes(32))
    digits += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return digits;
}

std::string secret_of_run(const Variables& variables) {
  const auto text = variables(kSecretVariable);
  const auto file = variables(kSecretFileVariable);
  if (!text && !file) return "";
  const std::string secret = text ? *text : secret_in_file(*file);
  const bool usable = secret.size() >= kShortestSecret && secret.size() <= kLongestSecret;
  if (!usable)
    throw InputError(
        text ? std::string("environment variable ") + kSecretVariable : *file,
        fmt::format("must have {} to {} characters, has {}; 'openssl rand -hex 32' makes a secret",
                    kShortestSecret, kLongestSecret, secret.size()));
  return secret;
}

}  // namespace plait::runtime
