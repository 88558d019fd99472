#include <array>
#include <map>

#include "io/profile/import_amp.h"

namespace plait {
namespace {

// The two device types that FASOP's code knows.
constexpr std::array kFasopDevices{ListedDevice{"A100", "A100"}, ListedDevice{"A10", "A10"}};

// Embedding, layers, post-processing. T5's lists have no head: map_lists() knows that form.
constexpr ListLayout kFasopLists{.before = 1, .after = 1};

bool recognises_fasop(const ProfilePath& files) { return has_listed_devices(files, kFasopDevices); }

// FASOP calls its A10 nodes g5.24xlarge, whose devices are A10G.
LoadedProfile read_fasop(const ProfilePath& files, const Model& model) {
  LoadedProfile loaded = read_forward_lists(files, model, kFasopDevices, kFasopLists);
  std::map<ComputeKey, ComputeSample> renamed;
  for (const auto& [key, sample] : loaded.profile.compute) {
    ComputeKey other = key;
    other.device_type = "A10G";
    if (key.device_type == "A10") renamed.emplace(other, sample);
  }
  loaded.profile.compute.merge(renamed);
  return loaded;
}

}  // namespace

const Importer kFasopImporter{"fasop", "FASOP's MODEL_A100_TP.npy and MODEL_A10_TP.npy",
                              recognises_fasop, read_fasop};

}  // namespace plait
