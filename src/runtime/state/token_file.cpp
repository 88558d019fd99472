#include "runtime/state/token_file.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "io/format/json_reader.h"
#include "io/format/json_writer.h"

namespace plait::runtime {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

constexpr int kMostVocabulary = 16'000'000;
constexpr double kMostTokens = 1e15;
constexpr int kLongestToken = 64;
constexpr std::int64_t kMostTokenIndexBytes = std::int64_t{64} << 20;

// splitmix64 (Steele et al. 2014): every bit of the input reaches every bit of the output.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

Tokenizer::Merges merges_from(const JsonValue& json) {
  const std::vector<JsonValue> tokens = json.items();
  if (tokens.size() % 2 != 0) throw InputError(json.where(), "must be pairs of tokens, one by one");
  Tokenizer::Merges merges;
  std::vector<int> lengths(256, 1);
  for (std::size_t i = 0; i < tokens.size(); i += 2) {
    const int most = 255 + static_cast<int>(i / 2);
    merges.emplace_back(tokens[i].integer(0, most), tokens[i + 1].integer(0, most));
    const auto [left, right] = merges.back();
    lengths.push_back(lengths[static_cast<std::size_t>(left)] +
                      lengths[static_cast<std::size_t>(right)]);
    if (lengths.back() > kLongestToken)
      throw InputError(tokens[i].where(),
                       fmt::format("makes a token of {} bytes; words have {} at most",
                                   lengths.back(), kLongestToken));
  }
  return merges;
}

}  // namespace

std::string index_path(const std::string& tokens_path) {
  return std::filesystem::path(tokens_path).replace_extension(".json").string();
}

TokenIndex read_token_index(const std::string& path) {
  const RegularFile file(path);
  if (file.size() > kMostTokenIndexBytes) throw InputError(path, "is larger than 64 MiB");
  const JsonValue root = parse_json(path, file.text());
  root.allow_only({"format", "vocabulary", "count", "dtype", "tokenizer", "merges"});
  if (root.at("format").text() != "plait-tokens")
    throw InputError(root.at("format").where(), "must be \"plait-tokens\"");
  TokenIndex index;
  index.vocabulary = root.at("vocabulary").integer(1, kMostVocabulary);
  const double count = root.at("count").at_least(0);
  if (count > kMostTokens || count != static_cast<double>(static_cast<std::int64_t>(count)))
    throw InputError(root.at("count").where(), "must be a whole number of tokens");
  index.count = static_cast<std::int64_t>(count);
  index.token_bytes = root.at("dtype").choice({"uint16", "uint32"}) == 0 ? 2 : 4;
  index.tokenizer = root.text_or("tokenizer", "unknown");
  if (const auto merges = root.find("merges")) index.merges = merges_from(*merges);
  if (index.tokenizer == "bpe" || index.tokenizer == "bytes") {
    const std::size_t known = 256 + index.merges.size();
    if (known != static_cast<std::size_t>(index.vocabulary))
      throw InputError(root.at("vocabulary").where(),
                       fmt::format("is {}, but 256 bytes and {} merges make {}", index.vocabulary,
                                   index.merges.size(), known));
  }
  return index;
}

void write_token_file(const std::string& path, const std::vector<std::int32_t>& tokens,
                      const Tokenizer& tokenizer) {
  const std::string index = index_path(path);
  if (index == path) throw InputError(path, "must not end in .json: that is the name of its index");
  const bool narrow = tokenizer.vocabulary() <= 65536;
  std::string bytes(tokens.size() * (narrow ? 2 : 4), '\0');
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto wide = static_cast<std::uint32_t>(tokens[i]);
    const auto half = static_cast<std::uint16_t>(wide);
    if (narrow)
      std::memcpy(bytes.data() + 2 * i, &half, 2);
    else
      std::memcpy(bytes.data() + 4 * i, &wide, 4);
  }
  write_text_file(path, bytes);
  JsonObject object;
  object.text("format", "plait-tokens")
      .number("vocabulary", tokenizer.vocabulary())
      .number("count", static_cast<double>(tokens.size()))
      .text("dtype", narrow ? "uint16" : "uint32")
      .text("tokenizer", tokenizer.merges().empty() ? "bytes" : "bpe");
  if (!tokenizer.merges().empty()) {
    std::vector<std::string> merges;
    for (const auto& [left, right] : tokenizer.merges()) {
      merges.push_back(std::to_string(left));
      merges.push_back(std::to_string(right));
    }
    object.json("merges", json_list(merges));
  }
  write_text_file(index, lay_out_json(object.str()));
}

std::int64_t sample_begin(std::int64_t count, std::int64_t length, std::uint64_t seed,
                          std::int64_t step, std::int64_t sample) {
  PLAIT_CHECK(length >= 1 && count >= length);
  const std::uint64_t drawn = mixed(mixed(mixed(seed) + static_cast<std::uint64_t>(step)) +
                                    static_cast<std::uint64_t>(sample));
  return static_cast<std::int64_t>(drawn % static_cast<std::uint64_t>(count - length + 1));
}

TokenFile::TokenFile(const std::string& path)
    : path_(path),
      index_([&path] {
        const std::string index = index_path(path);
        std::error_code fault;
        if (std::filesystem::status(index, fault).type() == std::filesystem::file_type::not_found)
          throw InputError(path,
                           fmt::format("has no index {}: write {{\"format\": \"plait-tokens\", "
                                       "\"vocabulary\": ..., \"count\": ..., \"dtype\": "
                                       "\"uint16\"}}, or make both with plait tokenize",
                                       index));
        return read_token_index(index);
      }()),
      file_(path) {
  const std::int64_t bytes = file_.size();
  if (bytes != index_.count * index_.token_bytes)
    throw InputError(path, fmt::format("has {} bytes, but {} says {} tokens of {} bytes", bytes,
                                       index_path(path), index_.count, index_.token_bytes));
}

void TokenFile::read(std::int64_t begin, std::span<std::int64_t> into) const {
  PLAIT_CHECK(begin >= 0 && begin + static_cast<std::int64_t>(into.size()) <= count());
  const auto width = static_cast<std::size_t>(index_.token_bytes);
  std::vector<char> bytes(into.size() * width);
  file_.read(begin * index_.token_bytes, bytes);
  const char* from = bytes.data();
  for (std::int64_t& token : into) {
    std::uint32_t value = 0;
    std::memcpy(&value, from, width);
    from += width;
    token = value;
    if (token >= index_.vocabulary)
      throw InputError(path_,
                       fmt::format("token {} is {}, outside the vocabulary of {}",
                                   begin + (&token - into.data()), token, index_.vocabulary));
  }
}

std::vector<std::int64_t> TokenFile::sample(int length, std::uint64_t seed, std::int64_t step,
                                            std::int64_t number) const {
  if (count() < length + 1)
    throw InputError(path_, fmt::format("has {} tokens, too few for sequences of {} and the token "
                                        "after",
                                        count(), length));
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(length) + 1);
  read(sample_begin(count(), length + 1, seed, step, number), tokens);
  return tokens;
}

}  // namespace plait::runtime
