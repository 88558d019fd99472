#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/version.h"
#include "cli/flags/command.h"
#include "cli/terminal/terminal.h"
#include "io/format/json_reader.h"
#include "io/format/json_writer.h"
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

// The parts of "0.1.0+3f2a91c-changed".
std::string version_json(const std::string& torch) {
  const std::string_view all = version();
  const std::size_t plus = std::min(all.find('+'), all.size());
  std::string_view commit = all.substr(std::min(plus + 1, all.size()));
  const bool changed = commit.ends_with("-changed");
  if (changed) commit.remove_suffix(std::string_view("-changed").size());
  const auto text_or_null = [](std::string_view text) {
    return text.empty() ? "null" : json_text(std::string(text));
  };
  return lay_out_json(JsonObject()
                          .text("program", "plait")
                          .text("version", std::string(all.substr(0, plus)))
                          .json("commit", text_or_null(commit))
                          .boolean("changed", changed)
                          .json("torch", text_or_null(torch))
                          .str());
}

}  // namespace

Command version_command() {
  const auto json = std::make_shared<bool>(false);
  Command command;
  command.groups = {
      {"Flags",
       {{.name = "--json", .value = "", .help = "print JSON", .set = into_switch(*json)}}}};
  command.run = [json] {
    const runtime::Backend* backend = runtime::backend();
    const std::string torch = backend ? backend->torch_build() : "";
    print(*json ? version_json(torch)
                : fmt::format("plait {}{}\n", version(), backend ? " with " + torch : ""));
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
