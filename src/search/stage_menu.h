#pragma once

#include <map>
#include <optional>
#include <vector>

#include "cost/engine.h"
#include "cost/span_frame.h"
#include "search/space.h"

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

  // Where option o begins in its pools when used[p] devices of pool p are taken; nothing when a
  // pool has too few left. Devices that are skipped to align are lost.
  std::optional<std::vector<int>> place(int o, const std::vector<int>& used) const;

  const SpanFrame& frame(int o, const std::vector<int>& begin);

  struct Choice {
    Recompute recompute = Recompute::none;
    Seconds forward;
    Seconds backward;  // everything that is not forward
    Seconds total() const { return forward + backward; }
  };
  // The fastest recompute choice with which the units fit when `after` stages follow; nothing when
  // none fits.
  std::optional<Choice> choose(const SpanFrame& frame, const UnitRange& units, int after) const;
  Choice cost(const SpanFrame& frame, const UnitRange& units, Recompute recompute) const;
  bool fits(const SpanFrame& frame, const UnitRange& units, Recompute recompute, int after) const;

  // Time of units [0, i) on the fastest option for each: no plan's first stages take less.
  Seconds least_latency(int i) const { return least_latency_[i]; }
  // The slowest stage of any way to run units [0, i) on the devices that are left takes at least
  // this long, even if units and devices could be split at will.
  Seconds least_stage(int i, const std::vector<int>& used) const;

 private:
  void find_bounds();

  const Space& space_;
  const CostEngine& engine_;
  PlanSettings settings_;
  Schedule schedule_;
  TableSource tables_;
  std::vector<StageOption> options_;
  std::map<std::pair<int, std::vector<int>>, SpanFrame> frames_;  // (option, begin in its node)
  std::vector<Seconds> least_latency_;
  // A price per device of each pool, and the least price * devices * seconds of units [0, i) over
  // all options: the dual of splitting work over pools at will (docs/planners.md).
  std::vector<double> device_price_;
  std::vector<double> least_spend_;
};

}  // namespace plait
