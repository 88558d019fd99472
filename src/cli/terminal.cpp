#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace plait {
namespace {

int columns_of(std::FILE* stream) {
  constexpr int kLeast = 80;
  constexpr int kMost = 160;
  constexpr int kElsewhere = 100;
  int columns = 0;
  if (const char* text = std::getenv("COLUMNS")) columns = std::atoi(text);
  winsize size{};
  if (columns <= 0 && is_terminal(stream) && ioctl(fileno(stream), TIOCGWINSZ, &size) == 0)
    columns = size.ws_col;
  return columns <= 0 ? kElsewhere : std::clamp(columns, kLeast, kMost);
}

bool wants_colour(std::FILE* stream) {
  const char* off = std::getenv("NO_COLOR");
  if (off != nullptr && *off != '\0') return false;
  const char* term = std::getenv("TERM");
  if (term == nullptr || std::strcmp(term, "dumb") == 0) return false;
  return is_terminal(stream);
}

}  // namespace

bool is_terminal(std::FILE* stream) { return isatty(fileno(stream)) == 1; }

Style style_of(std::FILE* stream) {
  return {.columns = columns_of(stream), .colour = wants_colour(stream)};
}

void print(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0)
    throw InputError("stdout", std::string("cannot be written: ") + std::strerror(errno));
}

void warn(const std::string& text) {
  const std::string line = "plait: warning: " + text + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void complain(const std::string& text) {
  const std::string line = style_of(stderr).bad("plait:") + " " + text + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace plait
