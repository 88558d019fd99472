#include "graph/solve/repair.h"

#include <algorithm>

#include "graph/solve/branch.h"
#include "graph/solve/regions.h"

namespace plait::solve {
namespace {

std::vector<Amount> usage_of(const Network& network, const std::vector<int>& position) {
  std::vector<Amount> usage(network.room.size(), 0);
  for (std::size_t v = 0; v < network.variables.size(); ++v)
    for (const Load& load : network.variables[v].loads)
      for (int r = load.begin; r < load.end; ++r) usage[r] += load.usage[position[v]];
  return usage;
}

// The same choices and pairs are allowed, and nothing costs anything.
Network without_costs(const Network& network) {
  Network free = network;
  const auto clear = [](std::vector<Amount>& costs) {
    for (Amount& cost : costs) cost = cost >= kForbidden ? kForbidden : 0;
  };
  free.base = 0;
  for (Variable& x : free.variables) clear(x.cost);
  for (Link& link : free.links) clear(link.cost);
  return free;
}

// An answer for which no row matters.
std::vector<int> ignoring_memory(Network network, const RepairOptions& options, std::size_t& used) {
  for (Variable& x : network.variables) x.loads.clear();
  network.room.clear();
  network.row_name.clear();
  Budget budget{options.work, 0, options.stop};
  const BranchResult result = branch(network, kForbidden, {}, {50, 20}, budget);
  used += budget.used;
  return result.labels;
}

// Costs become the memory in rows with too little room, in units that keep sums small; no row may
// get worse than it is.
Network priced_overflow(const Network& free, const std::vector<Amount>& usage) {
  Network priced = free;
  std::vector<char> over(usage.size());
  Amount greatest = 1;
  for (std::size_t r = 0; r < usage.size(); ++r) {
    over[r] = usage[r] > free.room[r];
    if (over[r]) greatest = std::max(greatest, usage[r]);
    priced.room[r] = std::max(priced.room[r], usage[r]);
  }
  const Amount most = kForbidden / 4 / static_cast<Amount>(usage.size() + 1);
  const Amount unit = greatest / most + 1;
  for (Variable& x : priced.variables)
    for (const Load& load : x.loads)
      for (int r = load.begin; r < load.end; ++r)
        for (int k = 0; over[r] && k < x.size(); ++k)
          x.cost[k] = add_costs(x.cost[k], (load.usage[k] + unit - 1) / unit);
  return priced;
}

}  // namespace

std::vector<int> find_any(const Network& network, const RepairOptions& options, std::size_t& used) {
  const std::size_t end = used + options.work;
  const Network free = without_costs(network);
  std::vector<int> position = ignoring_memory(free, options, used);
  if (position.empty()) return {};
  for (std::uint64_t seed = 1; used < end && !(options.stop && options.stop()); ++seed) {
    const std::vector<Amount> usage = usage_of(network, position);
    bool fits = true;
    for (std::size_t r = 0; r < usage.size(); ++r) fits = fits && usage[r] <= network.room[r];
    if (fits) return position;
    const Network priced = priced_overflow(free, usage);
    const std::size_t slice = std::min<std::size_t>(end - used, 50'000'000);
    RegionOptions regions{
        .work = slice, .threads = options.threads, .seed = seed << 32, .stop = options.stop};
    used += improve_by_regions(priced, position, {}, regions) + 1;
  }
  return {};
}

}  // namespace plait::solve
