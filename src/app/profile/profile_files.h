#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/profile/write_profiles.h"
#include "profile/profile.h"
#include "report/table.h"
#include "runtime/profiler/profile.h"

namespace plait {

// Join profiles into one; where two have a point, the later one counts.
struct MergeProfilesRequest {
  std::vector<std::string> paths;  // two or more
};
struct MergeProfilesAnswer {
  Profile profile;
};
MergeProfilesAnswer answer(const MergeProfilesRequest& request);
std::string to_json(const MergeProfilesAnswer& answer);  // a profile file
std::string as_text(const MergeProfilesAnswer& answer);  // "12 units, 40 ops, 6 curves"

// Compare two profiles, quantity by quantity.
struct DiffProfilesRequest {
  std::vector<std::string> paths;  // two
};
struct DiffProfilesAnswer {
  std::vector<std::string> paths;
  runtime::ProfileComparison comparison;  // the largest change first
};
DiffProfilesAnswer answer(const DiffProfilesRequest& request);
std::string to_json(const DiffProfilesAnswer& answer);
std::string as_text(const DiffProfilesAnswer& answer, const Style& style);

// The forms that a profile can be written in: plait's own first.
const std::vector<std::string_view>& profile_forms();

// Write a profile as another system's files.
struct ConvertProfileRequest {
  std::string path;
  std::string format;  // profile_forms(), not plait's own
  std::string model;
  std::optional<int> sequence;
  Job job;
};
struct ConvertProfileAnswer {
  TextFiles files;
  std::string format;
};
ConvertProfileAnswer answer(const ConvertProfileRequest& request);
// The same for a profile at hand.
ConvertProfileAnswer converted(const Profile& profile, const Model& model, const Job& job,
                               const std::string& format);
std::string as_text(const ConvertProfileAnswer& answer);  // "3 files as metis names them"

}  // namespace plait
