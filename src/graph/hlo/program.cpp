#include "graph/hlo/program.h"

namespace plait::graph {

double Program::trips(int node) const { return trips_of_loop(nodes[node].runs_in); }

double Program::trips_of_loop(int loop) const {
  double product = 1;
  for (; loop >= 0; loop = loops[loop].parent) product *= loops[loop].trips;
  return product;
}

int Program::entered_loop(int value, int node) const {
  const int from = nodes[values[value].node].loop;
  int entered = -1;
  for (int loop = nodes[node].loop; loop >= 0 && loop != from; loop = loops[loop].parent)
    entered = loop;
  return entered;
}

std::vector<std::vector<int>> Program::users() const {
  std::vector<std::vector<int>> all(values.size());
  for (int n = 0; n < static_cast<int>(nodes.size()); ++n)
    for (const int operand : nodes[n].operands)
      if (all[operand].empty() || all[operand].back() != n) all[operand].push_back(n);
  return all;
}

}  // namespace plait::graph
