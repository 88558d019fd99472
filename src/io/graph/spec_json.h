#pragma once

#include <string>
#include <vector>

#include "graph/search/pins.h"
#include "io/format/json_writer.h"

namespace plait {

template <typename Items, typename Make>
std::string list_of(const Items& items, const Make& make) {
  std::vector<std::string> made;
  for (const auto& item : items) made.push_back(make(item));
  return json_list(made);
}

std::string numbers_json(const std::vector<std::int64_t>& all);

// [["x"], [], ["y", "z"]]: the axes of each dimension.
std::string spec_json(const graph::Placement& placement, std::size_t rank);

// How the runner is told where a value is kept, and on which way an operand gets where it is
// wanted.
std::string value_json(const graph::Analysis& analysis, const graph::PinnedValue& pin);
std::string use_json(const graph::Analysis& analysis, const graph::PinnedUse& pin);

}  // namespace plait
