#include "search/bound/cover/unit_mixes.h"

#include <algorithm>
#include <map>

namespace plait {
namespace {

constexpr double kMostMixes = 1e6;

}  // namespace

UnitMixes::UnitMixes(std::span<const int> units) {
  std::map<int, int> counts;
  for (const int kind : units) ++counts[kind];
  for (const auto& [kind, count] : counts) kinds_.push_back(kind);
  std::ranges::stable_sort(kinds_, std::greater<>(), [&](int kind) { return counts[kind]; });
  double all = 1;
  for (const int kind : kinds_) {
    counts_.push_back(counts[kind]);
    stride_.push_back(all <= kMostMixes ? static_cast<int>(all) : 1);
    all *= counts[kind] + 1;
  }
  mix_count_ = all <= kMostMixes ? static_cast<int>(all) : 0;
  for (int mix = 0; mix < mix_count_; ++mix)
    for (std::size_t k = 0; k < kinds_.size(); ++k)
      units_.push_back(mix / stride_[k] % (counts_[k] + 1));
}

double UnitMixes::pairs() const {
  if (mix_count_ == 0) return HUGE_VAL;
  double all = 1;
  for (const int count : counts_) all *= 0.5 * (count + 1) * (count + 2);
  return all;
}

// A stage that has a unit of the rarest kind that is left is taken first, so that the stages of a
// partition are counted in one order only. Parts of a mix are run through like the digits of a
// number.
double UnitMixes::partition(std::span<const double> cost, std::vector<int>* parts) const {
  const int kinds = kind_count();
  std::vector<double> best(mix_count_, HUGE_VAL);
  std::vector<int> taken(parts != nullptr ? mix_count_ : 0);
  std::vector<int> most(kinds);
  std::vector<int> digit(kinds);
  best[0] = 0;
  for (int mix = 1; mix < mix_count_; ++mix) {
    int top = 0;
    for (int k = 0; k < kinds; ++k) {
      most[k] = units_of(mix, k);
      if (most[k] > 0) top = k;
      digit[k] = 0;
    }
    digit[top] = 1;
    int part = stride_[top];
    while (true) {
      const double sum = cost[part] + best[mix - part];
      if (sum < best[mix]) {
        best[mix] = sum;
        if (parts != nullptr) taken[mix] = part;
      }
      int k = 0;
      while (k <= top && digit[k] == most[k]) {
        const int least = k == top ? 1 : 0;
        part -= (digit[k] - least) * stride_[k];
        digit[k++] = least;
      }
      if (k > top) break;
      ++digit[k];
      part += stride_[k];
    }
  }
  if (parts != nullptr) {
    parts->clear();
    for (int mix = whole(); mix > 0 && std::isfinite(best[mix]); mix -= taken[mix])
      parts->push_back(taken[mix]);
  }
  return best[whole()];
}

}  // namespace plait
