#pragma once

#include <span>
#include <string>
#include <utility>

#include "io/profile/import_profile.h"
#include "io/profile/layer_lists.h"

namespace plait {

// A name that AMP or FASOP gives to a device, and what it is.
struct ListedDevice {
  std::string_view code;  // "G4"
  std::string_view type;  // "T4"
};

// Files {model}_{device}_{tp}.npy, as AMP and FASOP keep them: seconds of the forward pass of each
// layer at micro-batch 1, communication of the tensor group included. Of several models in one
// directory the one whose name the model's begins with is taken; else the path must name it:
// DIR/gpt2.
bool has_listed_devices(const ProfilePath& files, std::span<const ListedDevice> devices);
LoadedProfile read_forward_lists(const ProfilePath& files, const Model& model,
                                 std::span<const ListedDevice> devices, ListLayout layout);

}  // namespace plait
