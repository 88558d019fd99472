#include "cli/terminal/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/printable.h"

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

// Messages quote files: whatever is in them, it must not reach the terminal as a command, nor fill
// it. The beginning says what it is, the end often what to do.
std::string message(const std::string& text) {
  constexpr std::size_t kMost = 2000;
  if (text.size() <= kMost) return printable(text, kMost);
  return printable(std::string_view(text).substr(0, kMost / 2), kMost) + " ... " +
         printable(std::string_view(text).substr(text.size() - kMost / 2), kMost);
}

// 0, or why stdout cannot take the text.
int written(const std::string& text) {
  const bool whole = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  return whole && std::fflush(stdout) == 0 ? 0 : errno;
}

InputError refused(int fault) {
  return {"stdout", std::string("cannot be written: ") + std::strerror(fault)};
}

int lines_fault = 0;  // of print_line(), the first

}  // namespace

bool is_terminal(std::FILE* stream) { return isatty(fileno(stream)) == 1; }

Style style_of(std::FILE* stream) {
  return {
      .columns = columns_of(stream), .colour = wants_colour(stream), .narrow = is_terminal(stream)};
}

void print(std::string_view page) {
  if (const int fault = written(printable_lines(page))) throw refused(fault);
}

void print_line(std::string_view line) {
  const int fault = written(printable_lines(line) + "\n");
  if (lines_fault == 0) lines_fault = fault;
}

void check_lines() {
  if (lines_fault != 0) throw refused(lines_fault);
}

void warn(const std::string& text) {
  const std::string line = "plait: warning: " + message(text) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void complain(const std::string& text) {
  const std::string line = style_of(stderr).bad("plait:") + " " + message(text) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void pass_on_line(int rank, bool error_stream, const std::string& line) {
  const std::string text = (rank == 0 ? "" : "rank " + std::to_string(rank) + ": ") + line + "\n";
  if (error_stream)
    std::fwrite(text.data(), 1, text.size(), stderr);
  else if (const int fault = written(text); lines_fault == 0)
    lines_fault = fault;
}

}  // namespace plait
