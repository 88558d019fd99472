#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/units.h"
#include "plan/plan.h"
#include "search/bound/relaxation.h"
#include "search/space/pipeline_suffix.h"
#include "search/space/space.h"
#include "search/space/stage_costs.h"

namespace plait {

// Lower bounds on steps whose last stages are known; docs/planners.md#bounds derives them.
//
// The cheap ones compare work and devices through prices: a device of pool p is worth what it does
// of the model in a second when used best (by itself, or, where the pins allow mixed stages only,
// as a part of one), and a unit costs at least the cheapest price * devices * seconds over all
// options. So the slowest of the open stages takes at least
//   Y = spend of the open units / worth of the free devices.
// Any prices give a bound; but every pool that an option takes from must have one, since devices
// that are worth nothing would do their work in no time and seem to do none.
// The tight ones are a Relaxation.
class Bounds {
 public:
  // Of no use where it was stopped.
  Bounds(const Space& space, const PlanSettings& settings, Schedule schedule, StageCosts& costs,
         const std::function<bool()>& stop);

  // Lower bound on a step under any schedule. It is cheap, and settings are ranked by it.
  Seconds any_step() const;
  // Lower bound on a step under the searched schedule, at most the incumbent. Also tightens the
  // bounds below for plans that are faster than the incumbent, within `work` and until `stop`.
  Seconds tighten(const SendLowerBound& sends, Seconds incumbent, const BoundWork& work,
                  const std::function<bool()>& stop);

  // What the bounds know of the devices that are left when `used` are taken. Valid until the bounds
  // are tightened.
  struct Rest {
    double pipeline = 0;  // worth, by x
    double step = 0;      // the same by x + finish / m
    std::vector<double> by_cell;
  };
  void set_rest(std::span<const int> used, Rest& rest) const;
  // Lower bound on a step with these last stages and units [0, left) still open, at most the
  // incumbent that the bounds were tightened for. `tied`: lower bound on what follows the pipeline.
  Seconds step(const PipelineSuffix& tail, int left, const Rest& rest, Seconds tied) const;
  // True if every plan with this suffix takes at least `limit`, when one more stage stands in front
  // of it, whose devices are not part of the rest, and units [0, left) in front of that.
  bool hopeless(const PipelineSuffix& tail, int left, const Rest& rest, Seconds limit) const;
  // Lower bound on the round trip of a micro-batch through all stages.
  Seconds least_round_trip() const { return least_latency_.back(); }
  // The slowest stage of any way to run units [0, left) on the devices that are free.
  Seconds slowest_stage(int left, const Rest& rest) const {
    return time_if_work_were_divisible(pipeline_, left, rest.pipeline);
  }

 private:
  // Prices of devices and least spend of units, for one way to count a stage's time.
  struct Economy {
    std::vector<double> device_price;  // by pool
    std::vector<double> least_spend;   // [i] = units [0, i)
  };
  Economy economy_of(const std::vector<std::vector<double>>& time) const;
  double worth(const Economy& economy, std::span<const int> used) const;
  static Seconds time_if_work_were_divisible(const Economy& economy, int left, double worth) {
    if (worth > 0) return Seconds(economy.least_spend[left] / worth);
    return Seconds(left == 0 ? 0 : HUGE_VAL);
  }

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
