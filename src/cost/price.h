#pragma once

#include <string>

#include "base/units.h"
#include "cluster/cluster.h"
#include "plan/plan.h"
#include "plan/problem.h"

namespace plait {

// Price of the nodes that the plan uses, whole nodes; 0 when a price is unknown.
UsdPerSecond price_of(const Cluster& cluster, const Plan& plan);

// "" or the name of the first node without a price.
std::string unpriced_node(const Cluster& cluster);

// How long a training is. `goodput` is the part of its time that is spent in steps that count; the
// rest goes to checkpoints, restarts and work that is done twice.
struct TrainingLength {
  double steps = 0;
  double goodput = 1;
};

// A whole training: so many equal steps, at the rent of the nodes in use.
struct Training {
  double steps = 0;
  double goodput = 1;
  Seconds time;  // steps x step / goodput
  Usd price;     // 0 when a price is unknown
};
Training training_of(const TrainingLength& length, Seconds step, UsdPerSecond rent);

// Steps that see at least so many tokens (samples, where a sample is one token): the next whole
// number. 1e9 tokens in steps of 64 samples of 1,024 tokens are 15,259 steps.
double steps_for_tokens(const Problem& problem, double tokens);

}  // namespace plait
