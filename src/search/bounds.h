#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/units.h"
#include "plan/plan.h"
#include "search/relaxation.h"
#include "search/space.h"
#include "search/stage_costs.h"
#include "search/tail.h"

namespace plait {

// Lower bounds on steps whose last stages are known; docs/planners.md#bounds derives them.
//
// The cheap ones compare work and devices through prices: a device of pool p is worth what it does
// of the model in a second when used best, and a unit costs at least the cheapest price * devices *
// seconds over all options. So the slowest of the open stages takes at least
//   Y = spend of the open units / worth of the free devices.
// The tight ones are a Relaxation.
class Bounds {
 public:
  Bounds(const Space& space, const PlanSettings& settings, Schedule schedule, StageCosts& costs);

  // No step at all is shorter, under any schedule; cheap, and what settings are ranked by.
  Seconds any_step() const;
  // No step under the searched schedule is shorter than this or than the incumbent. Makes the
  // bounds below tight, as far as `work` goes and until it is told to stop, for plans that are
  // faster than the incumbent.
  Seconds tighten(const HandOverFloor& sends, Seconds incumbent, double work,
                  const std::function<bool()>& stop);

  // No step with these last stages and units [0, left) still open is shorter than this (or than the
  // incumbent that the bounds were tightened for). `tied`: what follows the pipeline, at least.
  Seconds step(const Tail& tail, int left, std::span<const int> used, Seconds tied) const;
  // Whether no step is below `limit` that has these last stages, in front of them a stage of which
  // nothing is known but that its devices are part of `used`, and then units [0, left).
  bool hopeless(const Tail& tail, int left, std::span<const int> used, Seconds limit) const;
  // Of a micro-batch through all stages.
  Seconds least_round_trip() const { return least_latency_.back(); }
  // The slowest stage of any way to run units [0, left) on the devices that are free.
  Seconds slowest_stage(int left, std::span<const int> used) const {
    return at_will(pipeline_, left, used);
  }

 private:
  // Prices of devices and least spend of units, for one way to count a stage's time.
  struct Economy {
    std::vector<double> device_price;  // by pool
    std::vector<double> least_spend;   // [i] = units [0, i)
  };
  Economy economy_of(const std::vector<std::vector<double>>& time) const;
  Seconds at_will(const Economy& economy, int left, std::span<const int> used) const;

  const Space& space_;
  PlanSettings settings_;
  Schedule schedule_;
  StageCosts& costs_;
  Economy pipeline_;                    // by x
  Economy step_;                        // by x + finish / m
  std::vector<Seconds> least_latency_;  // [i] = units [0, i), each on its fastest option
  std::unique_ptr<Relaxation> relaxation_;
};

}  // namespace plait
