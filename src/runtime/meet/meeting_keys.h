#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plait::runtime {

// The keys and values of a meeting, and the answers to the requests of wire.h that do not wait.
class MeetingKeys {
 public:
  // Framed; nothing when the request is not one.
  std::optional<std::string> answer(std::string_view request);
  bool has_all(const std::vector<std::string>& keys) const;

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace plait::runtime
