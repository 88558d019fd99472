#include "graph/solve/solve.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "graph/solve/branch.h"
#include "graph/solve/network.h"
#include "graph/solve/reduce.h"
#include "graph/solve/regions.h"
#include "graph/solve/repair.h"

namespace plait::solve {
namespace {

constexpr std::size_t kLeastSlice = 1'000'000;

// Branching and regions take turns with slices of work that grow, so that a proof starts again
// from the root with the better answer that the regions found.
class Search {
 public:
  Search(const Network& root, const SolveOptions& options) : root_(root), options_(options) {}

  // A small network is mostly proven, in turns that grow; a large one is mostly improved, and its
  // first turn must be enough for good prices.
  void run() {
    const bool large =
        root_.variables.size() > static_cast<std::size_t>(BranchOptions{}.most_variables);
    std::size_t slice = std::max(kLeastSlice, options_.work / (large ? 12 : 40));
    while (!done()) {
      prove(std::min(slice, left()));
      if (done()) break;
      if (cost >= kForbidden) find_one(std::min(slice, left()));
      if (cost < kForbidden) improve(std::min(large ? 6 * slice : slice / 4, left()));
      if (!large) slice *= 3;
    }
  }

  std::vector<int> position;
  Amount cost = kForbidden;
  Amount bound = 0;
  bool complete = false;
  std::size_t used = 0;

 private:
  std::size_t left() const { return used >= options_.work ? 0 : options_.work - used; }
  bool done() const {
    return complete || bound >= cost || left() == 0 || (options_.stop && options_.stop());
  }

  void prove(std::size_t work) {
    Budget budget{work, 0, options_.stop};
    BranchOptions how;
    how.root_scale = turn_ == 0 ? 1 : 0.3;
    const BranchResult result = branch(root_, cost, prices_, how, budget);
    used += budget.used + 1;
    ++turn_;
    if (!result.prices.empty()) prices_ = result.prices;
    take(result.labels, result.cost);
    bound = std::max(bound, result.bound);
    complete = result.bound >= cost;
  }

  void find_one(std::size_t work) {
    std::size_t spent = 0;
    const std::vector<int> any = find_any(root_, {work, options_.threads, options_.stop}, spent);
    used += spent + 1;
    if (!any.empty()) take(any, evaluate(root_, any).cost);
  }

  void improve(std::size_t work) {
    RegionOptions regions{.work = work,
                          .threads = options_.threads,
                          .seed = static_cast<std::uint64_t>(turn_) << 32,
                          .enough = bound,
                          .stop = options_.stop};
    std::vector<int> better = position;
    used += improve_by_regions(root_, better, prices_, regions) + 1;
    take(better, evaluate(root_, better).cost);
  }

  void take(const std::vector<int>& found, Amount its_cost) {
    if (its_cost >= cost) return;
    position = found;
    cost = its_cost;
  }

  const Network& root_;
  const SolveOptions& options_;
  std::vector<double> prices_;
  int turn_ = 0;
};

// What every answer takes, at the time at which that is most.
std::string least_memory(const Instance& instance) {
  std::map<std::int64_t, Amount> change;
  for (const Node& node : instance.nodes) {
    if (node.begin >= node.end) continue;
    const Amount least = *std::min_element(node.usage.begin(), node.usage.end());
    change[node.begin] += least;
    change[node.end] -= least;
  }
  Amount now = 0, most = 0;
  std::int64_t when = 0;
  for (const auto& [time, amount] : change) {
    now += amount;
    if (now > most) most = now, when = time;
  }
  return fmt::format("the least usage of all nodes adds up to {} at time {}, and the limit is {}",
                     most, when, instance.usage_limit);
}

std::string why_impossible(const Instance& instance) {
  Instance roomy = instance;
  roomy.usage_limit = 0;
  for (Node& node : roomy.nodes) std::fill(node.usage.begin(), node.usage.end(), 0);
  Network network = make_network(roomy);
  reduce(network, {});
  if (network.impossible)
    return "every combination of choices has a cost of 10^18 or more, which means not allowed";
  return "no allowed combination of choices fits into the memory: " + least_memory(instance);
}

}  // namespace

double Solution::gap() const {
  return cost <= 0 ? 0 : static_cast<double>(cost - lower_bound) / static_cast<double>(cost);
}

Solution solve(const Instance& instance, const SolveOptions& options) {
  Solution solution;
  Network network = make_network(instance);
  reduce(network, {});
  std::vector<int> origin;
  const Network root = compacted(network, origin);
  Search search(root, options);
  if (!network.impossible) search.run();
  solution.work = search.used;
  if (search.cost >= kForbidden) {
    solution.proven_none = network.impossible || search.complete;
    solution.reason = solution.proven_none
                          ? why_impossible(instance)
                          : "no answer that fits was found in the time given, and none was ruled "
                            "out: " +
                                least_memory(instance);
    return solution;
  }
  solution.choices.assign(instance.nodes.size(), 0);
  for (std::size_t i = 0; i < origin.size(); ++i)
    solution.choices[origin[i]] = network.variables[origin[i]].label[search.position[i]];
  recover(network, solution.choices);
  solution.cost = search.cost;
  solution.lower_bound = std::min(search.bound, search.cost);
  const Score counted = score(instance, solution.choices);
  PLAIT_CHECK(counted.valid() && counted.cost == solution.cost);
  return solution;
}

}  // namespace plait::solve
