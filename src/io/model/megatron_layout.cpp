#include "io/model/megatron_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace plait {
namespace {

constexpr std::size_t kLongest = 100'000;  // letters of a layout once it is written out

class Reader {
 public:
  Reader(const std::string& where, const std::string& text) : where_(where), text_(text) {}

  // Letters and bars, every repetition written out.
  std::string read() {
    std::string out = sequence();
    if (at_ < text_.size()) fail("a '(' is missing");
    return out;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(where_, fmt::format("{}: '{}'", what, text_.substr(0, 100)));
  }

  void skip() {
    while (at_ < text_.size() && std::string_view(", \t\n").find(text_[at_]) != std::string::npos)
      ++at_;
  }

  int times() {
    skip();
    if (at_ >= text_.size() || text_[at_] != '*') return 1;
    ++at_;
    skip();
    int count = 0;
    const auto [end, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), count);
    if (error != std::errc() || count < 1) fail("a '*' needs a number from 1 on after it");
    at_ = static_cast<std::size_t>(end - text_.data());
    return count;
  }

  std::string sequence() {
    std::string out;
    for (skip(); at_ < text_.size() && text_[at_] != ')'; skip()) {
      std::string part;
      if (text_[at_] == '(') {
        if (++depth_ > 20) fail("has too many parentheses");
        ++at_;
        part = sequence();
        if (at_ >= text_.size()) fail("a ')' is missing");
        --depth_;
      } else {
        part = text_[at_];
        if (part == "m") fail("a prediction of several tokens (m) is not modelled");
        if (std::string_view("EtL|").find(part[0]) == std::string_view::npos)
          fail(fmt::format("'{}' is none of E, t, L, |, *, ( and )", part));
      }
      ++at_;
      if (part.empty()) fail("has nothing between '(' and ')'");
      const int count = times();
      if (part.size() * static_cast<std::size_t>(count) > kLongest) fail("is too long");
      for (int i = 0; i < count; ++i) out += part;
      if (out.size() > kLongest) fail("is too long");
    }
    return out;
  }

  const std::string& where_;
  const std::string& text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::vector<LayoutStage> parse_layout(const std::string& where, const std::string& text) {
  const std::string letters = Reader(where, text).read();
  std::vector<LayoutStage> stages(1);
  int embeddings = 0;
  int losses = 0;
  for (const char c : letters) {
    if (c == '|') {
      stages.emplace_back();
      continue;
    }
    LayoutStage& stage = stages.back();
    if (c == 't') ++stage.layers;
    if (c == 'E') ++embeddings;
    if (c == 'L') ++losses;
    stage.embedding = stage.embedding || c == 'E';
    stage.loss = stage.loss || c == 'L';
  }
  if (embeddings != 1 || letters.front() != 'E')
    throw InputError(where, fmt::format("must begin with its one E: '{}'", text.substr(0, 100)));
  if (losses != 1 || letters.back() != 'L')
    throw InputError(where, fmt::format("must end with its one L: '{}'", text.substr(0, 100)));
  return stages;
}

std::string layout_text(const std::vector<LayoutStage>& stages) {
  std::string out;
  for (const LayoutStage& stage : stages) {
    if (&stage != &stages.front()) out += "|";
    if (stage.embedding) out += "E";
    if (stage.layers == 1) out += "t";
    if (stage.layers > 1) out += fmt::format("t*{}", stage.layers);
    if (stage.loss) out += "L";
  }
  return out;
}

}  // namespace plait
