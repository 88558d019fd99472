#pragma once

#include <algorithm>
#include <vector>

#include "model/model.h"
#include "plan/plan.h"

namespace plait {

// Parameters of which a run of units keeps a second copy, because it has the unit that uses them
// again but not the unit that owns them: tied_copies() of cost/span_frame.h, without a look at
// every tie. Models of shared layers have as many ties as layers, all with one owner.
class TiedCopies {
 public:
  explicit TiedCopies(const Model& model);

  bool any() const { return !owners_.empty(); }
  double of(const UnitRange& run) const {
    double copies = 0;
    for (const Owner& owner : owners_)
      if (owner.unit < run.begin || owner.unit >= run.end)
        copies += owner.used_before[run.end] - owner.used_before[run.begin];
    return copies;
  }

  // The next unit in front of a run with which it would keep fewer copies; -1 when there is none.
  // Up to that unit a longer run needs more memory.
  int next_owner(const UnitRange& run) const {
    int next = -1;
    for (const Owner& owner : owners_)
      if (owner.unit < run.begin && owner.used_before[run.end] > owner.used_before[run.begin])
        next = std::max(next, owner.unit);
    return next;
  }

 private:
  struct Owner {
    int unit = 0;
    std::vector<double> used_before;  // [i]: parameters that units [0, i) use again
  };
  std::vector<Owner> owners_;
};

}  // namespace plait
