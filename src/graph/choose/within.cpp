// Choosing under a limit: Lagrange's multiplier for the bound, branching for the gap.

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

#include "graph/choose/eliminate.h"

namespace plait::graph {
namespace {

using MemoryUse = std::vector<std::vector<double>>;
constexpr double kNoLimit = std::numeric_limits<double>::infinity();

double use_of(const MemoryUse& use, const std::vector<int>& values) {
  double sum = 0;
  for (std::size_t v = 0; v < values.size(); ++v) sum += use[v][values[v]];
  return sum;
}

// Values that a branch has left, by variable: 1 = allowed.
using Allowed = std::vector<std::vector<char>>;

struct Relaxed {
  double bound = kNoLimit;    // of every choice of the branch that keeps the limit
  std::vector<int> feasible;  // the best that was met; empty = none
  double feasible_cost = kNoLimit;
  std::vector<int> infeasible;  // the least that was met with too much use
};

class LimitSearch {
 public:
  LimitSearch(const ChoiceProblem& problem, const MemoryUse& use, double limit, int most,
              const std::function<bool()>& stop)
      : problem_(problem), use_(use), limit_(limit), left_(most), stop_(stop) {}

  std::optional<ChoiceResult> solve() {
    Allowed all;
    for (const auto& single : problem_.single) all.emplace_back(single.size(), 1);
    double least = 0;
    for (const auto& uses : use_) least += *std::ranges::min_element(uses);
    if (least > limit_) return std::nullopt;
    push(std::move(all));
    double open_bound = kNoLimit;
    while (!open_.empty()) {
      const Branch branch = open_.top();
      open_.pop();
      if (branch.bound >= best_.cost * (1 - 1e-12)) break;
      if (left_ <= 0 || stop_()) {
        open_bound = branch.bound;
        break;
      }
      split(branch);
    }
    if (best_.values.empty()) return std::nullopt;
    best_.bound = std::min(best_.cost, open_bound);
    return best_;
  }

 private:
  struct Branch {
    double bound = 0;
    int number = 0;
    Allowed allowed;
    std::vector<int> at;  // a choice that uses too much
    friend bool operator<(const Branch& a, const Branch& b) {
      return a.bound != b.bound ? a.bound > b.bound : a.number > b.number;
    }
  };

  ChoiceResult solve_with(const Allowed& allowed, double multiplier) {
    ChoiceProblem changed = problem_;
    for (std::size_t v = 0; v < changed.single.size(); ++v)
      for (std::size_t k = 0; k < changed.single[v].size(); ++k)
        changed.single[v][k] =
            allowed[v][k] != 0 ? changed.single[v][k] + multiplier * use_[v][k] : kNoLimit;
    return choose(changed);
  }

  void take(const std::vector<int>& values, Relaxed& relaxed) {
    const double cost = cost_of(problem_, values);
    if (cost < relaxed.feasible_cost) {
      relaxed.feasible_cost = cost;
      relaxed.feasible = values;
    }
    if (cost < best_.cost) best_ = {values, cost, 0};
  }

  Relaxed relax(const Allowed& allowed) {
    Relaxed relaxed;
    const ChoiceResult free = solve_with(allowed, 0);
    relaxed.bound = free.bound;
    if (free.bound == kNoLimit) return relaxed;
    if (use_of(use_, free.values) <= limit_) {
      take(free.values, relaxed);
      return relaxed;
    }
    relaxed.infeasible = free.values;
    double low = 0;
    double high = 1e-18 + std::abs(free.cost) / std::max(limit_, 1.0);
    for (int i = 0; i < 60; ++i) {
      const ChoiceResult at = solve_with(allowed, high);
      relaxed.bound = std::max(relaxed.bound, at.bound - high * limit_);
      if (use_of(use_, at.values) <= limit_) {
        take(at.values, relaxed);
        break;
      }
      low = high;
      high *= 8;
      if (i == 59) relaxed.bound = kNoLimit;
    }
    for (int i = 0; i < 16 && relaxed.bound < kNoLimit && !stop_(); ++i) {
      const double middle = (low + high) / 2;
      const ChoiceResult at = solve_with(allowed, middle);
      relaxed.bound = std::max(relaxed.bound, at.bound - middle * limit_);
      if (use_of(use_, at.values) <= limit_) {
        take(at.values, relaxed);
        high = middle;
      } else {
        relaxed.infeasible = at.values;
        low = middle;
      }
    }
    return relaxed;
  }

  void push(Allowed allowed) {
    --left_;
    const Relaxed relaxed = relax(allowed);
    if (relaxed.bound >= best_.cost || relaxed.infeasible.empty()) return;
    open_.push({relaxed.bound, next_++, std::move(allowed), relaxed.infeasible});
  }

  // On the variable that uses most more than it must: that value, or any other.
  void split(const Branch& branch) {
    std::size_t variable = 0;
    double most = -1;
    for (std::size_t v = 0; v < use_.size(); ++v) {
      const auto count = std::ranges::count(branch.allowed[v], 1);
      if (count < 2) continue;
      double least = kNoLimit;
      for (std::size_t k = 0; k < use_[v].size(); ++k)
        if (branch.allowed[v][k] != 0) least = std::min(least, use_[v][k]);
      const double more = use_[v][branch.at[v]] - least;
      if (more > most) {
        most = more;
        variable = v;
      }
    }
    if (most < 0) return;
    const int value = branch.at[variable];
    Allowed other = branch.allowed;
    other[variable][value] = 0;
    Allowed same = branch.allowed;
    std::ranges::fill(same[variable], 0);
    same[variable][value] = 1;
    push(std::move(other));
    push(std::move(same));
  }

  const ChoiceProblem& problem_;
  const MemoryUse& use_;
  double limit_;
  int left_;
  const std::function<bool()>& stop_;
  int next_ = 0;
  ChoiceResult best_{{}, kNoLimit, 0};
  std::priority_queue<Branch> open_;
};

}  // namespace

std::optional<ChoiceResult> choose_within(const ChoiceProblem& problem, const MemoryUse& use,
                                          double limit, int most_branches,
                                          const std::function<bool()>& stop) {
  return LimitSearch(problem, use, limit, most_branches, stop).solve();
}

}  // namespace plait::graph
