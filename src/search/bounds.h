#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "base/units.h"
#include "plan/plan.h"
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
};

// Lower bounds on steps whose last stages are known; docs/planners.md#bounds derives them.
//
// A stage of x seconds per micro-batch with `finish` after the last makes the step at least
// m x + finish long; as the k-th from the end, at least 2 R + (m - k + 1) x, R being the round trip
// through the stages after it.
//
// Work and devices are compared through prices: a device of pool p is worth what it does of the
// model in a second when used best, and a unit costs at least the cheapest price * devices *
// seconds over all options. So the slowest of the open stages takes at least
//   Y = spend of the open units / worth of the free devices         (work split at will), and
//   Y = the least y for which stages of at most y seconds can hold the open units
//                                                                    (whole units that fit).
class Bounds {
 public:
  Bounds(const Space& space, const PlanSettings& settings, Schedule schedule, StageCosts& costs);

  // No step at all is shorter; cheap, and what settings are ranked by.
  Seconds any_step() const;
  // No step with these last stages and units [0, left) still open is shorter (without sends).
  Seconds step(const Tail& tail, int left, std::span<const int> used);
  // A part of that which does not need the stage between `tail` and the open units: what is open
  // when that stage has taken its devices. Cheap.
  Seconds open_units(const Tail& tail, int left, std::span<const int> used);
  // The slowest stage of any way to run units [0, left) on the devices that are free, when `after`
  // stages follow.
  Seconds slowest_stage(int left, int after, std::span<const int> used);

 private:
  // Prices of devices and least spend of units, for one way to count a stage's time.
  struct Economy {
    std::vector<double> device_price;  // by pool
    std::vector<double> least_spend;   // [i] = units [0, i)
  };
  Economy economy_of(const std::vector<std::vector<double>>& time) const;
  Seconds at_will(const Economy& economy, int left, std::span<const int> used) const;

  // How much worth of units the devices of each pool can hold, per device, in stages of at most
  // `time` seconds.
  struct Step {
    double time = 0;
    std::vector<double> per_device;  // by pool
  };
  const std::vector<Step>& steps(int after);  // ascending in time
  std::vector<Step> make_steps(int after);
  std::vector<UnitRange> runs() const;
  // Least length of the open part, in multiples of Y: 2 R + twice Y or R + once Y, whichever is
  // less.
  struct Rounds {
    bool made = false;
    double twice = HUGE_VAL;
    double once = HUGE_VAL;
  };
  Rounds rounds(int after, int left, double excess);
  Seconds open_length(Seconds known, int after, int left, double excess, Seconds split);

  const Space& space_;
  PlanSettings settings_;
  Schedule schedule_;
  StageCosts& costs_;
  Economy pipeline_;                      // by x
  Economy step_;                          // by x + finish / m
  std::vector<Seconds> least_latency_;    // [i] = units [0, i), each on its fastest option
  std::vector<int> tiny_units_;           // [i] = units of [0, i) that cost next to nothing
  std::vector<double> large_units_;       // [i] = spend of [0, i) / the least spend of the others
  std::vector<std::vector<Step>> steps_;  // by power of four of the micro-batches in flight
  std::vector<std::vector<std::vector<Rounds>>> rounds_;  // by stages after, units left, excess
};

}  // namespace plait
