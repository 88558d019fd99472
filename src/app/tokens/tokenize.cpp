#include "app/tokens/tokenize.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "app/request/output_file.h"
#include "app/request/request_error.h"
#include "base/printable.h"
#include "io/format/json_writer.h"
#include "report/quantities.h"
#include "runtime/state/token_file.h"

namespace plait {
namespace {

using runtime::Tokenizer;

constexpr std::int64_t kMostText = std::int64_t{4} << 30;
constexpr std::size_t kMostLearned = std::size_t{64} << 20;

Tokenizer tokenizer_of(const std::string& index_file) {
  const runtime::TokenIndex index = runtime::read_token_index(index_file);
  if (index.tokenizer != "bytes" && index.tokenizer != "bpe")
    throw InputError(index_file, fmt::format("its tokenizer '{}' is not plait's: only bytes and "
                                             "bpe can be used here",
                                             index.tokenizer));
  return Tokenizer(index.merges);
}

// What is written would take the place of what is read.
void spare_input(const std::vector<std::string>& read, const std::vector<std::string>& written) {
  for (const std::string& path : written)
    for (const std::string& input : read) {
      std::error_code fault;
      if (!input.empty() && std::filesystem::equivalent(path, input, fault))
        throw InputError(path, "is read, and would be overwritten; give `output` another name");
    }
}

void check_request(const TokenizeRequest& request) {
  if (request.output.empty())
    throw RequestError("output", "is missing: where to write the tokens, such as tokens.bin");
  if (!request.tokenizer.empty() && request.vocabulary)
    throw RequestError("vocabulary", "goes without `tokenizer`, which has a vocabulary already");
  check_output(request.output);
  spare_input({request.path, request.tokenizer},
              {request.output, runtime::index_path(request.output)});
}

}  // namespace

TokenizeAnswer answer(const TokenizeRequest& request) {
  check_request(request);
  const runtime::RegularFile file(request.path);
  if (file.size() == 0) throw InputError(request.path, "is empty");
  if (file.size() > kMostText)
    throw InputError(request.path,
                     "is over 4 GiB: cut it and tokenize the parts with the same `tokenizer`");
  const std::string content = file.text();
  const std::string_view text = content;
  TokenizeAnswer out{request.output, runtime::index_path(request.output)};
  const int wanted = request.vocabulary.value_or(kLeastVocabulary);
  const Tokenizer tokenizer = request.tokenizer.empty()
                                  ? Tokenizer::trained(text.substr(0, kMostLearned), wanted)
                                  : tokenizer_of(request.tokenizer);
  const std::vector<std::int32_t> tokens = tokenizer.encode(text);
  runtime::write_token_file(request.output, tokens, tokenizer);
  out.count = static_cast<double>(tokens.size());
  out.vocabulary = tokenizer.vocabulary();
  out.wanted_vocabulary = request.tokenizer.empty() ? wanted : out.vocabulary;
  out.bytes_per_token = static_cast<double>(text.size()) / out.count;
  return out;
}

std::string to_json(const TokenizeAnswer& answer) {
  return lay_out_json(JsonObject()
                          .text("tokens", answer.tokens)
                          .text("index", answer.index)
                          .number("count", answer.count)
                          .number("vocabulary", answer.vocabulary)
                          .number("bytes_per_token", answer.bytes_per_token)
                          .str());
}

std::string as_text(const TokenizeAnswer& answer) {
  return fmt::format("{}: {} tokens of a vocabulary of {}, {:.2f} bytes each; its index is {}\n",
                     printable(answer.tokens), grouped(answer.count), grouped(answer.vocabulary),
                     answer.bytes_per_token, printable(answer.index));
}

std::string answer(const DetokenizeRequest& request) {
  spare_input({request.path}, {request.output});
  const runtime::TokenFile file(request.path);
  const Tokenizer tokenizer = tokenizer_of(runtime::index_path(request.path));
  constexpr std::int64_t kPiece = 1 << 20;
  std::string text;
  for (std::int64_t begin = 0; begin < file.count(); begin += kPiece) {
    std::vector<std::int64_t> tokens(
        static_cast<std::size_t>(std::min(kPiece, file.count() - begin)));
    file.read(begin, tokens);
    text += tokenizer.decode(std::vector<std::int32_t>(tokens.begin(), tokens.end()));
  }
  return text;
}

}  // namespace plait
