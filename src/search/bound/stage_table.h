#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cost/engine.h"
#include "cost/span_frame.h"
#include "search/bound/bounds.h"
#include "search/bound/send_lower_bound.h"
#include "search/bound/tied_sync_lower_bound.h"
#include "search/space/run_costs.h"
#include "search/space/space.h"
#include "search/space/stage_costs.h"

namespace plait {

// All stages that plans with the same settings may have, with their costs: the ground that the
// planners build on. Not thread-safe: frames are made when first asked for.
class StageTable final : public StageCosts {
 public:
  StageTable(
      const Space& space, const CostEngine& engine, const PlanSettings& settings, Schedule schedule,
      const std::function<bool()>& stop = [] { return false; });

  // Else it was stopped while it was made, and is of no use.
  bool is_whole() const { return bounds_ != nullptr; }

  const PlanSettings& settings() const { return settings_; }
  Schedule schedule() const { return schedule_; }
  ScheduleSetting rhythm() const { return {schedule_, settings_.micro_batches}; }
  const std::vector<StageOption>& options() const { return options_; }

  // Where option o begins in its pools when used[p] devices of pool p are taken; false when a pool
  // has too few left. Devices that are skipped to align are lost.
  bool place(int o, std::span<const int> used, std::vector<int>& begin) const;
  // The same, and takes those devices: used[p] counts them, too.
  bool take(int o, std::vector<int>& used, std::vector<int>& begin) const;

  // What runs of units cost on option o where its takes begin there.
  RunCosts& runs(int o, const std::vector<int>& begin);
  // The same where its takes begin on nodes of their own, which is the cheapest of all places.
  // Nothing when a pool is too small.
  RunCosts* first_runs(int o);

  // Least time of the hand-over from one option to another before a unit.
  Seconds hand_over(int from, int to, int unit);

  // What follows the pipeline for a tied embedding, at least: with this first stage, which begins
  // there, and this last one; with any first stage.
  Seconds tied(int first, const std::vector<int>& begin, int last) const {
    return tied_->between(options_[first], begin.front(), options_[last]);
  }
  Seconds tied_to(int last) const override { return tied_to_[last]; }
  bool ends_are_tied() const { return tied_->any(); }

  const Bounds& bounds() const { return *bounds_; }
  Seconds tighten(
      Seconds incumbent, const BoundWork& work,
      const std::function<bool()>& stop = [] { return false; }) {
    return bounds_->tighten(sends_, incumbent, work, stop);
  }

  int option_count() const override { return static_cast<int>(options_.size()); }
  const StageOption& option_at(int o) const override { return options_[o]; }
  StageTime run_time(int o, const UnitRange& units) override;
  void last_times(int o, int begin, std::span<const int> ends, Seconds limit,
                  std::vector<StageTime>& times) override;

 private:
  void drop_dominated_options(const std::function<bool()>& stop);

  const Space& space_;
  const CostEngine& engine_;
  PlanSettings settings_;
  Schedule schedule_;
  TableSource tables_;
  SendLowerBound sends_;
  std::vector<StageOption> options_;
  // By option, then by where in a node its takes begin.
  std::vector<std::vector<std::unique_ptr<RunCosts>>> runs_;
  std::vector<std::optional<RunCosts*>> first_runs_;  // by option, on free pools
  // By option; [to * kinds + kind of the unit before] = hand-over, negative where not known yet.
  std::vector<std::vector<Seconds>> hand_overs_;
  std::unique_ptr<TiedSyncLowerBound> tied_;
  std::vector<Seconds> tied_to_;  // by option of the last stage
  std::unique_ptr<Bounds> bounds_;
};

}  // namespace plait
