#include "io/profile/import_profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/version.h"
#include "io/cluster/catalogue.h"
#include "io/format/embedded.h"
#include "io/format/json_reader.h"
#include "io/profile/profile_json.h"

namespace plait {
namespace {

bool is_native(const ProfilePath& files) {
  if (files.names.size() != 1 || !files.names[0].ends_with(".json")) return false;
  const JsonValue root = read_json_file(files.path(files.names[0]));
  return root.is_object() && root.find("plait_profile");
}

const Importer& importer_for(const std::string& from, const std::string& path,
                             const ProfilePath& files) {
  std::vector<std::string_view> names;
  std::vector<std::string_view> forms{"a plait profile file"};
  for (const Importer& importer : importers()) {
    if (from == importer.name || (from.empty() && importer.recognises(files))) return importer;
    names.push_back(importer.name);
    forms.push_back(importer.what);
  }
  if (!from.empty())
    throw InputError("--from", fmt::format("must be one of {}, is '{}'{}", fmt::join(names, ", "),
                                           from.substr(0, 40), suggestion(from, names)));
  throw InputError(path, fmt::format("is not one of: {}", fmt::join(forms, "; ")));
}

// "A100-80GB" -> "a100"
std::string family(const std::string& name) { return plain_name(name.substr(0, name.find('-'))); }

std::set<std::string> device_types_of(const Profile& profile) {
  std::set<std::string> names;
  for (const auto& [key, sample] : profile.compute) names.insert(key.device_type);
  for (const auto& [key, curve] : profile.collectives) names.insert(key.device_type);
  for (const StepExtra& extra : profile.extras) names.insert(extra.device_type);
  for (const auto& [key, sample] : profile.ops) names.insert(key.device_type);
  return names;
}

// The same measurements under the cluster's names of the device types.
void name_as_cluster(LoadedProfile& loaded, const Cluster& cluster) {
  const std::set<std::string> measured = device_types_of(loaded.profile);
  Profile named;
  named.provenance = loaded.profile.provenance;
  for (const DeviceType& type : cluster.device_types) {
    const std::string name = measured_name(measured, type.name);
    if (name.empty()) {
      loaded.warnings.push_back(
          fmt::format("{} was not measured (the profile has {}): it is predicted by the analytic "
                      "model",
                      type.name, fmt::join(measured, ", ")));
      continue;
    }
    const auto copy = [&](const auto& from, auto& into) {
      for (const auto& [key, value] : from) {
        if (key.device_type != name) continue;
        auto renamed = key;
        renamed.device_type = type.name;
        into.emplace(renamed, value);
      }
    };
    copy(loaded.profile.compute, named.compute);
    copy(loaded.profile.collectives, named.collectives);
    copy(loaded.profile.ops, named.ops);
    for (StepExtra extra : loaded.profile.extras)
      if (extra.device_type == name) {
        extra.device_type = type.name;
        named.extras.push_back(extra);
      }
  }
  loaded.profile = std::move(named);
}

// Refuses a profile that says nothing about the model.
void check_units(const std::string& path, const Profile& profile, const Model& model) {
  std::set<std::string> measured;
  for (const auto& [key, sample] : profile.compute) measured.insert(key.unit);
  if (measured.empty() || !profile.ops.empty()) return;
  std::set<std::string> own;
  for (const LayerKind& kind : model.kinds) own.insert(kind.name);
  const bool any =
      std::ranges::any_of(measured, [&](const auto& unit) { return own.contains(unit); });
  if (any) return;
  throw InputError(
      path, fmt::format("measures none of the units of {}: it has {}; the model has {}", model.name,
                        fmt::join(measured, ", "), fmt::join(own, ", ")));
}

// Sums and conversions of values that are each within the range may leave it. What is imported must
// be a profile that plait reads again.
void check_readable(const std::string& path, const Profile& profile) {
  try {
    parse_profile(path, profile_file_to_json(profile));
  } catch (const InputError& error) {
    throw InputError(path, std::string("has values that no measurement gives: ") + error.what());
  }
}

}  // namespace

std::string measured_name(const std::set<std::string>& measured, const std::string& type) {
  if (measured.contains(type)) return type;
  for (const std::string& name : measured)
    if (plain_name(name) == plain_name(type)) return name;
  for (const std::string& name : measured)
    if (name.find('-') == name.npos && plain_name(name) == family(type)) return name;
  return "";
}

std::span<const Importer> importers() {
  static const std::array kImporters{kMetisImporter, kAcesoImporter, kAmpImporter, kFasopImporter,
                                     kNcclTestsImporter};
  return kImporters;
}

LoadedProfile import_profile(const std::string& from, const std::string& path, const Model& model) {
  const ProfilePath files = find_profile_files(path);
  const Importer& importer = importer_for(from, path, files);
  if (importer.needs_model && model.units.empty())
    throw InputError("--model", fmt::format("is needed to read what {} measured", importer.name));
  LoadedProfile loaded = importer.read(files, model);
  loaded.profile.provenance.source = importer.name;
  loaded.profile.provenance.command = fmt::format("plait import --from {} {}", importer.name, path);
  loaded.profile.provenance.versions["plait"] = version();
  loaded.profile.provenance.notes = loaded.warnings;
  check_readable(path, loaded.profile);
  return loaded;
}

std::optional<Profile> shipped_profile(const std::string& name) {
  std::error_code fault;
  if (std::filesystem::exists(name, fault)) return std::nullopt;
  const std::string_view text = embedded_file(name + ".json");
  if (text.find("\"plait_profile\"") == text.npos) return std::nullopt;
  return parse_profile(name, text);
}

void check_profile_path(const std::string& path) {
  if (shipped_profile(path)) return;
  const ProfilePath files = find_profile_files(path);
  if (is_native(files))
    read_profile_file(files.path(files.names[0]));
  else
    importer_for("", path, files);
}

LoadedProfile load_profile(const std::string& path, const Model& model, const Cluster& cluster) {
  LoadedProfile loaded;
  const bool inlined = is_json_text(path);
  if (inlined) {
    loaded.profile = read_profile_file(path);
  } else if (std::optional<Profile> shipped = shipped_profile(path)) {
    loaded.profile = std::move(*shipped);
  } else if (const ProfilePath files = find_profile_files(path); is_native(files)) {
    loaded.profile = read_profile_file(files.path(files.names[0]));
  } else {
    loaded = import_profile("", path, model);
  }
  check_units(inlined ? "profile" : path, loaded.profile, model);
  name_as_cluster(loaded, cluster);
  return loaded;
}

}  // namespace plait
