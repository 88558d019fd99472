#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/cluster.h"
#include "io/profile/profile_path.h"
#include "model/model.h"
#include "profile/profile.h"

namespace plait {

struct LoadedProfile {
  Profile profile;
  std::vector<std::string> warnings;  // what was assumed, one sentence each
};

// Reads what another system measured, as measurements of `model`'s kinds.
struct Importer {
  std::string_view name;  // "metis"
  std::string_view what;  // "Metis' DeviceType.X_tpT_bsB.json"
  bool (*recognises)(const ProfilePath& files);
  LoadedProfile (*read)(const ProfilePath& files, const Model& model);
  bool needs_model = true;
};

// The one table of importers. To add one: write a file, add a row.
std::span<const Importer> importers();

// `from` is an importer's name, or "" to judge by the files' names. InputError says which forms are
// known when none applies.
LoadedProfile import_profile(const std::string& from, const std::string& path, const Model& model);

// A profile of data/profiles/, which are compiled in, by its file's name without ".json": "h200". A
// file of that name wins.
std::optional<Profile> shipped_profile(const std::string& name);

// What `--profile` takes: the name of a shipped one, a native file, or whatever an importer
// recognises. Device types get the
// cluster's names ("A100" of the profile is "A100-80GB" of the cluster when nothing is nearer), and
// a warning for each that was not measured. InputError when no unit of the model was measured, with
// both lists of names.
LoadedProfile load_profile(const std::string& path, const Model& model, const Cluster& cluster);

// The profile's name for a device type of the cluster: the same, or the family's when the profile
// has exactly one of that family and does not tell sizes apart. "" = not measured.
std::string measured_name(const std::set<std::string>& measured, const std::string& type);

// InputError when load_profile() could not read it whatever the model is.
void check_profile_path(const std::string& path);

// The importers, each in the file of its name.
extern const Importer kMetisImporter;
extern const Importer kAcesoImporter;
extern const Importer kAmpImporter;
extern const Importer kFasopImporter;
extern const Importer kNcclTestsImporter;

}  // namespace plait
