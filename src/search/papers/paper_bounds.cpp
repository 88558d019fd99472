#include <algorithm>
#include <cmath>

#include "cost/framework/framework.h"
#include "cost/stage_cost.h"
#include "search/papers/paper_search.h"
#include "search/space/pipeline_suffix.h"

// What PaperSearch leaves out when only plans faster than a cutoff are asked for.
namespace plait {
namespace {

// Sums of the same times in another order may differ by so much.

}  // namespace

void Pace::Times::lower(const Times& other) {
  for (std::size_t k = 0; k < by_kind.size(); ++k)
    by_kind[k] = std::min(by_kind[k], other.by_kind[k]);
  whole = std::min(whole, other.whole);
  settle();
}

void Pace::lower(const Pace& other) {
  pass.lower(other.pass);
  step.lower(other.step);
}

void Pace::Times::settle() {
  part.clear();
  for (const double time : by_kind) part.push_back(time / whole);
  worth = 1 / whole;
}

// On the replica that is slowest over the whole model, so that times add up. What a run of units
// saves of its gradients' time against its units one by one is latency and counts for none, as in
// Bounds.
const Pace& PaperSearch::pace(PaperFrame& known, int micro_batches) const {
  Pace& pace = known.pace;
  if (!pace.empty()) return pace;
  const SpanFrame& frame = known.span;
  const auto on = [&](int r, const UnitRange& range) {
    return frame.time_on(r, range, recompute_).total().value;
  };
  int slowest = 0;
  for (int r = 1; r < frame.replica_count(); ++r)
    if (on(r, {0, units()}) > on(slowest, {0, units()})) slowest = r;
  const auto finish = [&](const UnitRange& range) {
    return (frame.least_gradient_sync(range) + frame.optimizer(range)).value;
  };
  const std::vector<int>& kind_of = space_.problem().model.units;
  double latency = 0;
  for (int u = 0; u + 1 < units(); ++u)
    if (u == 0 || kind_of[u] != kind_of[u - 1] || kind_of[u + 1] != kind_of[u])
      latency = std::max(latency, finish({u, u + 1}) + finish({u + 1, u + 2}) - finish({u, u + 2}));
  pace.pass.by_kind.assign(units_of_kind_.size(), 0);
  pace.step.by_kind = pace.pass.by_kind;
  for (int u = 0; u < units(); ++u) {
    const int kind = kind_of[u];
    if (pace.pass.by_kind[kind] > 0) continue;
    const double once = std::max(0.0, finish({u, u + 1}) - latency);
    pace.pass.by_kind[kind] = on(slowest, {u, u + 1});
    pace.step.by_kind[kind] = pace.pass.by_kind[kind] + once / micro_batches;
  }
  pace.pass.whole = on(slowest, {0, units()});
  for (const int kind : kind_of) pace.step.whole += pace.step.by_kind[kind];
  pace.pass.settle();
  pace.step.settle();
  return pace;
}

// A node's devices send their part of the micro-batch over its network, one of them at least as
// much as it has on average; the same holds for those that receive.
Seconds PaperSearch::send_floor(const PlanSettings& settings, std::span<const DeviceId> from,
                                std::span<const DeviceId> to) const {
  const Problem& problem = space_.problem();
  const std::vector<NodeShare> senders = by_node(problem.cluster, from);
  const std::vector<NodeShare> receivers = by_node(problem.cluster, to);
  const bool apart = std::ranges::none_of(senders, [&](const NodeShare& sender) {
    return std::ranges::find(receivers, sender.node, &NodeShare::node) != receivers.end();
  });
  if (!apart || !problem.profile.collectives.empty() || !std::isfinite(least_output_)) return {};
  const double samples = static_cast<double>(problem.job.global_batch) / settings.micro_batches;
  const Bytes whole(activation_bytes(problem.job.precision) * least_output_ * samples /
                    settings.context);
  const double nodes = static_cast<double>(std::min(senders.size(), receivers.size()));
  return least_latency_ + whole / nodes / fastest_uplink_;
}

Seconds PaperSearch::tied_sync(std::span<const DeviceId> first, std::span<const DeviceId> last,
                               int tensor) const {
  Seconds sum;
  for (const Tie& tie : space_.problem().model.ties)
    if (tie.first == 0 && tie.second == units() - 1)
      sum += tied_sync_time(space_.problem(), tie, first, last, tensor);
  return sum;
}

// At least spend of the units / sum of the stages' worth, as in Bounds; and until they have done
// all units of the most frequent kind, each a whole number of them.
bool PaperSearch::takes_at_least(double limit, Pace::Times Pace::*times) const {
  if (limit <= 0) return true;
  double worth = 0;
  for (const EqualStages& equal : paces_) worth += equal.count * (equal.pace->*times).worth;
  double spend = 0;
  for (std::size_t k = 0; k < units_of_kind_.size(); ++k) {
    double least = HUGE_VAL;
    for (const EqualStages& equal : paces_) least = std::min(least, (equal.pace->*times).part[k]);
    spend += units_of_kind_[k] * least;
  }
  if (spend >= limit * worth) return true;
  const int most = units_of_kind_[most_frequent_kind_];
  int done = 0;
  for (const EqualStages& equal : paces_) {
    const double units = limit / (equal.pace->*times).by_kind[most_frequent_kind_];
    if (units * (1 + kSameTime) >= most) return false;
    done += equal.count * static_cast<int>(units * (1 + kSameTime));
  }
  return done < most;
}

// With k micro-batches in flight on the slowest stage, x its time, L and R the round trips before
// and after it, a step takes m x + finish, L + m x, and L + 2 R + (m - k + 1) x or, if k >= m,
// L + R + x + (m - 1) x / 2; the mean of the two before is at least the round trip through all
// stages and (m - 1 - (k - 1) / 2) x.
bool PaperSearch::is_hopeless(std::span<const Pace* const> stages, const Between& between,
                              int micro_batches) {
  if (!has_cutoff_) return false;
  paces_.clear();
  for (const Pace* pace : stages) {
    const auto at = std::ranges::find(paces_, pace, &EqualStages::pace);
    if (at == paces_.end())
      paces_.push_back({pace, 1});
    else
      ++at->count;
  }
  const double m = micro_batches;
  const double cutoff = this->cutoff().value / (1 - kSameTime) - between.tied.value;
  if (takes_at_least(cutoff / m, &Pace::step)) return true;
  double limit = cutoff / m;
  if (schedule_ != Schedule::gpipe) {
    double way = 2 * between.sends.value;
    for (std::size_t k = 0; k < units_of_kind_.size(); ++k) {
      double least = HUGE_VAL;
      for (const EqualStages& equal : paces_) least = std::min(least, equal.pace->pass.by_kind[k]);
      way += units_of_kind_[k] * least;
    }
    if (way >= cutoff) return true;
    const double most_in_flight = static_cast<double>(stages.size());
    const double more = most_in_flight < m ? m - 1 - (most_in_flight - 1) / 2 : (m - 1) / 2;
    if (more > 0) limit = std::min(limit, (cutoff - way) / more);
  }
  return takes_at_least(limit, &Pace::pass);
}

bool PaperSearch::is_hopeless(const Layout& layout) {
  if (!has_cutoff_) return false;
  std::vector<const Pace*> stages;
  for (PaperFrame* frame : layout.frames)
    stages.push_back(&pace(*frame, layout.settings.micro_batches));
  const std::vector<Slot>& slots = layout.slots;
  Between between;
  for (std::size_t s = 0; s + 1 < slots.size(); ++s)
    between.sends += send_floor(layout.settings, slots[s].devices, slots[s + 1].devices);
  if (slots.size() > 1)
    between.tied = tied_sync(slots.front().devices, slots.back().devices, slots.back().tensor);
  return is_hopeless(stages, between, layout.settings.micro_batches);
}

StageTime PaperSearch::stage_time(PaperFrame& frame, const UnitRange& units) {
  PaperFrame::Run* const run = known_run(frame, units);
  if (run != nullptr && run->is_timed) return run->time;
  const PassTime time = frame.span.pass_time(units, recompute_);
  const Seconds sync = frame.span.gradient_sync(units, frame.span.cover(units, recompute_));
  const StageTime stage{time.forward, time.backward, sync + frame.span.optimizer(units)};
  if (run != nullptr) {
    run->time = stage;
    run->is_timed = true;
  }
  return stage;
}

bool PaperSearch::is_slow(const Layout& layout, const std::vector<int>& cuts, const Sends* sends) {
  if (!has_cutoff_) return false;
  const ScheduleSetting rhythm{schedule_, layout.settings.micro_batches};
  PipelineSuffix tail;
  for (int s = layout.stages() - 1; s >= 0; --s) {
    const StageTime stage = stage_time(*layout.frames[s], {cuts[s], cuts[s + 1]});
    const bool hands_over = sends != nullptr && s + 1 < layout.stages();
    tail.prepend(stage, hands_over ? sends->between[s] : Seconds(0), rhythm);
  }
  const Seconds tied = sends != nullptr ? sends->tied : Seconds(0);
  const bool slow = (1 - kSameTime) * (tail.step() + tied) >= cutoff();
  slow_ += slow ? 1 : 0;
  return slow;
}

}  // namespace plait
