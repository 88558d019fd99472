#pragma once

#include <vector>

#include "base/units.h"
#include "plan/plan.h"

namespace plait {

// The largest value of any range of units. Neighbours with equal values are kept once, so that the
// many equal layers of a deep model take the room of one.
class RangeMaximum {
 public:
  RangeMaximum() = default;
  explicit RangeMaximum(const std::vector<Bytes>& values);

  bool empty() const { return starts_.empty(); }
  Bytes most(const UnitRange& range) const;  // not of an empty range

 private:
  std::size_t run_of(int unit) const;

  std::vector<int> starts_;                 // of runs of equal values
  std::vector<std::vector<Bytes>> levels_;  // [l][i] = most of runs [i, i + 2^l)
};

}  // namespace plait
