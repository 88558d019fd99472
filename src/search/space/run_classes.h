#pragma once

#include <vector>

#include "model/model.h"
#include "plan/plan.h"

namespace plait {

// Runs of units that cost the same on the same devices, because they read the same: the same kinds
// in the same order, tied units and the ends of the model told apart.
class RunClasses {
 public:
  // Models of more units have none.
  static constexpr int kMostUnits = 320;
  explicit RunClasses(const Model& model);

  bool empty() const { return firsts_.empty(); }
  int count() const { return static_cast<int>(firsts_.size()); }
  int of(const UnitRange& run) const { return class_[run.begin * (units_ + 1) + run.end]; }
  // One run of the class; by class, ascending in begin, then in end.
  const std::vector<UnitRange>& firsts() const { return firsts_; }

 private:
  int units_ = 0;
  std::vector<int> class_;
  std::vector<UnitRange> firsts_;
};

}  // namespace plait
