#pragma once

#include <string>

#include "io/cluster/load_cluster.h"
#include "io/model/load_model.h"
#include "plan/problem.h"

namespace plait {

// A problem as `plait plan` would load it: names of the zoo and of the catalogue.
inline Problem named_problem(const std::string& model, const std::string& cluster, int global_batch,
                             std::optional<int> sequence = std::nullopt) {
  Problem problem;
  problem.model = load_model(model, sequence).model;
  problem.cluster = load_cluster(cluster).cluster;
  problem.job.global_batch = global_batch;
  return problem;
}

}  // namespace plait
