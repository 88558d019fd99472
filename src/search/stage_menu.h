#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cost/engine.h"
#include "cost/span_frame.h"
#include "search/space.h"
#include "search/tail.h"

namespace plait {

// All stages that plans with the same settings may have, with their costs: the ground that the
// planners build on. Not thread-safe: frames are made when first asked for.
class StageMenu {
 public:
  StageMenu(const Space& space, const CostEngine& engine, const PlanSettings& settings,
            Schedule schedule);

  const PlanSettings& settings() const { return settings_; }
  Schedule schedule() const { return schedule_; }
  const std::vector<StageOption>& options() const { return options_; }

  // Where option o begins in its pools when used[p] devices of pool p are taken; false when a pool
  // has too few left. Devices that are skipped to align are lost.
  bool place(int o, std::span<const int> used, std::vector<int>& begin) const;

  const SpanFrame& frame(int o, const std::vector<int>& begin);

  struct Choice : StageTime {
    Recompute recompute = Recompute::none;
  };
  // The fastest recompute choice with which the units fit when `after` stages follow; nothing when
  // none fits.
  std::optional<Choice> choose(const SpanFrame& frame, const UnitRange& units, int after) const;
  Choice cost(const SpanFrame& frame, const UnitRange& units, Recompute recompute) const;
  bool fits(const SpanFrame& frame, const UnitRange& units, Recompute recompute, int after) const;

  // No pipeline whose last stages are `tail` and whose other stages run units [0, left) on the
  // devices that are not used is shorter than this (without sends). docs/planners.md#bounds derives
  // it.
  Seconds bound(const Tail& tail, int left, std::span<const int> used) const;
  // The slowest stage of any way to run units [0, i) on the devices that are left takes at least
  // this long, even if units and devices could be split at will.
  Seconds least_stage(int i, std::span<const int> used) const;

 private:
  void find_bounds();
  double fewest_rounds(int after, int left) const;

  const Space& space_;
  const CostEngine& engine_;
  PlanSettings settings_;
  Schedule schedule_;
  TableSource tables_;
  std::vector<StageOption> options_;
  // By option, then by where in a node its takes begin.
  std::vector<std::vector<std::unique_ptr<SpanFrame>>> frames_;
  std::vector<Seconds> least_latency_;  // [i] = units [0, i), each on its fastest option
  // A price per device of each pool, and the least price * devices * seconds of units [0, i) over
  // all options: the dual of splitting work over pools at will.
  std::vector<double> device_price_;
  std::vector<double> least_spend_;
  std::vector<int> tiny_units_;      // [i] = units of [0, i) that cost next to nothing
  std::vector<double> large_units_;  // [i] = least_spend_[i] / the least spend of the others
  mutable std::vector<std::vector<double>> rounds_;  // fewest_rounds, made when asked for; -1 = not
};

}  // namespace plait
