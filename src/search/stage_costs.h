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
  // A run of units on option o: if `after` >= 0, with the fastest recompute that fits when so many
  // stages follow, infinite when there is none; else a time that adds up over units and that no
  // stage undercuts.
  virtual StageTime run_time(int o, const UnitRange& units, int after) = 0;
  // What follows the pipeline for a tied embedding when o is the last stage, at least.
  virtual Seconds tied_to(int o) const = 0;
};

}  // namespace plait
