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

// `one` as often as the "*5" at `at` says, which is read.
std::optional<std::string> repeated(std::string_view one, char joint, std::string_view text,
                                    std::size_t& at, std::size_t most) {
  int times = 0;
  const char* begin = text.data() + at + 1;
  const auto [stop, fault] = std::from_chars(begin, text.data() + text.size(), times);
  if (fault != std::errc() || times < 1 || times > kMostTimes) return std::nullopt;
  at = static_cast<std::size_t>(stop - text.data());
  if ((one.size() + 1) * static_cast<std::size_t>(times) > most) return std::nullopt;
  std::string all(one);
  for (int i = 1; i < times; ++i) (all += joint) += one;
  return all;
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
    return repeated(out, '+', text_, at_, most_);
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

std::string folded_stages(const std::vector<std::string>& stages) {
  std::vector<std::string> runs;
  for (std::size_t first = 0; first < stages.size();) {
    const auto same = [&](const std::string& text) { return text == stages[first]; };
    const auto next =
        std::find_if_not(stages.begin() + static_cast<std::ptrdiff_t>(first), stages.end(), same);
    const std::size_t end = static_cast<std::size_t>(next - stages.begin());
    const std::string run = fmt::format("[{}]*{}", stages[first], end - first);
    if (2 * run.size() <= (stages[first].size() + 1) * (end - first) - 1)
      runs.push_back(run);
    else
      runs.insert(runs.end(), end - first, stages[first]);
    first = end;
  }
  return fmt::format("{}", fmt::join(runs, ","));
}

std::optional<std::string> unfolded_stages(std::string_view text, std::size_t most) {
  std::string out;
  for (std::size_t at = 0;;) {
    if (at < text.size() && text[at] == '[') {
      const std::size_t close = text.find(']', at);
      if (close == text.npos || close + 1 == text.size() || text[close + 1] != '*')
        return std::nullopt;
      const std::string_view one = text.substr(at + 1, close - at - 1);
      const std::optional<std::string> all = repeated(one, ',', text, at = close + 1, most);
      if (!all || (at < text.size() && text[at] != ',')) return std::nullopt;
      out += *all;
    } else {
      const std::size_t end = std::min(text.find(',', at), text.size());
      out += text.substr(at, end - at);
      at = end;
    }
    if (out.size() > most) return std::nullopt;
    if (at == text.size()) return out;
    out += text[at++];
  }
}

}  // namespace plait
