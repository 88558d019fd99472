// Values of a variable that another of its values makes needless.

#include <algorithm>
#include <limits>

#include "graph/choose/eliminate.h"

namespace plait::graph {
namespace {

constexpr double kUnmet = std::numeric_limits<double>::infinity();

// Leaves out values that another value of the same variable beats whatever the other variables
// take:  single[j] - single[i] + sum over pairs of max over k of (pair[j][k] - pair[i][k]) <= 0,
// k among the values that are left. Those that have most to lose are compared with the few that
// cost least.
class Thinner {
 public:
  explicit Thinner(const ChoiceProblem& problem) : problem_(problem) {
    around_.resize(problem.single.size());
    for (const auto& pair : problem.pairs) {
      around_[pair.a].push_back({&pair, pair.b, problem.single[pair.b].size(), 1});
      around_[pair.b].push_back({&pair, pair.a, 1, problem.single[pair.b].size()});
    }
    for (const auto& single : problem.single) {
      left_.emplace_back(single.size());
      for (std::size_t k = 0; k < single.size(); ++k) left_.back()[k] = static_cast<int>(k);
    }
  }

  // Of each variable the values that are left, ascending.
  std::vector<std::vector<int>> run() {
    std::vector<char> open(left_.size(), 1);
    for (int round = 0; round < kRounds; ++round)
      for (std::size_t v = 0; v < left_.size(); ++v) {
        if (open[v] == 0) continue;
        open[v] = 0;
        if (!thin(v)) continue;
        for (const Neighbour& n : around_[v]) open[n.variable] = 1;
      }
    return std::move(left_);
  }

 private:
  static constexpr int kRounds = 4;
  static constexpr std::size_t kRivals = 24;

  struct Neighbour {
    const ChoiceProblem::Pair* pair = nullptr;
    int variable = 0;
    std::size_t step = 1;   // of this variable's value in the table
    std::size_t other = 1;  // of the neighbour's
  };

  // What the value costs with the best that each neighbour has for it.
  double least_with(std::size_t v, int k) const {
    double sum = problem_.single[v][k];
    for (const Neighbour& n : around_[v]) {
      double least = kUnmet;
      for (const int w : left_[n.variable])
        least = std::min(least, n.pair->cost[k * n.step + w * n.other]);
      sum += least;
    }
    return sum;
  }

  bool beats(std::size_t v, int better, int worse) const {
    double sum = problem_.single[v][better] - problem_.single[v][worse];
    for (const Neighbour& n : around_[v]) {
      double most = -kUnmet;
      for (const int w : left_[n.variable])
        most = std::max(most, n.pair->cost[better * n.step + w * n.other] -
                                  n.pair->cost[worse * n.step + w * n.other]);
      sum += most;
    }
    return sum < 0 || (sum == 0 && better < worse);
  }

  bool thin(std::size_t v) {
    std::vector<std::pair<double, int>> rivals;
    for (const int k : left_[v]) rivals.emplace_back(least_with(v, k), k);
    std::ranges::sort(rivals);
    if (rivals.size() > kRivals) rivals.resize(kRivals);
    const std::size_t before = left_[v].size();
    std::erase_if(left_[v], [&](int k) {
      return std::ranges::any_of(rivals, [&](const auto& rival) {
        return rival.second != k && beats(v, rival.second, k);
      });
    });
    return left_[v].size() < before;
  }

  const ChoiceProblem& problem_;
  std::vector<std::vector<Neighbour>> around_;
  std::vector<std::vector<int>> left_;
};

}  // namespace

std::vector<std::vector<int>> undominated(const ChoiceProblem& problem) {
  return Thinner(problem).run();
}

ChoiceProblem with_values(const ChoiceProblem& problem, const std::vector<std::vector<int>>& left) {
  ChoiceProblem made;
  for (std::size_t v = 0; v < left.size(); ++v) {
    made.single.emplace_back();
    for (const int k : left[v]) made.single.back().push_back(problem.single[v][k]);
  }
  for (const auto& pair : problem.pairs) {
    made.pairs.push_back({pair.a, pair.b, {}});
    const std::size_t columns = problem.single[pair.b].size();
    for (const int i : left[pair.a])
      for (const int j : left[pair.b]) made.pairs.back().cost.push_back(pair.cost[i * columns + j]);
  }
  return made;
}

}  // namespace plait::graph
