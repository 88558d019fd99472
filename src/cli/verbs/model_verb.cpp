#include <memory>

#include "app/known/model.h"
#include "cli/flags/command.h"
#include "cli/terminal/terminal.h"
#include "io/model/zoo.h"

namespace plait {
namespace {

struct ModelArguments {
  ModelRequest request;
  bool json = false;
};

int describe_model(const ModelArguments& arguments) {
  const LoadedModel loaded = answer(arguments.request);
  if (!arguments.json)
    for (const std::string& warning : loaded.warnings) warn(warning);
  print(arguments.json ? to_json(loaded) : as_text(loaded, style_of(stdout)));
  return kDone;
}

}  // namespace

Command model_command() {
  const auto arguments = std::make_shared<ModelArguments>();
  Command command;
  command.groups = {
      {"Arguments",
       {{.name = "MODEL",
         .value = "MODEL",
         .help = "a name from plait models, a Hugging Face config.json, a plait model file, or a "
                 "file with Megatron-LM flags",
         .set = into_text(arguments->request.model),
         .choices = zoo_names(),
         .required = true}}},
      {"Flags",
       {{.name = "--seq",
         .value = "N",
         .help = "tokens in a sample; the model's own by default",
         .set = into_tokens(arguments->request.sequence, 1, 1 << 24),
         .hidden = {"--seq-length", "--sequence-length"}},
        {.name = "--json",
         .value = "",
         .help = "print JSON",
         .set = into_switch(arguments->json)}}}};
  command.run = [arguments] { return describe_model(*arguments); };
  return command;
}

}  // namespace plait
