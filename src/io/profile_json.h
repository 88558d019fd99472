#pragma once

#include <string>

#include "io/json_reader.h"
#include "profile/profile.h"

namespace plait {

// The native profile file, {"plait_profile": 1, ...}; docs/files-profile.md describes it.
// InputError names file and JSON pointer for whatever is not one: unknown keys, negative times,
// points that are there twice.
Profile read_profile_file(const std::string& path);
// For people to read; read_profile_file() gives the same profile back, every number to its last
// bit.
std::string profile_file_to_json(const Profile& profile);

// The same without the version, as it stands inside a saved plan.
std::string dump_profile(const Profile& profile);
Profile restore_profile(const JsonValue& json);

}  // namespace plait
