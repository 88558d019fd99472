#include "base/printable.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace plait {
namespace {

struct Character {
  std::size_t length = 1;  // bytes
  std::uint32_t code = 0;  // of Unicode
  bool valid = false;      // UTF-8, in its shortest form
};

Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {1, first, true};
  const std::size_t length = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (length == 0 || first > 0xF4 || length > text.size()) return {1, first, false};
  std::uint32_t code = first & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {1, first, false};
    code = (code << 6) | (byte(i) & 0x3FU);
  }
  const bool shortest = length < 3 || code >= (length == 3 ? 0x800U : 0x10000U);
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  if (!shortest || surrogate || code > 0x10FFFF) return {1, first, false};
  return {length, code, true};
}

// Controls of ASCII and C1; marks that reverse or hide text, or end a line (Unicode 15, chapter
// 23).
bool is_shown(std::uint32_t code) {
  if (code < 0x20 || (code >= 0x7F && code < 0xA0)) return false;
  const bool direction = code == 0x061C || (code >= 0x200B && code <= 0x200F) ||
                         (code >= 0x202A && code <= 0x202E) || (code >= 0x2060 && code <= 0x206F);
  const bool line = code == 0x2028 || code == 0x2029;
  const bool hidden = code == 0x00AD || code == 0x180E || code == 0xFEFF ||
                      (code >= 0xFFF9 && code <= 0xFFFB) || (code >= 0xE0000 && code < 0xE0080);
  return !direction && !line && !hidden;
}

std::string escape_of(std::uint32_t code, bool valid) {
  if (valid && code == '\n') return "\\n";
  if (valid && code == '\r') return "\\r";
  if (valid && code == '\t') return "\\t";
  char text[16];
  std::snprintf(text, sizeof text, code < 0x80 || !valid ? "\\x%02x" : "\\u%04x",
                static_cast<unsigned>(code));
  return text;
}

// ESC [ digits and semicolons m: a colour.
std::size_t colour_length(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  const std::size_t end = text.find_first_not_of("0123456789;", 2);
  return end != text.npos && text[end] == 'm' ? end + 1 : 0;
}

}  // namespace

std::string printable(std::string_view text, std::size_t most) {
  std::string out;
  std::size_t shown = 0;
  const std::size_t all = text.size();
  for (; !text.empty(); ++shown) {
    const Character next = first_of(text);
    if (shown == most) return out + "... (" + std::to_string(all) + " bytes)";
    out += next.valid && is_shown(next.code) ? std::string(text.substr(0, next.length))
                                             : escape_of(next.code, next.valid);
    text.remove_prefix(next.length);
  }
  return out;
}

std::string printable_lines(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character next = first_of(text);
    std::size_t length = next.length;
    if (const std::size_t colour = colour_length(text); colour > 0)
      out += text.substr(0, length = colour);
    else if (next.valid && (next.code == '\n' || is_shown(next.code)))
      out += text.substr(0, length);
    else if (next.valid && next.code == '\t')
      out += '\t';
    else
      out += escape_of(next.code, next.valid);
    text.remove_prefix(length);
  }
  return out;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Character next = first_of(text);
    if (!next.valid) return false;
    text.remove_prefix(next.length);
  }
  return true;
}

}  // namespace plait
