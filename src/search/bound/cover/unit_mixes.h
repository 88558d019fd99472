#pragma once

#include <cmath>
#include <functional>
#include <span>
#include <vector>

namespace plait {

// The units of a model by kind, in any order: a mix says how many of each kind. Stages of any
// schedule, in one chunk or in several, are mixes that add up to the model; what follows from that
// alone holds for all of them.
class UnitMixes {
 public:
  // units[i] is the kind of unit i.
  explicit UnitMixes(std::span<const int> units);

  int kind_count() const { return static_cast<int>(kinds_.size()); }
  int kind(int k) const { return kinds_[k]; }  // the model's number of the k-th kind here
  int mix_count() const { return mix_count_; }
  int whole() const { return mix_count_ - 1; }  // the mix of all units
  // How many units of the k-th kind a mix has.
  int units_of(int mix, int k) const { return units_[mix * kinds_.size() + k]; }
  // The mix with one unit of the k-th kind less; it must have one.
  int without(int mix, int k) const { return mix - stride_[k]; }

  // Pairs of a mix and a part of it that partition() looks at; doubles, there may be many.
  double pairs() const;
  // Of all ways to divide the units among stages, the one whose stages cost least, by mix; cost[0]
  // is not read. `parts` receives its stages. Infinite when there is none.
  double partition(std::span<const double> cost, std::vector<int>* parts = nullptr) const;

 private:
  std::vector<int> kinds_;   // those with most units first
  std::vector<int> counts_;  // units of each
  std::vector<int> stride_;
  std::vector<int> units_;  // [mix * kinds + kind]; empty when there are too many mixes
  int mix_count_ = 1;
};

}  // namespace plait
