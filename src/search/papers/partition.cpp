#include "search/papers/partition.h"

#include <algorithm>
#include <cmath>

namespace plait {
namespace {

class Partition {
 public:
  explicit Partition(const PartitionProblem& problem)
      : problem_(problem), stages_(problem.stages), units_(problem.units) {}

  std::vector<int> run() {
    const double shortest = least(problem_.longest, true);
    std::vector<int> best_cuts;
    double best = HUGE_VAL;
    const double rest = problem_.micro_batches - 1;
    double limit = problem_.longest;
    while (true) {
      const double sum = least(limit, false);
      if (!(sum < HUGE_VAL) || sum + rest * shortest >= best) return best_cuts;
      const std::vector<int> cuts = trace_back();
      double longest = 0;
      for (int s = 0; s < stages_; ++s)
        longest = std::max(longest, problem_.time(s, {cuts[s], cuts[s + 1]}));
      if (sum + rest * longest < best) {
        best = sum + rest * longest;
        best_cuts = cuts;
      }
      // Stages that differ by rounding alone count as equal.
      limit = longest * (1 - 1e-12);
    }
  }

 private:
  // Least sum (or least maximum) over all cuts whose stages take at most `limit`; infinite when
  // there is none.
  double least(double limit, bool of_maximum) {
    std::vector<double> value(units_ + 1, HUGE_VAL);  // [e]: stages [0, s] run units [0, e)
    value[0] = 0;
    from_.assign(stages_, std::vector<int>(units_ + 1, -1));
    for (int s = 0; s < stages_; ++s) {
      if (problem_.stop()) return HUGE_VAL;
      std::vector<double> next(units_ + 1, HUGE_VAL);
      const int last = units_ - (stages_ - 1 - s);
      for (int end = s + 1; end <= last; ++end) {
        for (int begin = end - 1; begin >= s; --begin) {
          const double time = problem_.time(s, {begin, end});
          if (time > limit || time == HUGE_VAL) break;
          if (value[begin] == HUGE_VAL) continue;
          const double send = s > 0 && !of_maximum ? problem_.send(s - 1, begin) : 0;
          const double total =
              of_maximum ? std::max(value[begin], time) : value[begin] + time + send;
          if (total >= next[end]) continue;
          next[end] = total;
          from_[s][end] = begin;
        }
      }
      value = std::move(next);
    }
    return value[units_];
  }

  std::vector<int> trace_back() const {
    std::vector<int> cuts(stages_ + 1, units_);
    for (int s = stages_ - 1; s >= 0; --s) cuts[s] = from_[s][cuts[s + 1]];
    return cuts;
  }

  const PartitionProblem& problem_;
  const int stages_;
  const int units_;
  std::vector<std::vector<int>> from_;  // [stage][end] = where the stage begins
};

}  // namespace

std::vector<int> least_pipeline_time(const PartitionProblem& problem) {
  if (problem.stages > problem.units) return {};
  return Partition(problem).run();
}

std::vector<int> even_cuts(int units, int stages) {
  std::vector<int> cuts;
  for (int s = 0; s <= stages; ++s)
    cuts.push_back(static_cast<int>(static_cast<long>(units) * s / stages));
  return cuts;
}

}  // namespace plait
