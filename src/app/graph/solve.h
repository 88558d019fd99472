#pragma once

#include <string>

#include "app/request/session.h"
#include "base/units.h"
#include "graph/solve/instance.h"
#include "graph/solve/solve.h"

namespace plait {

// Solve an instance of the sharding contest.
struct GraphSolveRequest {
  std::string path;
  Seconds limit{60};
  int threads = 0;  // 0 = all cores
};

struct GraphSolveAnswer {
  solve::Instance instance;
  solve::Solution solution;
  Seconds elapsed;
  bool interrupted = false;
};

GraphSolveAnswer answer(const GraphSolveRequest& request, const Session& session);
std::string to_json(const GraphSolveAnswer& answer);        // cost, bound, gap and time on one line
std::string solution_file(const GraphSolveAnswer& answer);  // with the choice of each node

}  // namespace plait
