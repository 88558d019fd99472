#include "graph/choose/eliminate.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <set>

namespace plait::graph {
namespace {

constexpr double kMostEntries = 4e6;
constexpr double kNoWay = std::numeric_limits<double>::infinity();

// A function of some variables; the last moves fastest.
struct CostTable {
  std::vector<int> scope;  // ascending
  std::vector<double> cost;
};

class Eliminator {
 public:
  Eliminator(const ChoiceProblem& problem, double most) : problem_(problem), most_(most) {
    const int count = static_cast<int>(problem.single.size());
    neighbours_.resize(count);
    for (const auto& pair : problem.pairs) {
      neighbours_[pair.a].insert(pair.b);
      neighbours_[pair.b].insert(pair.a);
      factors_.push_back({{std::min(pair.a, pair.b), std::max(pair.a, pair.b)}, {}});
      factors_.back().cost = pair.a < pair.b ? pair.cost : transposed(pair);
    }
    of_variable_.resize(count);
    for (int f = 0; f < static_cast<int>(factors_.size()); ++f)
      for (const int v : factors_[f].scope) of_variable_[v].push_back(f);
  }

  std::optional<ChoiceResult> solve() {
    const int count = static_cast<int>(problem_.single.size());
    std::set<std::pair<double, int>> queue;
    for (int v = 0; v < count; ++v) queue.emplace(table_size(v), v);
    alive_.assign(count, 1);
    while (!queue.empty()) {
      const auto [size, v] = *queue.begin();
      if (size * static_cast<double>(values(v)) > most_) return std::nullopt;
      queue.erase(queue.begin());
      const std::vector<int> around(neighbours_[v].begin(), neighbours_[v].end());
      for (const int w : around) queue.erase({table_size(w), w});
      remove(v, around);
      for (const int w : around) queue.emplace(table_size(w), w);
    }
    return trace_back();
  }

 private:
  int values(int v) const { return static_cast<int>(problem_.single[v].size()); }

  std::vector<double> transposed(const ChoiceProblem::Pair& pair) const {
    const std::size_t rows = problem_.single[pair.a].size();
    const std::size_t columns = problem_.single[pair.b].size();
    std::vector<double> out(pair.cost.size());
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j) out[j * rows + i] = pair.cost[i * columns + j];
    return out;
  }

  double table_size(int v) const {
    double product = 1;
    for (const int w : neighbours_[v]) product *= values(w);
    return product;
  }

  // How far a table's position moves with each variable of `scope`.
  std::vector<int> strides(const CostTable& factor, const std::vector<int>& scope) const {
    std::vector<int> steps(scope.size(), 0);
    int step = 1;
    for (int i = static_cast<int>(factor.scope.size()) - 1; i >= 0; --i) {
      const auto at = std::ranges::find(scope, factor.scope[i]);
      if (at != scope.end()) steps[at - scope.begin()] = step;
      step *= values(factor.scope[i]);
    }
    return steps;
  }

  void remove(int v, const std::vector<int>& around) {
    // The eliminated variable moves fastest.
    std::vector<int> scope = around;
    scope.push_back(v);
    std::vector<const CostTable*> joined;
    std::vector<std::vector<int>> steps;
    for (const int f : of_variable_[v]) {
      if (factors_[f].scope.empty()) continue;
      joined.push_back(&factors_[f]);
      steps.push_back(strides(factors_[f], scope));
    }
    CostTable made{around, {}};
    std::vector<std::int16_t> best;
    fill(scope, joined, steps, made, best);
    order_.push_back(v);
    kept_scope_.push_back(around);
    best_.push_back(std::move(best));
    for (const int f : of_variable_[v]) factors_[f] = {};
    for (const int w : around) {
      neighbours_[w].erase(v);
      for (const int u : around)
        if (u != w) neighbours_[w].insert(u);
    }
    const int id = static_cast<int>(factors_.size());
    if (around.empty())
      base_ += made.cost.front();
    else
      for (const int w : around) of_variable_[w].push_back(id);
    factors_.push_back(std::move(made));
    alive_[v] = 0;
  }

  void fill(const std::vector<int>& scope, const std::vector<const CostTable*>& joined,
            const std::vector<std::vector<int>>& steps, CostTable& made,
            std::vector<std::int16_t>& best) const {
    const int v = scope.back();
    const std::size_t outer = scope.size() - 1;
    std::size_t size = 1;
    for (std::size_t i = 0; i < outer; ++i) size *= values(scope[i]);
    made.cost.resize(size);
    best.resize(size);
    std::vector<int> at(outer, 0);
    std::vector<int> position(joined.size(), 0);
    for (std::size_t entry = 0; entry < size; ++entry) {
      double least = kNoWay;
      int which = 0;
      for (int k = 0; k < values(v); ++k) {
        double cost = problem_.single[v][k];
        for (std::size_t f = 0; f < joined.size(); ++f)
          cost += joined[f]->cost[position[f] + k * steps[f][outer]];
        if (cost < least) {
          least = cost;
          which = k;
        }
      }
      made.cost[entry] = least;
      best[entry] = static_cast<std::int16_t>(which);
      for (int i = static_cast<int>(outer) - 1; i >= 0; --i) {
        ++at[i];
        for (std::size_t f = 0; f < joined.size(); ++f) position[f] += steps[f][i];
        if (at[i] < values(scope[i])) break;
        for (std::size_t f = 0; f < joined.size(); ++f)
          position[f] -= steps[f][i] * values(scope[i]);
        at[i] = 0;
      }
    }
  }

  ChoiceResult trace_back() const {
    ChoiceResult result;
    result.values.assign(problem_.single.size(), 0);
    for (std::size_t i = order_.size(); i-- > 0;) {
      std::size_t entry = 0;
      for (const int w : kept_scope_[i]) entry = entry * values(w) + result.values[w];
      result.values[order_[i]] = best_[i][entry];
    }
    result.cost = result.bound = base_;
    return result;
  }

  const ChoiceProblem& problem_;
  double most_;
  std::vector<std::set<int>> neighbours_;
  std::vector<CostTable> factors_;
  std::vector<std::vector<int>> of_variable_;
  std::vector<char> alive_;
  std::vector<int> order_;
  std::vector<std::vector<int>> kept_scope_;
  std::vector<std::vector<std::int16_t>> best_;
  double base_ = 0;
};

// Changes one variable at a time for the better until none can be.
std::vector<int> descend(const ChoiceProblem& problem, std::vector<int> values) {
  const std::size_t count = problem.single.size();
  std::vector<std::vector<std::pair<const ChoiceProblem::Pair*, bool>>> around(count);
  for (const auto& pair : problem.pairs) {
    around[pair.a].emplace_back(&pair, true);
    around[pair.b].emplace_back(&pair, false);
  }
  bool better = true;
  for (int round = 0; better && round < 1000; ++round) {
    better = false;
    for (std::size_t v = 0; v < count; ++v) {
      std::vector<double> cost = problem.single[v];
      for (const auto& [pair, first] : around[v]) {
        const std::size_t columns = problem.single[pair->b].size();
        for (std::size_t k = 0; k < cost.size(); ++k)
          cost[k] += first ? pair->cost[k * columns + values[pair->b]]
                           : pair->cost[values[pair->a] * columns + k];
      }
      const auto best = std::ranges::min_element(cost) - cost.begin();
      if (cost[best] < cost[values[v]] - 1e-15 * std::abs(cost[best])) {
        values[v] = static_cast<int>(best);
        better = true;
      }
    }
  }
  return values;
}

}  // namespace

double cost_of(const ChoiceProblem& problem, const std::vector<int>& values) {
  double sum = 0;
  for (std::size_t v = 0; v < values.size(); ++v) sum += problem.single[v][values[v]];
  for (const auto& pair : problem.pairs)
    sum += pair.cost[values[pair.a] * problem.single[pair.b].size() + values[pair.b]];
  return sum;
}

std::optional<ChoiceResult> eliminate(const ChoiceProblem& problem, double most) {
  return Eliminator(problem, most).solve();
}

ChoiceResult choose(const ChoiceProblem& problem) {
  if (auto exact = eliminate(problem, kMostEntries)) return *exact;
  const auto left = undominated(problem);
  if (auto exact = eliminate(with_values(problem, left), kMostEntries)) {
    for (std::size_t v = 0; v < left.size(); ++v) exact->values[v] = left[v][exact->values[v]];
    return *exact;
  }
  ChoiceResult best;
  best.cost = kNoWay;
  std::size_t widest = 1;
  for (const auto& single : problem.single) widest = std::max(widest, single.size());
  for (std::size_t start = 0; start < widest; ++start) {
    std::vector<int> values;
    for (const auto& single : problem.single)
      values.push_back(static_cast<int>(std::min(start, single.size() - 1)));
    values = descend(problem, std::move(values));
    const double cost = cost_of(problem, values);
    if (cost < best.cost) {
      best.cost = cost;
      best.values = std::move(values);
    }
  }
  best.bound = 0;
  for (const auto& single : problem.single) best.bound += *std::ranges::min_element(single);
  for (const auto& pair : problem.pairs) best.bound += *std::ranges::min_element(pair.cost);
  return best;
}

}  // namespace plait::graph
