#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cluster/cluster.h"
#include "io/format/json_reader.h"
#include "profile/profile.h"

namespace plait {

// The native profile file, {"plait_profile": 1, ...}; docs/profiler.md describes it.
// InputError names file and JSON pointer for whatever is not one: unknown keys, negative times,
// points that are there twice.
Profile read_profile_file(const std::string& path);
// The same of a text; `name` stands for the file in messages.
Profile parse_profile(const std::string& name, std::string_view text);
// For people to read; read_profile_file() gives the same profile back, every number to its last
// bit.
std::string profile_file_to_json(const Profile& profile);

// The same without the version, as it stands inside a saved plan.
std::string dump_profile(const Profile& profile);
Profile restore_profile(const JsonValue& json);

// The list that `plait profile --ops` takes.
std::string op_list_json(const std::vector<OpKey>& ops);

// The members of an op that say what it is: "op", "function", "dtype", "rows" and so on, as in the
// profile's "ops" and in the lists that `plait profile --ops` takes. Other members are left alone.
OpKey restore_op_key(const JsonValue& json, const std::string& device_type);

// t(n) = latency + n / bandwidth with the least relative error on a curve; bandwidth 0 when the
// time does not grow. Example: 10 us at 0 B and 110 us at 1 MB give 10 us and 10 GB/s.
Link alpha_beta_fit(const std::vector<CollectivePoint>& curve);

}  // namespace plait
