#pragma once

#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "plan/plan.h"
#include "plan/problem.h"

namespace plait {

// A configuration that Aceso's search wrote, and what it is a configuration of.
struct AcesoPlan {
  Problem problem;  // units are Aceso's ops; the profile is its database; framework is `aceso`
  Plan plan;
};

// Reads Aceso's JSON (model_name, model_size, num_layers, global_batch_size, micro_batch_size,
// num_gpus and, for each stage and op, model_parallel_size_of_each_op,
// data_parallel_size_of_each_op, recompute_ops, algo_of_each_op) as a plan on the first devices of
// `cluster`, which are all of one type. `database` is the directory with the tables of ops. Spans
// are the longest runs of ops that agree in all four. InputError names the key that does not fit.
AcesoPlan read_aceso_plan(const std::string& path, const std::string& database,
                          const Cluster& cluster);

}  // namespace plait
