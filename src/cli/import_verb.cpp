#include <fmt/format.h>

#include <memory>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/printable.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "cost/engine.h"
#include "io/cluster/load_cluster.h"
#include "io/format/json_reader.h"
#include "io/model/load_model.h"
#include "io/model/zoo.h"
#include "io/plan/aceso_plan.h"
#include "io/plan/plan_json.h"
#include "io/profile/import_profile.h"
#include "io/profile/profile_json.h"
#include "plan/check.h"
#include "plan/describe.h"
#include "report/quantities.h"

namespace plait {
namespace {

struct ImportArguments {
  std::string path;
  std::string from;
  std::string model;
  std::optional<int> sequence;
  std::string database;
  std::string cluster;
  std::string output;
};

// A configuration of Aceso's search becomes a plan file, not a profile.
constexpr const char* kAcesoPlan = "aceso-plan";

constexpr int kMaxSequence = 1 << 24;

std::vector<std::string> importer_names() {
  std::vector<std::string> names;
  for (const Importer& importer : importers()) names.emplace_back(importer.name);
  names.emplace_back(kAcesoPlan);
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
  if (units.empty())
    return fmt::format(
        "{} on {}",
        counted(static_cast<int>(profile.collectives.size()), "curve") + " of collectives",
        fmt::join(types, ", "));
  return fmt::format("{} points of compute of {} on {}, {} curves of collectives",
                     profile.compute.size(), fmt::join(units, ", "), fmt::join(types, ", "),
                     profile.collectives.size());
}

int import_aceso_plan(const ImportArguments& arguments) {
  if (arguments.database.empty())
    throw InputError("--database", "is needed: the directory with Aceso's tables of ops");
  if (arguments.cluster.empty())
    throw InputError("--cluster", "is needed: what the plan ran on, for example 1xV100-16GB:4");
  const Cluster cluster = load_cluster(arguments.cluster).cluster;
  const AcesoPlan read = read_aceso_plan(arguments.path, arguments.database, cluster);
  const std::vector<Violation> violations = check_plan(read.problem, read.plan);
  if (!violations.empty())
    throw InputError(arguments.path, violations[0].where + " " + violations[0].what);
  const Estimate estimate = CostEngine(read.problem).simulate(read.plan);
  const std::string text = plan_file_to_json(read.problem, read.plan, estimate);
  if (arguments.output.empty()) {
    print(text);
    return kDone;
  }
  write_text_file(arguments.output, text);
  print(fmt::format("{}: {}, {}\n", printable(arguments.output), describe(read.plan),
                    in_words(estimate.step)));
  return kDone;
}

int import(const ImportArguments& arguments) {
  if (arguments.from == kAcesoPlan) return import_aceso_plan(arguments);
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
  print(fmt::format("{}: {}\n", printable(arguments.output), summary(loaded.profile)));
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
        {.name = "--database",
         .value = "DIR",
         .help = "aceso-plan: the directory with Aceso's tables of ops",
         .set = into_text(arguments->database)},
        {.name = "--cluster",
         .value = "C",
         .help = "aceso-plan: what the plan is for, as plait plan takes it",
         .set = into_text(arguments->cluster)},
        {.name = "--output",
         .value = "FILE",
         .help = "where to write the profile or plan; stdout by default",
         .set = into_text(arguments->output),
         .letter = "-o"}}}};
  command.run = [arguments] { return import(*arguments); };
  return command;
}

}  // namespace plait
