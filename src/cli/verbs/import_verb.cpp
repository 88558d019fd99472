#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "app/measured/import.h"
#include "base/printable.h"
#include "cli/flags/configured_flags.h"
#include "cli/terminal/terminal.h"
#include "cli/verbs/console_session.h"
#include "io/format/text_file.h"
#include "io/model/zoo.h"

namespace plait {
namespace {

struct ImportArguments {
  ImportRequest request;
  ConfiguredArguments configured;
  std::string output;
};

// What a ds_config.json may leave to the program that starts DeepSpeed.
std::vector<Flag> left_open_flags(ConfiguredArguments& arguments) {
  std::vector<Flag> flags;
  for (FlagGroup& group : only_flags(
           {{"", configured_flags(arguments)}},
           {"--global-batch", "--micro-batch", "--micro-batches", "--precision", "--recompute"}))
    for (Flag& flag : group.flags) {
      flag.help = "deepspeed: where the file has \"auto\"; " + flag.help;
      flags.push_back(std::move(flag));
    }
  for (FlagGroup& group : only_flags({{"", configured_flags(arguments)}}, {"--lora", "--qlora"}))
    for (Flag& flag : group.flags) {
      flag.help = "deepspeed, fsdp: " + flag.help;
      flags.push_back(std::move(flag));
    }
  return flags;
}

int import(const ImportArguments& arguments) {
  ImportRequest request = arguments.request;
  request.configured = configured_request("", "", arguments.configured);
  const ImportAnswer imported = answer_here(request, false);
  if (arguments.output.empty()) {
    print(to_json(imported));
    return kDone;
  }
  write_text_file(arguments.output, to_json(imported));
  print(fmt::format("{}: {}\n", printable(arguments.output), in_words(imported)));
  return kDone;
}

}  // namespace

Command import_command() {
  const auto arguments = std::make_shared<ImportArguments>();
  Command command;
  command.groups = {
      {"Arguments",
       {{.name = "PATH",
         .value = "PATH",
         .help = "a directory, a file, or the beginning of the files' names: DIR/gpt2",
         .set = into_text(arguments->request.path),
         .required = true}}},
      {"Flags",
       {{.name = "--from",
         .value = "S",
         .help =
             fmt::format("{}; by default the files' names tell", fmt::join(import_forms(), ", ")),
         .set = into_text(arguments->request.from),
         .choices = import_forms()},
        {.name = "--model",
         .value = "M",
         .help =
             "the model that was measured, as plait plan takes it; aceso-plan: what to make a plan "
             "of; not for nccl-tests",
         .set = into_text(arguments->request.model),
         .choices = zoo_names()},
        {.name = "--seq",
         .value = "N",
         .help = "tokens in a sample; the model's own by default",
         .set = into_tokens(arguments->request.sequence, 1, kMaxSequence)},
        {.name = "--database",
         .value = "DIR",
         .help = "aceso-plan: the directory with Aceso's tables of ops",
         .set = into_text(arguments->request.database)},
        {.name = "--cluster",
         .value = "C",
         .help = "aceso-plan, megatron, deepspeed: what the plan is for, as plait plan takes it",
         .set = into_text(arguments->request.cluster)},
        {.name = "--device",
         .value = "TYPE",
         .help =
             "megatron, deepspeed: the device type of all hosts, where the cluster is a hostfile",
         .set = into_text(arguments->request.device)},
        {.name = "--output",
         .value = "FILE",
         .help = "where to write the profile or plan; stdout by default",
         .set = into_text(arguments->output),
         .letter = "-o"}}}};
  for (Flag& flag : left_open_flags(arguments->configured))
    command.groups.back().flags.push_back(std::move(flag));
  command.run = [arguments] { return import(*arguments); };
  return command;
}

}  // namespace plait
