#include "search/space/shortlist.h"

#include <algorithm>
#include <cmath>

namespace plait {
namespace {

bool better(const RankedPlan& a, const RankedPlan& b) {
  if (a.cost.step != b.cost.step) return a.cost.step < b.cost.step;
  return a.plan < b.plan;
}

// Plans that are kept for other schedules, whose bubble is smaller. A limit of work.
constexpr std::size_t kWithoutBubble = 8;
// What an irregular plan must gain; below the error of predictions (docs/accuracy.md).
constexpr double kWorthwhile = 0.01;

bool better_without_bubble(const RankedPlan& a, const RankedPlan& b) {
  const Seconds own = a.cost.step - a.cost.bubble;
  const Seconds other = b.cost.step - b.cost.bubble;
  return own != other ? own < other : a.plan < b.plan;
}

}  // namespace

Bytes excess_of(const Estimate& estimate) {
  Bytes excess(-HUGE_VAL);
  for (const StageCost& stage : estimate.stages)
    excess = std::max(excess, Bytes(0) - stage.spare());
  return excess;
}

bool Shortlist::offer(const Plan& plan) {
  if (why_not(target_, engine_.problem(), plan)) return false;
  ++evaluations_;
  RankedPlan ranked{plan, engine_.simulate(plan)};
  if (!ranked.cost.fits) {
    if (!nearest_ || excess_of(ranked.cost) < excess_of(nearest_->cost)) nearest_ = ranked;
    return false;
  }
  const bool first = plans_.empty() || better(ranked, plans_.front());
  insert_without_bubble(ranked);
  insert_regular(ranked);
  insert(std::move(ranked));
  return first;
}

void Shortlist::insert(RankedPlan plan) {
  const auto at = std::ranges::lower_bound(plans_, plan, better);
  if (at != plans_.end() && at->plan == plan.plan) return;
  plans_.insert(at, std::move(plan));
  if (static_cast<int>(plans_.size()) > keep_) plans_.pop_back();
}

void Shortlist::insert_without_bubble(const RankedPlan& plan) {
  if (plan.plan.stage_count() == 1) return;
  const auto at = std::ranges::lower_bound(without_bubble_, plan, better_without_bubble);
  if (at != without_bubble_.end() && at->plan == plan.plan) return;
  if (at == without_bubble_.end() && without_bubble_.size() == kWithoutBubble) return;
  without_bubble_.insert(at, plan);
  if (without_bubble_.size() > kWithoutBubble) without_bubble_.pop_back();
}

void Shortlist::insert_regular(const RankedPlan& plan) {
  if (!is_regular(plan.plan) || (regular_ && !better(plan, *regular_))) return;
  regular_ = plan;
}

std::vector<RankedPlan> Shortlist::regular_first() const {
  std::vector<RankedPlan> plans = plans_;
  if (!regular_ || plans.empty() ||
      plans.front().cost.step < (1 - kWorthwhile) * regular_->cost.step)
    return plans;
  std::erase_if(plans, [&](const RankedPlan& plan) { return better(plan, *regular_); });
  if (plans.empty() || plans.front().plan != regular_->plan) plans.insert(plans.begin(), *regular_);
  return plans;
}

bool is_regular(const Plan& plan) {
  const std::vector<Span>& first = plan.stages.front().spans;
  const auto alike = [&](const Span& a, const Span& b) {
    return a.tensor == first.front().tensor && a.data == first.front().data && a.chunk == b.chunk &&
           a.recompute == b.recompute;
  };
  return std::ranges::all_of(plan.stages, [&](const Stage& stage) {
    return stage.shares.empty() && std::ranges::equal(stage.spans, first, alike);
  });
}

void Shortlist::merge(const Shortlist& other) {
  for (const RankedPlan& plan : other.plans_) insert(plan);
  for (const RankedPlan& plan : other.without_bubble_) insert_without_bubble(plan);
  if (other.nearest_ && (!nearest_ || excess_of(other.nearest_->cost) < excess_of(nearest_->cost)))
    nearest_ = other.nearest_;
  if (other.regular_) insert_regular(*other.regular_);
  evaluations_ += other.evaluations_;
}

Shortlist Shortlist::without_counts() const {
  Shortlist copy = *this;
  copy.evaluations_ = 0;
  return copy;
}

Seconds Shortlist::best() const {
  return plans_.empty() ? Seconds(HUGE_VAL) : plans_.front().cost.step;
}

Seconds Shortlist::worst_kept() const {
  return static_cast<int>(plans_.size()) < keep_ ? Seconds(HUGE_VAL) : plans_.back().cost.step;
}

}  // namespace plait
