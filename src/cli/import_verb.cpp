#include <fmt/format.h>

#include <memory>
#include <optional>
#include <set>

#include "cli/terminal.h"
#include "cli/verbs.h"
#include "io/import_profile.h"
#include "io/json_reader.h"
#include "io/model_json.h"
#include "io/profile_json.h"
#include "io/zoo.h"
#include "report/quantities.h"

namespace plait {
namespace {

struct ImportArguments {
  std::string path;
  std::string from;
  std::string model;
  std::optional<int> sequence;
  std::string output;
};

constexpr int kMaxSequence = 1 << 24;

std::vector<std::string> importer_names() {
  std::vector<std::string> names;
  for (const Importer& importer : importers()) names.emplace_back(importer.name);
  return names;
}

// "27 points of compute (3 units, 1 device type), 12 curves of collectives"
std::string summary(const Profile& profile) {
  std::set<std::string> units;
  std::set<std::string> types;
  for (const auto& [key, sample] : profile.compute) {
    units.insert(key.unit);
    types.insert(key.device_type);
  }
  for (const auto& [key, curve] : profile.collectives) types.insert(key.device_type);
  return fmt::format("{} points of compute of {} on {}, {} curves of collectives",
                     profile.compute.size(), fmt::join(units, ", "), fmt::join(types, ", "),
                     profile.collectives.size());
}

int import(const ImportArguments& arguments) {
  LoadedModel model;
  if (!arguments.model.empty()) model = load_model(arguments.model, arguments.sequence);
  for (const std::string& warning : model.warnings) warn(warning);
  const LoadedProfile loaded = import_profile(arguments.from, arguments.path, model.model);
  for (const std::string& warning : loaded.warnings) warn(warning);
  const std::string text = profile_file_to_json(loaded.profile);
  if (arguments.output.empty()) {
    print(text);
    return kDone;
  }
  write_text_file(arguments.output, text);
  print(fmt::format("{}: {}\n", arguments.output, summary(loaded.profile)));
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
         .set = into_text(arguments->path),
         .required = true}}},
      {"Flags",
       {{.name = "--from",
         .value = "S",
         .help =
             fmt::format("{}; by default the files' names tell", fmt::join(importer_names(), ", ")),
         .set = into_text(arguments->from),
         .choices = importer_names()},
        {.name = "--model",
         .value = "M",
         .help = "the model that was measured, as plait plan takes it; not for nccl-tests",
         .set = into_text(arguments->model),
         .choices = zoo_names()},
        {.name = "--seq",
         .value = "N",
         .help = "tokens in a sample; the model's own by default",
         .set = into_integer(arguments->sequence, 1, kMaxSequence)},
        {.name = "--output",
         .value = "FILE",
         .help = "where to write the profile; stdout by default",
         .set = into_text(arguments->output),
         .letter = "-o"}}}};
  command.run = [arguments] { return import(*arguments); };
  return command;
}

}  // namespace plait
