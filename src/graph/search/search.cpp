#include "graph/search/search.h"

#include <algorithm>

#include "base/error.h"
#include "graph/choose/eliminate.h"

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
  plan.peak = peak_memory(analysis, mesh, plan.placements,
                          copies_of(analysis, mesh, costs, choice, plan.placements));
  return plan;
}

namespace {

// What is held at the end of the forward pass is the same for every order of the program; the rest
// of the peak is taken from the limit, more of it as long as the plan does not fit.
class LimitedSearch {
 public:
  LimitedSearch(const Analysis& analysis, const Mesh& mesh, const GraphCosts& costs,
                const ChoiceProblem& problem, Bytes limit, const std::function<bool()>& stop)
      : analysis_(analysis),
        mesh_(mesh),
        costs_(costs),
        problem_(problem),
        use_(uses_of(costs)),
        // To close the gap; fewer where each takes longer.
        branches_(std::max(1, 200 / static_cast<int>(costs.blocks.size() + 1))),
        limit_(limit),
        stop_(stop) {}

  // `free`: the fastest plan, which does not fit.
  SearchResult run(const ShardingPlan& free) {
    needed_ = free.peak;
    bound_ = free.bound;
    Bytes room = limit_ - costs_.shared_memory;
    Bytes too_much = room;
    bool fits = false;
    for (int round = 0; round < 12 && room > Bytes(0) && !fits && !stop_(); ++round) {
      const auto peak = try_with(room);
      if (!peak) break;
      fits = *peak <= limit_;
      if (fits) break;
      too_much = room;
      room = std::min(room * 0.97, held_ - (*peak - limit_) * 0.5);
    }
    // What is left between a room that fits and one that does not.
    for (int round = 0; round < 4 && fits && room < too_much && !stop_(); ++round) {
      const Bytes middle = (room + too_much) * 0.5;
      const auto peak = try_with(middle);
      if (!peak) break;
      (*peak <= limit_ ? room : too_much) = middle;
    }
    if (!result_.best) take(least_memory(costs_));
    for (int round = 0; round < 2 && result_.best && !stop_() && fill(); ++round) {
    }
    if (result_.best) {
      result_.best->bound = bound_;
    } else {
      result_.why_not = NoPlan{needed_, limit_};
    }
    return std::move(result_);
  }

 private:
  // The peak of the best plan with so much room.
  std::optional<Bytes> try_with(Bytes room) {
    const auto found = choose_within(problem_, use_, room.value, branches_, stop_);
    if (!found) return std::nullopt;
    if (!bounded_) bound_ = std::max(bound_, costs_.shared + Seconds(found->bound));
    bounded_ = true;  // less room has a bound of its own
    held_ = {};
    for (std::size_t b = 0; b < found->values.size(); ++b)
      held_ += costs_.blocks[b].memory[found->values[b]];
    return take(found->values);
  }

  // Gives memory that is left to blocks that are faster with more: those that gain most for it
  // first, as many as fit. True where that made a faster plan.
  bool fill() {
    struct Change {
      std::size_t block = 0;
      int choice = 0;
      double gain = 0;  // for each byte
    };
    const std::vector<int> now = choice_of(costs_, *result_.best);
    const auto second = runners_up(costs_, *result_.best);
    std::vector<Change> changes;
    for (std::size_t b = 0; b < now.size(); ++b) {
      if (!second[b] || !(second[b]->loss < Seconds(0))) continue;
      const auto& all = costs_.blocks[b].strategies;
      const auto other =
          static_cast<int>(std::ranges::find(all, second[b]->strategy) - all.begin());
      const Bytes more = costs_.blocks[b].memory[other] - costs_.blocks[b].memory[now[b]];
      changes.push_back({b, other, -second[b]->loss.value / std::max(more.value, 1.0)});
    }
    std::ranges::stable_sort(changes, std::ranges::greater{}, &Change::gain);
    const Seconds before = result_.best->time();
    std::size_t fit = 0;
    for (std::size_t most = changes.size(); fit < most;) {
      const std::size_t middle = (fit + most + 1) / 2;
      std::vector<int> choice = now;
      for (std::size_t i = 0; i < middle; ++i) choice[changes[i].block] = changes[i].choice;
      if (take(choice) <= limit_) {
        fit = middle;
      } else {
        most = middle - 1;
      }
    }
    return result_.best->time() < before;
  }

  // The peak of a plan; keeps it where it fits and is faster.
  Bytes take(const std::vector<int>& choice) {
    const std::vector<Placement> placements = placements_of(analysis_, mesh_, costs_, choice);
    const Bytes peak = peak_memory(analysis_, mesh_, placements,
                                   copies_of(analysis_, mesh_, costs_, choice, placements));
    needed_ = std::min(needed_, peak);
    if (peak > limit_) return peak;
    ShardingPlan plan = plan_with(analysis_, mesh_, costs_, choice);
    if (!result_.best || plan.time() < result_.best->time()) result_.best = std::move(plan);
    return peak;
  }

  const Analysis& analysis_;
  const Mesh& mesh_;
  const GraphCosts& costs_;
  const ChoiceProblem& problem_;
  const std::vector<std::vector<double>> use_;
  const int branches_;
  const Bytes limit_;
  const std::function<bool()>& stop_;
  Bytes needed_;
  Bytes held_;
  Seconds bound_;
  bool bounded_ = false;
  SearchResult result_;
};

}  // namespace

SearchResult search(const Analysis& analysis, const Mesh& mesh, const SearchOptions& options) {
  const GraphCosts costs = costs_of(analysis, mesh, cost_options(options));
  const ChoiceProblem problem = as_problem(costs);
  const Bytes limit = options.memory.value_or(mesh.device.memory);
  const ChoiceResult free = choose(problem);
  ShardingPlan fastest = plan_with(analysis, mesh, costs, free.values);
  fastest.bound = costs.shared + Seconds(free.bound);
  if (fastest.peak <= limit) return {std::move(fastest), std::nullopt};
  return LimitedSearch(analysis, mesh, costs, problem, limit, options.stop).run(fastest);
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
