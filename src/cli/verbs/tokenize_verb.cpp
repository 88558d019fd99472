#include <fmt/format.h>

#include <memory>

#include "app/tokens/tokenize.h"
#include "cli/flags/command.h"
#include "cli/terminal/terminal.h"
#include "io/format/text_file.h"

namespace plait {
namespace {

struct TokenizeArguments {
  TokenizeRequest request;
  bool decode = false;
  bool json = false;
};

int decode(const TokenizeArguments& arguments) {
  const std::string& output = arguments.request.output;
  const std::string text = answer(DetokenizeRequest{arguments.request.path, output});
  if (output.empty())
    print(text);
  else
    write_text_file(output, text);
  return kDone;
}

int encode(const TokenizeArguments& arguments) {
  const TokenizeAnswer made = answer(arguments.request);
  if (made.vocabulary < made.wanted_vocabulary)
    warn(fmt::format("the text has pairs for {} tokens only, not for {}", made.vocabulary,
                     made.wanted_vocabulary));
  print(arguments.json ? to_json(made) : as_text(made));
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
         .set = into_text(arguments->request.path),
         .required = true}}},
      {"Flags",
       {{.name = "--output",
         .value = "FILE",
         .help = "where to write the tokens; their index goes beside it, with .json at the end",
         .set = into_text(arguments->request.output),
         .letter = "-o"},
        {.name = "--vocabulary",
         .value = "N",
         .help = "learn byte pairs from the text up to this many tokens (256: plain bytes)",
         .set = into_integer(arguments->request.vocabulary, kLeastVocabulary, kMostVocabulary),
         .hidden = {"--vocab-size"}},
        {.name = "--tokenizer",
         .value = "INDEX",
         .help = "use the vocabulary of another token file: its .json",
         .set = into_text(arguments->request.tokenizer)},
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
