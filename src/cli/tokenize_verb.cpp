#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "cli/plan_arguments.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "io/format/json_reader.h"
#include "io/format/json_writer.h"
#include "report/quantities.h"
#include "runtime/state/token_file.h"

namespace plait {
namespace {

using runtime::Tokenizer;

constexpr int kLeastVocabulary = 256;
constexpr int kMostVocabulary = 131072;
constexpr std::size_t kMostText = std::size_t{4} << 30;
constexpr std::size_t kMostLearned = std::size_t{64} << 20;

struct TokenizeArguments {
  std::string path;
  std::string output;
  std::optional<int> vocabulary;
  std::string tokenizer;
  bool decode = false;
  bool json = false;
};

Tokenizer tokenizer_of(const std::string& index_file) {
  const runtime::TokenIndex index = runtime::read_token_index(index_file);
  if (index.tokenizer != "bytes" && index.tokenizer != "bpe")
    throw InputError(index_file, fmt::format("its tokenizer '{}' is not plait's: only bytes and "
                                             "bpe can be used here",
                                             index.tokenizer));
  return Tokenizer(index.merges);
}

// What is written would take the place of what is read.
void spare_input(const TokenizeArguments& arguments, const std::vector<std::string>& written) {
  for (const std::string& path : written)
    for (const std::string& input : {arguments.path, arguments.tokenizer}) {
      std::error_code fault;
      if (!input.empty() && std::filesystem::equivalent(path, input, fault))
        throw InputError(path, "is read, and would be overwritten; give --output another name");
    }
}

int decode(const TokenizeArguments& arguments) {
  spare_input(arguments, {arguments.output});
  const runtime::TokenFile file(arguments.path);
  const Tokenizer tokenizer = tokenizer_of(runtime::index_path(arguments.path));
  constexpr std::int64_t kPiece = 1 << 20;
  std::string text;
  for (std::int64_t begin = 0; begin < file.count(); begin += kPiece) {
    std::vector<std::int64_t> tokens(
        static_cast<std::size_t>(std::min(kPiece, file.count() - begin)));
    file.read(begin, tokens);
    text += tokenizer.decode(std::vector<std::int32_t>(tokens.begin(), tokens.end()));
  }
  if (arguments.output.empty())
    print(text);
  else
    write_text_file(arguments.output, text);
  return kDone;
}

int encode(const TokenizeArguments& arguments) {
  if (arguments.output.empty())
    throw InputError("--output", "is missing: where to write the tokens, such as tokens.bin");
  if (!arguments.tokenizer.empty() && arguments.vocabulary)
    throw InputError("--vocabulary", "goes without --tokenizer, which has a vocabulary already");
  check_output(arguments.output);
  spare_input(arguments, {arguments.output, runtime::index_path(arguments.output)});
  const runtime::MappedFile file(arguments.path);
  const std::string_view text = file.text();
  if (text.empty()) throw InputError(arguments.path, "is empty");
  if (text.size() > kMostText)
    throw InputError(arguments.path,
                     "is over 4 GiB: cut it and tokenize the parts with the same "
                     "--tokenizer");
  const int wished = arguments.vocabulary.value_or(kLeastVocabulary);
  const Tokenizer tokenizer = arguments.tokenizer.empty()
                                  ? Tokenizer::trained(text.substr(0, kMostLearned), wished)
                                  : tokenizer_of(arguments.tokenizer);
  const std::vector<std::int32_t> tokens = tokenizer.encode(text);
  runtime::write_token_file(arguments.output, tokens, tokenizer);
  if (arguments.tokenizer.empty() && tokenizer.vocabulary() < wished)
    warn(fmt::format("the text has pairs for {} tokens only, not for {}", tokenizer.vocabulary(),
                     wished));
  const auto bytes = static_cast<double>(text.size());
  const auto count = static_cast<double>(tokens.size());
  if (arguments.json)
    print(lay_out_json(JsonObject()
                           .text("tokens", arguments.output)
                           .text("index", runtime::index_path(arguments.output))
                           .number("count", count)
                           .number("vocabulary", tokenizer.vocabulary())
                           .number("bytes_per_token", bytes / count)
                           .str()));
  else
    print(fmt::format("{}: {} tokens of a vocabulary of {}, {:.2f} bytes each; its index is {}\n",
                      arguments.output, grouped(count), grouped(tokenizer.vocabulary()),
                      bytes / count, runtime::index_path(arguments.output)));
  return kDone;
}

}  // namespace

Command tokenize_command() {
  const auto arguments = std::make_shared<TokenizeArguments>();
  Command command;
  command.groups = {
      {"Arguments",
       {{.name = "FILE",
         .value = "FILE",
         .help = "a text; with --decode, a token file",
         .set = into_text(arguments->path),
         .required = true}}},
      {"Flags",
       {{.name = "--output",
         .value = "FILE",
         .help = "where to write the tokens; their index goes beside it, with .json at the end",
         .set = into_text(arguments->output),
         .letter = "-o"},
        {.name = "--vocabulary",
         .value = "N",
         .help = "learn byte pairs from the text up to this many tokens (256: plain bytes)",
         .set = into_integer(arguments->vocabulary, kLeastVocabulary, kMostVocabulary),
         .hidden = {"--vocab-size"}},
        {.name = "--tokenizer",
         .value = "INDEX",
         .help = "use the vocabulary of another token file: its .json",
         .set = into_text(arguments->tokenizer)},
        {.name = "--decode",
         .help = "turn a token file back into text",
         .set = into_switch(arguments->decode)},
        {.name = "--json",
         .help = "print the result as JSON",
         .set = into_switch(arguments->json)}}}};
  command.run = [arguments] { return arguments->decode ? decode(*arguments) : encode(*arguments); };
  return command;
}

}  // namespace plait
