#include "runtime/state/tokenizer.h"

#include <algorithm>
#include <map>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"

namespace plait::runtime {
namespace {

constexpr std::size_t kLongestWord = 64;
constexpr int kBytes = 256;

enum class Kind { letter, digit, blank, sign };

Kind kind_of(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (byte >= 128 || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z'))
    return Kind::letter;
  if (byte >= '0' && byte <= '9') return Kind::digit;
  if (byte == ' ' || (byte >= '\t' && byte <= '\r')) return Kind::blank;
  return Kind::sign;
}

std::uint64_t key_of(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
         static_cast<std::uint32_t>(right);
}

// Distinct words with their counts, cut further and further apart into tokens of the vocabulary as
// it grows.
class Trainer {
 public:
  explicit Trainer(std::string_view text) {
    std::unordered_map<std::string_view, std::int64_t> counts;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t length = first_word_length(text.substr(begin));
      ++counts[text.substr(begin, length)];
      begin += length;
    }
    const std::map<std::string_view, std::int64_t> sorted(counts.begin(), counts.end());
    for (const auto& [word, count] : sorted) {
      Word cut{{}, count};
      for (const char c : word) cut.tokens.push_back(static_cast<unsigned char>(c));
      words_.push_back(std::move(cut));
      add_pairs(words_.size() - 1, 1);
    }
    for (const auto& [pair, found] : pairs_) queue_.push({found.count, pair});
  }

  Tokenizer::Merges merges(int vocabulary) {
    Tokenizer::Merges merges;
    while (kBytes + static_cast<int>(merges.size()) < vocabulary && !queue_.empty()) {
      const Entry best = queue_.top();
      queue_.pop();
      const auto found = pairs_.find(best.pair);
      if (found == pairs_.end() || found->second.count != best.count) continue;
      if (best.count < 2) break;
      const auto left = static_cast<std::int32_t>(best.pair >> 32);
      const auto right = static_cast<std::int32_t>(best.pair & 0xffffffffU);
      merge(left, right, kBytes + static_cast<std::int32_t>(merges.size()));
      merges.emplace_back(left, right);
    }
    return merges;
  }

 private:
  struct Word {
    std::vector<std::int32_t> tokens;
    std::int64_t count;
  };
  struct Pair {
    std::int64_t count = 0;
    std::unordered_set<std::size_t> words;
  };
  struct Entry {
    std::int64_t count;
    std::uint64_t pair;
    friend bool operator<(const Entry& a, const Entry& b) {
      return a.count != b.count ? a.count < b.count : a.pair > b.pair;
    }
  };

  void add_pairs(std::size_t number, int sign) {
    const Word& word = words_[number];
    for (std::size_t i = 0; i + 1 < word.tokens.size(); ++i) {
      const std::uint64_t pair = key_of(word.tokens[i], word.tokens[i + 1]);
      Pair& found = pairs_[pair];
      found.count += sign * word.count;
      if (sign > 0) found.words.insert(number);
      changed_.push_back(pair);
    }
  }

  void merge(std::int32_t left, std::int32_t right, std::int32_t token) {
    changed_.clear();
    const auto numbers = pairs_[key_of(left, right)].words;
    for (const std::size_t number : numbers) {
      add_pairs(number, -1);
      std::vector<std::int32_t>& tokens = words_[number].tokens;
      std::size_t kept = 0;
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        const bool both = i + 1 < tokens.size() && tokens[i] == left && tokens[i + 1] == right;
        tokens[kept++] = both ? token : tokens[i];
        if (both) ++i;
      }
      tokens.resize(kept);
      add_pairs(number, 1);
    }
    pairs_.erase(key_of(left, right));
    std::sort(changed_.begin(), changed_.end());
    changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
    for (const std::uint64_t pair : changed_)
      if (const auto found = pairs_.find(pair); found != pairs_.end())
        queue_.push({found->second.count, pair});
  }

  std::vector<Word> words_;
  std::unordered_map<std::uint64_t, Pair> pairs_;
  std::vector<std::uint64_t> changed_;
  std::priority_queue<Entry> queue_;
};

}  // namespace

std::size_t first_word_length(std::string_view text) {
  std::size_t begin = text[0] == ' ' && text.size() > 1 && kind_of(text[1]) != Kind::blank ? 1 : 0;
  const Kind kind = kind_of(text[begin]);
  std::size_t end = begin + 1;
  while (end < text.size() && end < kLongestWord && kind_of(text[end]) == kind) ++end;
  // The last blank of a run goes with the word after it.
  const bool more = kind == Kind::blank && end < text.size() && kind_of(text[end]) != Kind::blank;
  return more && end - begin > 1 && text[end - 1] == ' ' ? end - 1 : end;
}

Tokenizer::Tokenizer(Merges merges) : merges_(std::move(merges)) {
  texts_.reserve(kBytes + merges_.size());
  for (int byte = 0; byte < kBytes; ++byte) texts_.emplace_back(1, static_cast<char>(byte));
  for (const auto& [left, right] : merges_) {
    PLAIT_CHECK(left >= 0 && right >= 0 && left < vocabulary() && right < vocabulary());
    by_pair_.emplace_back(key_of(left, right), vocabulary());
    texts_.push_back(texts_[static_cast<std::size_t>(left)] +
                     texts_[static_cast<std::size_t>(right)]);
  }
  std::sort(by_pair_.begin(), by_pair_.end());
}

Tokenizer Tokenizer::trained(std::string_view text, int vocabulary) {
  PLAIT_CHECK(vocabulary >= kBytes);
  return Tokenizer(Trainer(text).merges(vocabulary));
}

std::vector<std::int32_t> Tokenizer::encode_word(std::string_view word) const {
  std::vector<std::int32_t> tokens;
  for (const char c : word) tokens.push_back(static_cast<unsigned char>(c));
  while (tokens.size() > 1) {
    std::int32_t best = vocabulary();
    std::size_t where = 0;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      const std::pair<std::uint64_t, std::int32_t> pair(key_of(tokens[i], tokens[i + 1]), 0);
      const auto found = std::lower_bound(by_pair_.begin(), by_pair_.end(), pair);
      if (found == by_pair_.end() || found->first != pair.first || found->second >= best) continue;
      best = found->second;
      where = i;
    }
    if (best == vocabulary()) break;
    tokens[where] = best;
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(where) + 1);
  }
  return tokens;
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> tokens;
  if (merges_.empty()) {
    tokens.reserve(text.size());
    for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
    return tokens;
  }
  std::unordered_map<std::string_view, std::vector<std::int32_t>> seen;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::string_view word = text.substr(begin, first_word_length(text.substr(begin)));
    auto found = seen.find(word);
    if (found == seen.end()) found = seen.emplace(word, encode_word(word)).first;
    tokens.insert(tokens.end(), found->second.begin(), found->second.end());
    begin += word.size();
  }
  return tokens;
}

std::string Tokenizer::decode(const std::vector<std::int32_t>& tokens) const {
  std::string text;
  for (const std::int32_t token : tokens) {
    PLAIT_CHECK(token >= 0 && token < vocabulary());
    text += texts_[static_cast<std::size_t>(token)];
  }
  return text;
}

}  // namespace plait::runtime
