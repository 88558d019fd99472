#include "graph/solve/instance.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace plait::solve {

Score score(const Instance& instance, const std::vector<int>& choices) {
  PLAIT_CHECK(choices.size() == instance.nodes.size());
  Score result;
  bool allowed = true;
  const auto add = [&](Amount cost) {
    if (cost >= kForbidden) allowed = false;
    if (allowed) result.cost += cost;
  };
  std::map<std::int64_t, Amount> change;  // of the memory in use, by time
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const Node& node = instance.nodes[i];
    add(node.cost[choices[i]]);
    if (node.begin >= node.end) continue;
    change[node.begin] += node.usage[choices[i]];
    change[node.end] -= node.usage[choices[i]];
  }
  for (const Edge& edge : instance.edges) {
    const std::size_t columns = instance.nodes[edge.second].cost.size();
    add(edge.cost[choices[edge.first] * columns + choices[edge.second]]);
  }
  Amount now = 0;
  for (const auto& [time, amount] : change) {
    now += amount;
    result.peak = std::max(result.peak, now);
  }
  result.fits = result.peak <= instance.usage_limit;
  if (!allowed) result.cost = kForbidden;
  return result;
}

}  // namespace plait::solve
