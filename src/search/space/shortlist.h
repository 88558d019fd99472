#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cost/engine.h"
#include "plan/target.h"
#include "search/space/search.h"

namespace plait {

// The best plans seen so far, by simulated step time; ties by the plans' own order. Pipelines that
// would be the best without their bubble are kept apart, for schedules that have less of it. So is,
// of plans that do not fit, the one that is nearest to fitting.
class Shortlist {
 public:
  Shortlist(const CostEngine& engine, int keep, Target target = {})
      : engine_(engine), keep_(keep), target_(std::move(target)) {}

  // Simulates the plan and files it; true when it became the best. Plans that the target does not
  // run are left alone.
  bool offer(const Plan& plan);
  void merge(const Shortlist& other);
  // The plans so far, as the incumbents of a task that counts its own evaluations.
  Shortlist without_counts() const;

  bool empty() const { return plans_.empty(); }
  const std::vector<RankedPlan>& plans() const { return plans_; }
  const std::vector<RankedPlan>& without_bubble() const { return without_bubble_; }
  const std::optional<RankedPlan>& nearest() const { return nearest_; }
  // The plans, but irregular ones that are less than 1 % faster than the best regular one are left
  // out: they are not worth the trouble.
  std::vector<RankedPlan> regular_first() const;
  // Step time of the best plan, infinite when there is none.
  Seconds best() const;
  // Step time that a plan must not exceed to enter the list.
  Seconds worst_kept() const;
  std::int64_t evaluations() const { return evaluations_; }

 private:
  void insert(RankedPlan plan);
  void insert_without_bubble(const RankedPlan& plan);
  void insert_regular(const RankedPlan& plan);

  const CostEngine& engine_;
  int keep_;
  Target target_;
  std::vector<RankedPlan> plans_;           // best first
  std::vector<RankedPlan> without_bubble_;  // the same
  std::optional<RankedPlan> nearest_;
  std::optional<RankedPlan> regular_;  // the best one
  std::int64_t evaluations_ = 0;
};

// Whether all stages are cut alike: easy to launch, and easy to reason about.
bool is_regular(const Plan& plan);

// Bytes by which the tightest stage exceeds its memory; negative when all fit.
Bytes excess_of(const Estimate& estimate);

}  // namespace plait
