#pragma once

#include <string>
#include <vector>

#include "graph/search/pins.h"

namespace plait {

// What `plait graph analyze --json` prints.
std::string analysis_json(const graph::Analysis& analysis);

// What `plait graph search -o` writes and the runner reads. `names` are the arguments' names by
// leaf, empty for those that the program itself gives.
struct ShardingReport {
  const graph::Analysis& analysis;
  const graph::GraphCosts& costs;
  const graph::ShardingPlan& plan;
  std::string cluster;
  std::vector<std::string> names;
};
std::string sharding_plan_json(const ShardingReport& report);

// The names that the tracer wrote beside a program (FILE.names.json); empty where there are none.
std::vector<std::string> read_argument_names(const std::string& program_path);

// "params/layers/0/wq" of an argument.
std::string argument_path(const ShardingReport& report, int argument);

}  // namespace plait
