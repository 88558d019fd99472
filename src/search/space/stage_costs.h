#pragma once

#include <span>
#include <vector>

#include "search/space/pipeline_suffix.h"
#include "search/space/space.h"

namespace plait {

// What the options of a StageTable cost, as the bounds see them.
class StageCosts {
 public:
  virtual ~StageCosts() = default;
  virtual int option_count() const = 0;
  virtual const StageOption& option_at(int o) const = 0;
  // A run of units on option o: a time that adds up over units and that no stage undercuts.
  virtual StageTime run_time(int o, const UnitRange& units) = 0;
  // Of the runs that begin at a unit and end at each of these, ascending, with the fastest
  // recompute that fits when no stage follows; up to the first that takes as long as the limit in a
  // step, or does not fit.
  virtual void last_times(int o, int begin, std::span<const int> ends, Seconds limit,
                          std::vector<StageTime>& times) = 0;
  // What follows the pipeline for a tied embedding when o is the last stage, at least.
  virtual Seconds tied_to(int o) const = 0;
};

}  // namespace plait
