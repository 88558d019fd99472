#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/graph/source.h"
#include "report/table.h"

namespace plait {

// Find the best way to divide a program over devices.
struct GraphSearchRequest {
  GraphSource source;
  std::optional<int> random;  // not the best plan but some legal one, the same for the same seed
  Seconds limit{60};
};

struct GraphSearchAnswer {
  graph::Analysis analysis;
  graph::GraphCosts costs;  // on the plan's mesh
  std::optional<graph::ShardingPlan> plan;
  std::string reason;        // why there is no plan
  bool interrupted = false;  // stopped on request
  bool cut_short = false;    // so, or by the limit: the plan is the best so far
  std::string cluster;
  std::vector<std::string> argument_names;
};

GraphSearchAnswer answer(const GraphSearchRequest& request, const Session& session);

// Of an answer that has a plan: what the runner reads, the words for people, and the program with
// its shardings.
std::string to_json(const GraphSearchAnswer& answer);
std::string as_text(const GraphSearchAnswer& answer, const Style& style);
std::string annotated_program(const GraphSearchAnswer& answer);

}  // namespace plait
