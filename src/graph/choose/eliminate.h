#pragma once

#include <functional>
#include <optional>
#include <vector>

namespace plait::graph {

// Choose one of several values for each variable, so that the sum of costs of single values and of
// pairs is least.
struct ChoiceProblem {
  struct Pair {
    int a = 0;
    int b = 0;
    std::vector<double> cost;  // [value of a * values of b + value of b]
  };
  std::vector<std::vector<double>> single;
  std::vector<Pair> pairs;
};

struct ChoiceResult {
  std::vector<int> values;
  double cost = 0;
  double bound = 0;  // nothing costs less; equal to cost where it is proven
};

double cost_of(const ChoiceProblem& problem, const std::vector<int>& values);

// Exact, by dynamic programming: variables are eliminated one after the other, those with the
// smallest tables first. Nothing where a table would have more than `most` entries.
std::optional<ChoiceResult> eliminate(const ChoiceProblem& problem, double most);

// The values of each variable, ascending, without some that another value of the variable makes
// needless: whatever the other variables take, the other value costs no more.
std::vector<std::vector<int>> undominated(const ChoiceProblem& problem);
// The problem with the chosen values of each variable only.
ChoiceProblem with_values(const ChoiceProblem& problem, const std::vector<std::vector<int>>& left);

// Exact where the graph allows, if need be without the values that are dominated; else by descent
// from several starts, with a bound by what each variable and pair costs at least.
ChoiceResult choose(const ChoiceProblem& problem);

// The same with a limit on the sum of `use` of the chosen values: the least cost for a multiplier
// of the use is found by bisection and gives a bound, branching on the values closes the gap as far
// as `most_branches` and `stop` allow. Nothing where no choice keeps the limit.
std::optional<ChoiceResult> choose_within(
    const ChoiceProblem& problem, const std::vector<std::vector<double>>& use, double limit,
    int most_branches, const std::function<bool()>& stop = [] { return false; });

}  // namespace plait::graph
