#pragma once

#include <span>
#include <vector>

#include "base/units.h"
#include "plan/plan.h"
#include "search/space.h"
#include "search/tail.h"

namespace plait {

// What the options of a menu can do, as the bounds see them: times of single units, and which runs
// of units fit. Implemented by StageMenu.
class StageCosts {
 public:
  virtual ~StageCosts() = default;
  virtual int option_count() const = 0;
  virtual const StageOption& option_at(int o) const = 0;
  // Time of a unit on option o with the fastest recompute; infinite when the option has no place.
  virtual double unit_time(int o, int unit) = 0;
  // Time of a run of units when `after` stages follow; infinite when it does not fit.
  virtual double run_time(int o, const UnitRange& units, int after) = 0;
};

// Lower bounds on pipelines whose last stages are known; docs/planners.md#bounds derives them.
//
// Work and devices are compared through prices: a device of pool p is worth what it does of the
// model in a second when used best, and a unit costs at least least_spend, the cheapest price *
// devices * seconds over all options. So the slowest of the open stages takes at least
//   Y = spend of the open units / worth of the free devices         (work split at will), and
//   Y = the least y for which stages of at most y seconds can hold the open units
//                                                                    (whole units that fit).
class Bounds {
 public:
  Bounds(const Space& space, const PlanSettings& settings, Schedule schedule, StageCosts& costs);

  // No pipeline with these last stages and units [0, left) still open is shorter (without sends).
  Seconds pipeline(const Tail& tail, int left, std::span<const int> used);
  // A part of the bound that does not need the stage between `tail` and the open units [0, left):
  // what is open when that stage has taken its devices. Cheap.
  Seconds open_units(const Tail& tail, int left, std::span<const int> used);
  // The slowest stage of any way to run units [0, left) on the devices that are free, when `after`
  // stages follow.
  Seconds slowest_stage(int left, int after, std::span<const int> used);
  // The first of the two kinds above alone: cheap, and what settings are ranked by.
  Seconds slowest_stage_at_will(int left, std::span<const int> used) const;

 private:
  // How much worth of units the devices of each pool can hold, per device, in stages of at most
  // `time` seconds; ascending in time.
  struct Step {
    double time = 0;
    std::vector<double> per_device;  // by pool
  };
  const std::vector<Step>& steps(int after);
  std::vector<Step> make_steps(int after);
  std::vector<UnitRange> runs() const;
  double fewest_rounds(int after, int left, double excess);

  const Space& space_;
  PlanSettings settings_;
  Schedule schedule_;
  StageCosts& costs_;
  std::vector<double> device_price_;      // by pool
  std::vector<double> least_spend_;       // [i] = units [0, i)
  std::vector<Seconds> least_latency_;    // [i] = units [0, i), each on its fastest option
  std::vector<int> tiny_units_;           // [i] = units of [0, i) that cost next to nothing
  std::vector<double> large_units_;       // [i] = least_spend_[i] / the least spend of the others
  std::vector<std::vector<Step>> steps_;  // by class of micro-batches in flight
  std::vector<std::vector<std::vector<double>>> rounds_;  // by stages after, units left, excess
};

}  // namespace plait
