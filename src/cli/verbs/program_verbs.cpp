#include <fmt/format.h>

#include <memory>

#include "base/error.h"
#include "base/version.h"
#include "cli/flags/command.h"
#include "cli/terminal/terminal.h"
#include "io/format/json_reader.h"
#include "runtime/backend.h"

namespace plait {
namespace {

std::vector<std::string> verb_names() {
  std::vector<std::string> names;
  for (const Verb& verb : verbs()) names.emplace_back(verb.name);
  return names;
}

int show_help(const std::string& name) {
  if (name.empty()) {
    print(program_help());
    return kDone;
  }
  for (const Verb& verb : verbs())
    if (verb.name == name) {
      print(verb_help(verb));
      return kDone;
    }
  const std::vector<std::string> names = verb_names();
  throw InputError(name, "is not a verb" + suggestion(name, {names.begin(), names.end()}) +
                             "; plait help lists them");
}

}  // namespace

Command version_command() {
  Command command;
  command.run = [] {
    const runtime::Backend* backend = runtime::backend();
    print(fmt::format("plait {}{}\n", version(), backend ? " with " + backend->torch_build() : ""));
    return kDone;
  };
  return command;
}

Command help_command() {
  const auto verb = std::make_shared<std::string>();
  Command command;
  command.groups = {{"Arguments",
                     {{.name = "VERB",
                       .value = "VERB",
                       .help = "the verb to explain; all of them in a line each by default",
                       .set = into_text(*verb),
                       .choices = verb_names()}}}};
  command.run = [verb] { return show_help(*verb); };
  return command;
}

}  // namespace plait
