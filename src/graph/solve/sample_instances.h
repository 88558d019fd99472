#pragma once
// Random small instances, and their answers by trying everything. For tests.

#include <random>
#include <vector>

#include "graph/solve/instance.h"
#include "graph/solve/network.h"

namespace plait::solve {

// Up to 7 nodes of up to 4 choices, so that there are at most 16,384 answers. Costs are small, so
// that ties are frequent; forbidden pairs range from none to most; nodes may have links with
// themselves and several links; limits range from hopeless to no limit at all.
inline Instance random_instance(std::mt19937& random) {
  const auto pick = [&](int least, int most) {
    return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
  };
  Instance instance;
  const int nodes = pick(1, 7);
  for (int i = 0; i < nodes; ++i) {
    Node node;
    node.begin = pick(0, 6);
    node.end = node.begin + pick(-1, 5);
    for (int k = pick(1, 4); k > 0; --k) {
      node.cost.push_back(pick(0, 9) == 0 ? kForbidden : pick(0, pick(0, 1) ? 3 : 20));
      node.usage.push_back(pick(0, pick(0, 1) ? 3 : 9));
    }
    instance.nodes.push_back(node);
  }
  const int forbidden = pick(0, 6);  // tenths
  for (int i = pick(0, 2 * nodes); i > 0; --i) {
    Edge edge{pick(0, nodes - 1), pick(0, nodes - 1), {}};
    const std::size_t pairs =
        instance.nodes[edge.first].cost.size() * instance.nodes[edge.second].cost.size();
    while (edge.cost.size() < pairs)
      edge.cost.push_back(pick(0, 9) < forbidden ? kForbidden : pick(0, pick(0, 1) ? 3 : 30));
    instance.edges.push_back(edge);
  }
  instance.usage_limit = pick(0, 6 * nodes);
  return instance;
}

// Calls `body` with every combination of one number below each size.
template <typename Body>
void for_every_combination(const std::vector<int>& sizes, const Body& body) {
  std::vector<int> now(sizes.size(), 0);
  for (;;) {
    body(now);
    std::size_t i = 0;
    while (i < now.size() && ++now[i] == sizes[i]) now[i++] = 0;
    if (i == now.size()) return;
  }
}

// The least cost of a valid answer, kForbidden when there is none.
inline Amount least_cost(const Instance& instance) {
  std::vector<int> sizes;
  for (const Node& node : instance.nodes) sizes.push_back(static_cast<int>(node.cost.size()));
  Amount best = kForbidden;
  for_every_combination(sizes, [&](const std::vector<int>& choices) {
    const Score counted = score(instance, choices);
    if (counted.valid() && counted.cost < best) best = counted.cost;
  });
  return best;
}

// The same for what is left of one. `keep` says which combinations count.
template <typename Keep>
Amount least_cost(const Network& network, const Keep& keep) {
  if (network.impossible) return kForbidden;
  std::vector<int> sizes;
  for (const Variable& x : network.variables) sizes.push_back(x.alive ? x.size() : 1);
  Amount best = kForbidden;
  for_every_combination(sizes, [&](const std::vector<int>& position) {
    if (!keep(position)) return;
    const Position found = evaluate(network, position);
    if (found.fits && found.cost < best) best = found.cost;
  });
  return best;
}
inline Amount least_cost(const Network& network) {
  return least_cost(network, [](const std::vector<int>&) { return true; });
}

}  // namespace plait::solve
