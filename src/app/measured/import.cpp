#include "app/measured/import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "app/request/request_error.h"
#include "cost/engine.h"
#include "io/cluster/catalogue.h"
#include "io/cluster/load_cluster.h"
#include "io/model/load_model.h"
#include "io/plan/aceso_onto_model.h"
#include "io/plan/aceso_plan.h"
#include "io/profile/import_profile.h"
#include "io/profile/profile_json.h"
#include "plan/check.h"
#include "plan/describe.h"
#include "report/quantities.h"

namespace plait {
namespace {

// A configuration of Aceso's search becomes a plan file, not a profile.
constexpr const char* kAcesoPlan = "aceso-plan";

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

// What it costs that cuts inside attention are moved.
std::string price_of_moves(const AcesoPlan& read, const MappedAcesoPlan& mapped) {
  const CostEngine engine(read.problem);
  const Estimate before = engine.simulate(read.plan);
  const Estimate after = engine.simulate(mapped.moved);
  std::string text = fmt::format("{}: a step of Aceso's ops takes {} instead of {} ({:+.1f} %)",
                                 fmt::join(mapped.moves, "; "), in_words(after.step),
                                 in_words(before.step), 100 * (after.step / before.step - 1));
  if (before.fits && !after.fits) text += ", and no longer fits";
  return text;
}

// The plan of a configuration on a model of plait's own, which can be trained.
PlanFile onto_model(const ImportRequest& request, const AcesoPlan& read,
                    std::vector<std::string>& warnings) {
  LoadedModel loaded = load_model(request.model, request.sequence);
  warnings = std::move(loaded.warnings);
  PlanFile file;
  file.problem.model = at_op_granularity(loaded.model);
  file.problem.cluster = read.problem.cluster;
  file.problem.job = read.problem.job;
  MappedAcesoPlan mapped = map_aceso_plan(read, file.problem.model, request.path);
  file.plan = std::move(mapped.plan);
  if (!mapped.moves.empty()) warnings.push_back(price_of_moves(read, mapped));
  if (mapped.mixed > 0)
    warnings.push_back(
        fmt::format("{} inside ops of the model run otherwise than the first of "
                    "their op, as which all of it is run",
                    counted(mapped.mixed, "op") + " of Aceso's"));
  file.problem.job.framework = find_framework(builtin_catalogue(), "plait", "catalogue");
  if (file.problem.job.precision == Precision::fp16) {
    file.problem.job.precision = Precision::bf16;
    warnings.emplace_back("fp16, in which plait train does not run, is taken as bf16");
  }
  return file;
}

ImportedPlan import_aceso_plan(const ImportRequest& request, std::vector<std::string>& warnings) {
  if (request.database.empty())
    throw RequestError("database", "is needed: the directory with Aceso's tables of ops");
  if (request.cluster.empty())
    throw RequestError("cluster", "is needed: what the plan ran on, for example 1xV100-16GB:4");
  const Cluster cluster = load_cluster(request.cluster).cluster;
  AcesoPlan read = read_aceso_plan(request.path, request.database, cluster);
  PlanFile file = request.model.empty() ? PlanFile{read.problem, read.plan}
                                        : onto_model(request, read, warnings);
  const std::vector<Violation> faults = check_plan(file.problem, file.plan);
  if (!faults.empty()) throw InputError(request.path, faults[0].where + " " + faults[0].what);
  Estimate cost = CostEngine(file.problem).simulate(file.plan);
  return {std::move(file), std::move(cost)};
}

// A launch script or a ds_config.json becomes a plan file.
void import_configuration(const ImportRequest& request, const Session& session, ImportAnswer& out) {
  ConfiguredRequest configured = request.configured;
  configured.from = request.from;
  configured.path = request.path;
  configured.source.model = request.model;
  configured.source.cluster = request.cluster;
  configured.source.device = request.device;
  configured.source.sequence = request.sequence;
  Configured read = load_configured(configured);
  session.warn(read.warnings);
  out.warnings = std::move(read.warnings);
  Estimate cost = CostEngine(read.file.problem).simulate(read.file.plan);
  out.plan = {std::move(read.file), std::move(cost)};
}

}  // namespace

std::vector<std::string> import_forms() {
  std::vector<std::string> names;
  for (const Importer& importer : importers()) names.emplace_back(importer.name);
  names.emplace_back(kAcesoPlan);
  for (const std::string_view form : configuration_forms()) names.emplace_back(form);
  return names;
}

ImportAnswer answer(const ImportRequest& request, const Session& session) {
  ImportAnswer out;
  const bool configuration =
      std::ranges::find(configuration_forms(), request.from) != configuration_forms().end();
  const std::string_view told = first_told(request.configured);
  if (!configuration && !told.empty()) throw RequestError(told, "goes with `from` deepspeed");
  if (request.from == kAcesoPlan) {
    out.plan = import_aceso_plan(request, out.warnings);
    session.warn(out.warnings);
    return out;
  }
  if (configuration) {
    import_configuration(request, session, out);
    return out;
  }
  LoadedModel model;
  if (!request.model.empty()) model = load_model(request.model, request.sequence);
  session.warn(model.warnings);
  LoadedProfile loaded = import_profile(request.from, request.path, model.model);
  session.warn(loaded.warnings);
  out.profile = std::move(loaded.profile);
  out.warnings = std::move(model.warnings);
  out.warnings.insert(out.warnings.end(), loaded.warnings.begin(), loaded.warnings.end());
  return out;
}

std::string to_json(const ImportAnswer& answer) {
  if (!answer.plan) return profile_file_to_json(*answer.profile);
  const auto& [file, cost] = *answer.plan;
  return plan_file_to_json(file.problem, file.plan, cost);
}

std::string in_words(const ImportAnswer& answer) {
  if (!answer.plan) return summary(*answer.profile);
  return fmt::format("{}, {}", describe(answer.plan->file.plan), in_words(answer.plan->cost.step));
}

}  // namespace plait
