#pragma once

#include <string>
#include <vector>

#include "app/graph/source.h"

namespace plait {

// Cost every combination of strategies of some blocks, the other blocks keeping their best.
struct GraphEnumerateRequest {
  GraphSource source;       // with a mesh
  std::vector<int> blocks;  // to vary; empty = those of the first segment
};

struct GraphEnumerateAnswer {
  std::string table;  // CSV, one line for each combination
};

GraphEnumerateAnswer answer(const GraphEnumerateRequest& request, const Session& session);
std::string to_csv(const GraphEnumerateAnswer& answer);

}  // namespace plait
