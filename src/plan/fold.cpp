#include "plan/fold.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <span>

namespace plait {
namespace {

constexpr std::size_t kLongestPattern = 64;
constexpr int kDeepest = 8;
constexpr int kMostTimes = 100'000'000;

using Words = std::span<const std::string>;

// How often the first `period` words stand one after the other.
std::size_t repeats(Words words, std::size_t period) {
  std::size_t end = period;
  while (end < words.size() && words[end] == words[end - period]) ++end;
  return end / period;
}

std::string fold(Words words) {
  std::string out;
  while (!words.empty()) {
    std::size_t best = 1, times = 1, saved = 0;
    for (std::size_t period = 1; period <= std::min(kLongestPattern, words.size() / 2); ++period) {
      const std::size_t count = repeats(words, period);
      const std::size_t length = fmt::format("{}", fmt::join(words.first(period), "+")).size();
      const std::size_t plain = count * (length + 1) - 1;
      const std::size_t short_form =
          length + (period == 1 ? 1 : 3) + fmt::format("{}", count).size();
      if (count < 2 || plain <= short_form + saved) continue;
      saved = plain - short_form;
      best = period;
      times = count;
    }
    if (!out.empty()) out += "+";
    if (times == 1)
      out += words[0];
    else if (best == 1)
      out += fmt::format("{}*{}", words[0], times);
    else
      out += fmt::format("({})*{}", fold(words.first(best)), times);
    words = words.subspan(best * times);
  }
  return out;
}

// list := item { ("+" | "/" | ",") item };  item := (word | "(" list ")") [ "*" number ]
class Unfolding {
 public:
  Unfolding(std::string_view text, std::size_t most) : text_(text), most_(most) {}

  std::optional<std::string> run() {
    std::optional<std::string> out = list(0);
    return at_ == text_.size() ? out : std::nullopt;
  }

 private:
  std::optional<std::string> list(int depth) {
    std::string out;
    while (true) {
      const std::optional<std::string> one = item(depth);
      if (!one || out.size() + one->size() > most_) return std::nullopt;
      out += *one;
      if (at_ == text_.size() || text_[at_] == ')') return out;
      if (depth > 0 && text_[at_] != '+') return std::nullopt;
      out += text_[at_++];
    }
  }

  std::optional<std::string> item(int depth) {
    std::string out;
    if (at_ < text_.size() && text_[at_] == '(') {
      if (depth == kDeepest) return std::nullopt;
      ++at_;
      const std::optional<std::string> inner = list(depth + 1);
      if (!inner || at_ == text_.size() || text_[at_] != ')') return std::nullopt;
      ++at_;
      out = *inner;
    } else {
      const std::size_t end = std::min(text_.find_first_of("+/,*()", at_), text_.size());
      out = text_.substr(at_, end - at_);
      at_ = end;
    }
    if (at_ == text_.size() || text_[at_] != '*') return out;
    int times = 0;
    const char* begin = text_.data() + at_ + 1;
    const auto [stop, fault] = std::from_chars(begin, text_.data() + text_.size(), times);
    if (fault != std::errc() || times < 1 || times > kMostTimes) return std::nullopt;
    at_ = static_cast<std::size_t>(stop - text_.data());
    if ((out.size() + 1) * static_cast<std::size_t>(times) > most_) return std::nullopt;
    std::string all = out;
    for (int i = 1; i < times; ++i) all += "+" + out;
    return all;
  }

  std::string_view text_;
  std::size_t most_;
  std::size_t at_ = 0;
};

}  // namespace

std::string folded(const std::vector<std::string>& words) { return fold(words); }

std::optional<std::string> unfolded(std::string_view text, std::size_t most) {
  return Unfolding(text, most).run();
}

}  // namespace plait
