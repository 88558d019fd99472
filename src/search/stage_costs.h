#pragma once

#include "search/space.h"
#include "search/tail.h"

namespace plait {

// What the options of a menu can do, as the bounds see them. Implemented by StageMenu.
class StageCosts {
 public:
  virtual ~StageCosts() = default;
  virtual int option_count() const = 0;
  virtual const StageOption& option_at(int o) const = 0;
  // A run of units on option o: a time that adds up over units and that no stage undercuts.
  virtual StageTime run_time(int o, const UnitRange& units) = 0;
  // The same with the fastest recompute that fits when no stage follows; infinite when there is
  // none. Quick where runs are asked for by where they begin.
  virtual StageTime last_time(int o, const UnitRange& units) = 0;
  // What follows the pipeline for a tied embedding when o is the last stage, at least.
  virtual Seconds tied_to(int o) const = 0;
};

}  // namespace plait
