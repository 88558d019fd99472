#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "app/graph/source.h"

namespace plait {

// Cost every combination of strategies of some blocks, the other blocks keeping their best.
struct GraphEnumerateRequest {
  GraphSource source;       // with a mesh
  std::vector<int> blocks;  // to vary; empty = those of the first segment
  Seconds limit{std::numeric_limits<double>::infinity()};
};

// One combination.
struct GraphCombination {
  std::string strategies;  // "rows over x | columns over x"
  Bytes sent;              // by each device in a step
  Seconds communication;
  Seconds compute;
  Seconds time;
  Bytes peak;
};

struct GraphEnumerateAnswer {
  std::vector<GraphCombination> combinations;
  std::int64_t missing = 0;  // that a stop or the limit left out
};

GraphEnumerateAnswer answer(const GraphEnumerateRequest& request, const Session& session);
std::string to_csv(const GraphEnumerateAnswer& answer);
std::string to_json(const GraphEnumerateAnswer& answer);

}  // namespace plait
