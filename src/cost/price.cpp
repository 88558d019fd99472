#include "cost/price.h"

#include <cmath>
#include <set>

namespace plait {

UsdPerSecond price_of(const Cluster& cluster, const Plan& plan) {
  std::set<int> nodes;
  for (const Stage& stage : plan.stages)
    for (const DeviceId id : stage.devices) nodes.insert(cluster.device(id).node);
  UsdPerSecond price;
  for (const int node : nodes) {
    if (!(cluster.nodes[node].price > UsdPerSecond(0))) return {};
    price += cluster.nodes[node].price;
  }
  return price;
}

std::string unpriced_node(const Cluster& cluster) {
  for (const Node& node : cluster.nodes)
    if (!(node.price > UsdPerSecond(0))) return node.name;
  return "";
}

Training training_of(const TrainingLength& length, Seconds step, UsdPerSecond rent) {
  const Seconds time = length.steps * step / length.goodput;
  return {length.steps, length.goodput, time, rent * time};
}

double steps_for_tokens(const Problem& problem, double tokens) {
  return std::ceil(tokens /
                   (static_cast<double>(problem.job.global_batch) * problem.model.sequence_length));
}

}  // namespace plait
