#pragma once

#include <vector>

#include "plan/problem.h"
#include "search/moves/draft.h"
#include "search/space/space.h"

namespace plait {

// What all moves on the plans of one problem go by: which values are free, and how fast devices
// are.
class Ground {
 public:
  explicit Ground(const Space& space);

  const Problem& problem() const { return problem_; }
  const Cluster& cluster() const { return problem_.cluster; }
  const Pins& pins() const { return pins_; }
  int micro_batch(const Draft& draft) const {
    return problem_.job.global_batch / draft.settings.micro_batches;
  }
  int type(DeviceId id) const { return problem_.cluster.device(id).type; }
  int node(DeviceId id) const { return problem_.cluster.device(id).node; }
  int node_size(DeviceId id) const { return static_cast<int>(devices_[node(id)].size()); }
  const std::vector<std::vector<DeviceId>>& devices_of_nodes() const { return devices_; }
  double speed(int type) const { return speeds_[type]; }

  // What may be chosen, in ascending order of trouble to the user.
  const std::vector<Schedule>& schedules() const { return schedules_; }
  const std::vector<Recompute>& recomputes() const { return recomputes_; }
  bool recomputes_by_layer() const { return recomputes_by_layer_; }
  const std::vector<ZeroStage>& zeros() const { return zeros_; }
  const std::vector<int>& micro_batches() const { return micro_batches_; }  // ascending
  const std::vector<int>& chunk_counts() const { return chunk_counts_; }    // of interleaved
  bool allows_tensor(int degree) const;
  bool allows_expert(int degree) const;

  // Weight of the units before each one: their work.
  const std::vector<double>& prefix() const { return prefix_; }

  // Samples for the replicas: equal where they are alike, else in proportion to their speed. False
  // when one would have none.
  bool share_out(Draft& draft, DraftStage& stage) const;
  bool share_out(Draft& draft) const;

  // Whether the draft is a plan that obeys the pins. (Plans are checked by check_plan() as well
  // before anybody sees them; this is quicker.)
  bool is_sound(const Draft& draft) const;
  Plan plan_of(const Draft& draft) const;
  void lay_out(const Draft& draft, Plan& plan) const;  // the same, in the room of an earlier plan
  // That of the plan: of a draft of one stage another one than the draft says.
  Schedule schedule_of(const Draft& draft) const;

 private:
  bool is_sound(const Draft& draft, const DraftStage& stage) const;
  bool obeys_pins(const Draft& draft) const;
  // With whole layers recomputed, rounded up.
  UnitsRecomputed::Runs by_layers(const UnitRange& units, UnitsRecomputed recompute) const;

  const Problem& problem_;
  Pins pins_;
  std::vector<std::vector<DeviceId>> devices_;  // by node
  std::vector<double> speeds_;                  // by device type
  std::vector<bool> tensor_degrees_;            // [degree]
  std::vector<int> expert_degrees_;
  std::vector<Schedule> schedules_;
  std::vector<Recompute> recomputes_;
  bool recomputes_by_layer_ = false;
  std::vector<ZeroStage> zeros_;
  std::vector<int> micro_batches_;
  std::vector<int> chunk_counts_;
  std::vector<double> prefix_;
};

}  // namespace plait
