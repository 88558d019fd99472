#include "cli/terminal/terminal.h"

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
  constexpr int kLeast = 40;
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

// Length of the UTF-8 sequence at the start of the text; 0 when there is none.
std::size_t utf8_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xC2 ? 0
                             : first < 0xE0 ? 2
                             : first < 0xF0 ? 3
                             : first < 0xF5 ? 4
                                            : 0;
  if (length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 0;
  return length;
}

// Messages quote files: whatever is in them, it must not reach the terminal as a command.
std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const bool shown = length > 1 || (length == 1 && text[0] >= ' ' && text[0] != 0x7F);
    out += shown ? text.substr(0, length) : "?";
    text.remove_prefix(std::max<std::size_t>(1, length));
  }
  return out;
}

}  // namespace

bool is_terminal(std::FILE* stream) { return isatty(fileno(stream)) == 1; }

Style style_of(std::FILE* stream) {
  return {
      .columns = columns_of(stream), .colour = wants_colour(stream), .narrow = is_terminal(stream)};
}

void print(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0)
    throw InputError("stdout", std::string("cannot be written: ") + std::strerror(errno));
}

void warn(const std::string& text) {
  const std::string line = "plait: warning: " + printable(text) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void complain(const std::string& text) {
  const std::string line = style_of(stderr).bad("plait:") + " " + printable(text) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace plait
