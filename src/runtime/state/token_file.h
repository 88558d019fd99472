#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/state/regular_file.h"
#include "runtime/state/tokenizer.h"

namespace plait::runtime {

// What stands beside tokens.bin in tokens.json. docs/files-tokens.md describes both.
struct TokenIndex {
  int vocabulary = 0;
  std::int64_t count = 0;
  int token_bytes = 2;       // of a token: uint16 or uint32, little-endian
  std::string tokenizer;     // "bytes", "bpe", or what another program says of its own
  Tokenizer::Merges merges;  // of "bpe"
};

// tokens.bin -> tokens.json, where the index of a token file is.
std::string index_path(const std::string& tokens_path);
TokenIndex read_token_index(const std::string& path);

// Both files; the index last, so that there is none without its tokens. `path` must not end in
// .json.
void write_token_file(const std::string& path, const std::vector<std::int32_t>& tokens,
                      const Tokenizer& tokenizer);

// Where a training sequence begins: a pure function of its arguments, uniform over the file, so
// that every rank of every plan and every resumed run sees the same samples without asking anyone.
// `sample` counts within the step. The file must have `length` tokens at least.
std::int64_t sample_begin(std::int64_t count, std::int64_t length, std::uint64_t seed,
                          std::int64_t step, std::int64_t sample);

// A token file. Samples are read as they are asked for.
class TokenFile {
 public:
  // InputError when the index is missing or wrong, or the sizes do not agree.
  explicit TokenFile(const std::string& path);

  const TokenIndex& index() const { return index_; }
  std::int64_t count() const { return index_.count; }

  // Tokens [begin, begin + into.size()). InputError for a token outside the vocabulary, and when
  // the file has become shorter.
  void read(std::int64_t begin, std::span<std::int64_t> into) const;

  // `length` + 1 tokens: the sequence, and what it should have predicted is one further.
  std::vector<std::int64_t> sample(int length, std::uint64_t seed, std::int64_t step,
                                   std::int64_t number) const;

 private:
  std::string path_;
  TokenIndex index_;
  RegularFile file_;
};

}  // namespace plait::runtime
