#include "fuzz/mutate.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>
#include <vector>

namespace plait::fuzz {
namespace {

struct Piece {
  std::size_t begin = 0;
  std::size_t end = 0;
};

constexpr std::array<std::string_view, 30> kOdd{"0",      "-1",         "1",
                                                "2",      "1e308",      "1e-308",
                                                "-0.0",   "2147483647", "2147483648",
                                                "1e18",   "1e999",      "null",
                                                "true",   "[]",         "{}",
                                                "\"\"",   "\"x\"",      "9007199254740993",
                                                "0.5",    "1e-30",      "65536",
                                                "100000", "NaN",        "inf",
                                                "[1]",    "[[]]",       "18446744073709551616",
                                                "3",      "7",          "\"\\u0000\""};

bool is_word(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '.' ||
         letter == '-' || letter == '+';
}

// Strings, words and numbers; of CSV whole cells.
std::vector<Piece> pieces_of(std::string_view text, Shape shape) {
  std::vector<Piece> out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    if (shape == Shape::csv) {
      end = std::min(text.find_first_of(",\n", at), text.size());
    } else if (text[at] == '"') {
      end = at + 1;
      while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, text.size());
    } else {
      while (end < text.size() && is_word(text[end])) ++end;
    }
    if (end > at) out.push_back({at, end});
    at = std::max(end, at) + (end == at || shape == Shape::csv ? 1 : 0);
  }
  return out;
}

// A value that encloses a position, with its brackets: "{...}" or "[...]".
Piece enclosing(std::string_view text, std::size_t at) {
  int depth = 0;
  std::size_t begin = at;
  while (begin > 0 && depth >= 0) {
    --begin;
    if (text[begin] == '}' || text[begin] == ']') ++depth;
    if (text[begin] == '{' || text[begin] == '[') --depth;
  }
  depth = 0;
  for (std::size_t end = begin; end < text.size(); ++end) {
    if (text[end] == '{' || text[end] == '[') ++depth;
    if (text[end] == '}' || text[end] == ']') --depth;
    if (depth == 0) return {begin, end + 1};
  }
  return {begin, text.size()};
}

void change_byte(std::string& bytes, const Draw& draw) {
  const std::size_t at = draw(bytes.size());
  switch (draw(4)) {
    case 0:
      bytes[at] = static_cast<char>(draw(256));
      break;
    case 1:
      bytes.erase(at, 1 + draw(8));
      break;
    case 2:
      bytes.insert(at, bytes.substr(draw(bytes.size()), 1 + draw(16)));
      break;
    default:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << draw(8)));
  }
}

void change_piece(std::string& bytes, Shape shape, const Draw& draw) {
  const std::vector<Piece> pieces = pieces_of(bytes, shape);
  if (pieces.empty()) return change_byte(bytes, draw);
  const Piece one = pieces[draw(pieces.size())];
  const Piece other = pieces[draw(pieces.size())];
  const std::string value = bytes.substr(other.begin, other.end - other.begin);
  switch (draw(shape == Shape::json ? 6 : 4)) {
    case 0:
      bytes.replace(one.begin, one.end - one.begin, kOdd[draw(kOdd.size())]);
      break;
    case 1:
      bytes.replace(one.begin, one.end - one.begin, value);
      break;
    case 2:
      bytes.erase(one.begin, one.end - one.begin);
      break;
    case 3:
      bytes.insert(one.end, (shape == Shape::csv ? "," : " ") + value);
      break;
    default: {
      // A whole value in the place of another, or twice.
      const Piece whole = enclosing(bytes, other.begin);
      const std::string text = bytes.substr(whole.begin, whole.end - whole.begin);
      if (draw(2) == 0)
        bytes.replace(one.begin, one.end - one.begin, text);
      else
        bytes.insert(whole.end, "," + text);
    }
  }
}

}  // namespace

std::string mutated(std::string bytes, Shape shape, std::size_t most, const Draw& draw) {
  const std::size_t changes = 1 + draw(4);
  for (std::size_t i = 0; i < changes && !bytes.empty(); ++i) {
    if (shape == Shape::bytes || draw(5) == 0)
      change_byte(bytes, draw);
    else
      change_piece(bytes, shape, draw);
  }
  if (bytes.empty()) bytes = std::string(kOdd[draw(kOdd.size())]);
  if (bytes.size() > most) bytes.resize(most);
  return bytes;
}

}  // namespace plait::fuzz
