#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plait::runtime {

// Byte-level byte-pair encoding (Sennrich et al. 2016, over bytes as GPT-2 has it): tokens 0 to 255
// are the bytes, token 256 + i stands for the two tokens of merges[i]. Any text encodes, and
// decodes to the same bytes. Without merges it is the plain vocabulary of 256 bytes.
//
// Merges stay inside words. A word is a run of letters (ASCII, or any byte from 128), of digits, of
// other signs, or of blanks, with one blank before it if there is one; of 64 bytes at most.
class Tokenizer {
 public:
  using Merges = std::vector<std::pair<std::int32_t, std::int32_t>>;

  explicit Tokenizer(Merges merges = {});

  // Learns merges from a text until the vocabulary has `vocabulary` tokens or no pair comes twice.
  // The most frequent pair first; of several, the one with the smaller tokens. The same text gives
  // the same merges everywhere.
  static Tokenizer trained(std::string_view text, int vocabulary);

  int vocabulary() const { return static_cast<int>(texts_.size()); }
  const Merges& merges() const { return merges_; }

  std::vector<std::int32_t> encode(std::string_view text) const;
  // What each token stands for; tokens outside the vocabulary are an error of the caller.
  std::string decode(const std::vector<std::int32_t>& tokens) const;

 private:
  std::vector<std::int32_t> encode_word(std::string_view word) const;

  Merges merges_;
  std::vector<std::string> texts_;                               // by token
  std::vector<std::pair<std::uint64_t, std::int32_t>> by_pair_;  // pair -> token, ascending
};

// The length of the first word of a text that is not empty.
std::size_t first_word_length(std::string_view text);

}  // namespace plait::runtime
