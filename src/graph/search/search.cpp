#include "graph/search/search.h"

#include <algorithm>

#include "base/error.h"
#include "graph/search/eliminate.h"

namespace plait::graph {
namespace {

ChoiceProblem as_problem(const GraphCosts& costs) {
  ChoiceProblem problem;
  for (const BlockCosts& block : costs.blocks) {
    problem.single.emplace_back();
    for (std::size_t s = 0; s < block.strategies.size(); ++s)
      problem.single.back().push_back((block.compute[s] + block.communication[s]).value);
  }
  for (const EdgeCosts& edge : costs.edges) {
    problem.pairs.push_back({edge.a, edge.b, {}});
    for (const Seconds time : edge.time) problem.pairs.back().cost.push_back(time.value);
  }
  return problem;
}

std::vector<std::vector<double>> uses_of(const GraphCosts& costs) {
  std::vector<std::vector<double>> use;
  for (const BlockCosts& block : costs.blocks) {
    use.emplace_back();
    for (const Bytes memory : block.memory) use.back().push_back(memory.value);
  }
  return use;
}

// Every block as it holds least when the forward pass ends.
std::vector<int> least_memory(const GraphCosts& costs) {
  std::vector<int> choice;
  for (const BlockCosts& block : costs.blocks)
    choice.push_back(
        static_cast<int>(std::ranges::min_element(block.memory) - block.memory.begin()));
  return choice;
}

}  // namespace

std::vector<Bytes> ShardingPlan::traffic() const {
  std::vector<Bytes> sum(kCollectiveKinds);
  for (const Movement& m : movements)
    sum[static_cast<int>(m.transfer.kind)] +=
        traffic_of(mesh, m.transfer.kind, m.transfer.axes, m.transfer.size) * m.times;
  return sum;
}

std::vector<int> choice_of(const GraphCosts& costs, const ShardingPlan& plan) {
  std::vector<int> choice;
  for (std::size_t b = 0; b < costs.blocks.size(); ++b) {
    const auto& all = costs.blocks[b].strategies;
    const auto found = std::ranges::find(all, plan.strategies[b]);
    PLAIT_CHECK(found != all.end());
    choice.push_back(static_cast<int>(found - all.begin()));
  }
  return choice;
}

ShardingPlan plan_with(const Analysis& analysis, const Mesh& mesh, const GraphCosts& costs,
                       const std::vector<int>& choice) {
  ShardingPlan plan;
  plan.mesh = mesh;
  plan.compute = costs.shared;
  for (std::size_t b = 0; b < choice.size(); ++b) {
    const BlockCosts& block = costs.blocks[b];
    plan.strategies.push_back(block.strategies[choice[b]]);
    plan.compute += block.compute[choice[b]];
    plan.communication += block.communication[choice[b]];
  }
  for (const EdgeCosts& edge : costs.edges)
    plan.communication +=
        edge.time[choice[edge.a] * costs.blocks[edge.b].strategies.size() + choice[edge.b]];
  plan.placements = placements_of(analysis, mesh, costs, choice);
  plan.movements = movements_of(analysis, mesh, costs, choice);
  plan.peak = peak_memory(analysis, mesh, plan.placements);
  return plan;
}

SearchResult search(const Analysis& analysis, const Mesh& mesh, const SearchOptions& options) {
  const GraphCosts costs = costs_of(analysis, mesh, cost_options(options));
  const ChoiceProblem problem = as_problem(costs);
  const Bytes limit = options.memory.value_or(mesh.device.memory);
  SearchResult result;
  const ChoiceResult free = choose(problem);
  result.best = plan_with(analysis, mesh, costs, free.values);
  result.best->bound = costs.shared + Seconds(free.bound);
  if (result.best->peak <= limit) return result;
  // What is held at the end of the forward pass is the same for every order of the program; the
  // rest of the peak is taken from the limit, more of it as long as the plan does not fit.
  const auto use = uses_of(costs);
  Bytes room = limit - costs.shared_memory;
  std::optional<Seconds> bound;
  Bytes needed = result.best->peak;
  result.best.reset();
  const auto take = [&](const std::vector<int>& choice, Seconds at_least) {
    ShardingPlan plan = plan_with(analysis, mesh, costs, choice);
    plan.bound = at_least;
    needed = std::min(needed, plan.peak);
    if (plan.peak <= limit) result.best = plan;
    return plan.peak;
  };
  // To close the gap; fewer where each takes longer.
  const int branches = std::max(1, 200 / static_cast<int>(costs.blocks.size() + 1));
  for (int round = 0; round < 12 && room > Bytes(0) && !options.stop(); ++round) {
    const auto found = choose_within(problem, use, room.value, branches);
    if (!found) break;
    if (!bound) bound = costs.shared + Seconds(found->bound);
    const Bytes peak = take(found->values, *bound);
    if (result.best) return result;
    Bytes held;
    for (std::size_t b = 0; b < found->values.size(); ++b)
      held += costs.blocks[b].memory[found->values[b]];
    room = std::min(room * 0.97, held - (peak - limit) * 0.5);
  }
  if (!options.stop())
    take(least_memory(costs), bound.value_or(costs.shared + Seconds(free.bound)));
  if (!result.best) result.why_not = NoPlan{needed, limit};
  return result;
}

std::vector<std::optional<RunnerUp>> runners_up(const GraphCosts& costs, const ShardingPlan& plan) {
  const ChoiceProblem problem = as_problem(costs);
  const std::vector<int> choice = choice_of(costs, plan);
  std::vector<std::optional<RunnerUp>> all(choice.size());
  // The change of one block touches its own cost and its edges only.
  std::vector<std::vector<double>> change = problem.single;
  for (std::size_t b = 0; b < change.size(); ++b)
    for (double& c : change[b]) c -= problem.single[b][choice[b]];
  for (const auto& pair : problem.pairs) {
    const std::size_t columns = problem.single[pair.b].size();
    const double now = pair.cost[choice[pair.a] * columns + choice[pair.b]];
    for (std::size_t k = 0; k < problem.single[pair.a].size(); ++k)
      change[pair.a][k] += pair.cost[k * columns + choice[pair.b]] - now;
    for (std::size_t k = 0; k < columns; ++k)
      change[pair.b][k] += pair.cost[choice[pair.a] * columns + k] - now;
  }
  for (std::size_t b = 0; b < change.size(); ++b)
    for (int k = 0; k < static_cast<int>(change[b].size()); ++k) {
      if (k == choice[b]) continue;
      if (!all[b] || change[b][k] < all[b]->loss.value)
        all[b] = RunnerUp{costs.blocks[b].strategies[k], Seconds(change[b][k])};
    }
  return all;
}

}  // namespace plait::graph
