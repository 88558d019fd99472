#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "cost/estimate.h"
#include "cost/framework/framework.h"
#include "cost/layer/unit_cost.h"
#include "plan/plan.h"
#include "plan/problem.h"

namespace plait {

// The switches of a plan that every stage shares.
struct PlanSettings {
  int micro_batches = 1;
  int context = 1;
  int expert = 1;
  ZeroStage zero = ZeroStage::off;
  bool sequence_parallel = false;
  double offload = 0;
};
PlanSettings settings_of(const Plan& plan);
// A plan that has no stages yet.
Plan plan_under(const PlanSettings& settings, Schedule schedule);

// Units of a span, which touch those of the run before it, that are recomputed alike.
struct RecomputedRun {
  UnitRange units;
  Recompute recompute = Recompute::none;
  friend bool operator==(const RecomputedRun&, const RecomputedRun&) = default;
};
using RecomputedRuns = std::span<const RecomputedRun>;  // not empty

// Gives the unit costs of a replica shape; CostEngine keeps them.
using TableSource = std::function<const UnitTable&(const ReplicaShape&)>;

// Devices that run a span, and how: all that its cost depends on besides the units themselves. Made
// once, then asked for many runs of units.
class SpanFrame {
 public:
  // `devices` ordered as in Stage, tensor * data * context of them; `shares` as in Stage.
  SpanFrame(const Problem& problem, const PlanSettings& settings, std::span<const DeviceId> devices,
            int tensor, int data, std::span<const int> shares, const TableSource& tables,
            int split = 0);

  // One micro-batch, on the slowest replica. ZeRO-3's gathering is in the communication.
  UnitCost time(const UnitRange& units, Recompute recompute) const;
  // The same of runs that are recomputed in different ways: on the replica that is slowest over all
  // of them.
  UnitCost time(RecomputedRuns runs) const;
  // The totals of it.
  PassTime pass_time(const UnitRange& units, Recompute recompute) const {
    PassTime worst = replicas_.front().table->pass_time(units, recompute);
    for (std::size_t r = 1; r < replicas_.size(); ++r) {
      const PassTime time = replicas_[r].table->pass_time(units, recompute);
      if (time.total() > worst.total()) worst = time;
    }
    return worst;
  }
  // The same as time() on one of the distinct replicas.
  UnitCost time_on(int replica, const UnitRange& units, Recompute recompute) const {
    return replicas_[replica].table->cost(units, recompute);
  }
  // The compute of one micro-batch that the synchronisation of gradients may run beside: a unit's
  // gradients are summed while the units before it still run backward, in the last micro-batch, and
  // weights are gathered (ZeRO-1, 2) while units that have theirs run forward, in the first one of
  // the next step. Collectives of these passes that use the network themselves leave it less time.
  struct Cover {
    Seconds forward;
    Seconds backward;
  };
  // `split`: weight gradients are tasks of their own, and gradients wait for them.
  Cover cover(const UnitRange& units, Recompute recompute, bool split = false) const {
    return cover(time(units, recompute), split);
  }
  Cover cover(const UnitCost& time, bool split = false) const;
  // The same from times that are known already, and from how long they keep the network busy.
  // Weight gradients are part of the backward pass.
  Cover cover_of(const PassTime& time, const PassTime& network) const;
  // Once a step: what gradient synchronisation adds, and how long it takes by itself. The first
  // layer's gradients come last and its weights are wanted first: they hide behind nothing.
  Seconds gradient_sync(const UnitRange& units, const Cover& cover) const;
  Seconds whole_gradient_sync(const UnitRange& units) const;
  // At most gradient_sync() with any cover. Unlike it, a sum over units but for latency.
  Seconds least_gradient_sync(const UnitRange& units) const;
  // Of whole_gradient_sync(), how long the network between nodes is busy.
  Seconds sync_network(const UnitRange& units) const;
  Seconds optimizer(const UnitRange& units) const;
  // gradient_sync() and optimizer(), where both are sums of a latency and of times of parameters.
  struct FinishRates {
    struct Way {  // of gradients or of weights, through the groups of all parameters and of experts
      Seconds latency;
      Seconds expert_latency;
      Seconds of_parameter;
      Seconds of_expert_parameter;
      Seconds of(double parameters, double expert_parameters) const;
    };
    Way gradients;
    Way weights;  // gathered afterwards; beside the forward pass
    double price = 1;
    Seconds updated;  // by the optimizer, of a parameter
    Seconds expert_updated;
    struct Parameters {
      double all = 0;
      double experts = 0;
    };
    // Of a run of units and of its first layer.
    Seconds finish(const Parameters& run, const Parameters& first, const Cover& cover) const;
  };
  std::optional<FinishRates> finish_rates() const;

  // Bytes on one device. Two moments can be the fullest: the last micro-batch in the loss, and the
  // end of the backward pass, when only frameworks that free gradients between steps have more of
  // them than before.
  struct Memory {
    Bytes weights;
    Bytes gradients;
    Bytes optimizer_state;
    Bytes saved;        // of one micro-batch
    Bytes working_set;  // while a recomputed unit runs backward; the largest, not a sum
    Bytes transient;    // measured workspace of the unit that runs backward; the largest
    Bytes loss;         // logits and their gradients
    Bytes workspace;    // gathered or cast weights
    Bytes fixed;        // the framework's own, once on a device however many spans it runs
    Bytes kept_loss;    // of a loss whose backward pass has to wait for other micro-batches
    Bytes late;         // of the end of the backward pass, beside the gradients
    bool keeps_gradients = true;
    Bytes capacity;
    Bytes reserve;
    // With `live` micro-batches in flight, of which `waiting` are past their loss (GPipe).
    // The losses are over when recomputed units run backward.
    Bytes forward_peak(double live, double waiting = 0) const {
      return live * saved + std::max(working_set + transient, loss) + workspace +
             waiting * kept_loss;
    }
    bool is_late(double live, double waiting = 0) const {
      return !keeps_gradients && gradients + late > forward_peak(live, waiting);
    }
    Bytes peak(double live, double waiting = 0) const {
      const Bytes always = weights + optimizer_state + fixed;
      if (is_late(live, waiting)) return always + gradients + late;
      return always + (keeps_gradients ? gradients : Bytes(0)) + forward_peak(live, waiting);
    }
    Bytes spare(double live, double waiting = 0) const {
      return capacity - reserve - peak(live, waiting);
    }
  };
  // On one of the distinct replicas. `tied` parameters are kept in a second copy.
  int replica_count() const { return static_cast<int>(replicas_.size()); }
  // What recompute that began before a run repeats together with it: both repeat their work, and no
  // layer begins between them.
  struct Repeated {
    RecomputedRun last;
    Bytes bytes;
    bool goes_on(const Model& model, const RecomputedRun& run) const;
  };
  // `before`: of the span before this one, then of this one.
  Memory memory(int replica, RecomputedRuns runs, double tied, Repeated* before = nullptr) const;
  Memory memory(int replica, const UnitRange& units, Recompute recompute, double tied) const {
    const RecomputedRun run{units, recompute};
    return memory(replica, {&run, 1}, tied);
  }

  // Samples of a micro-batch on a distinct replica, or on the last where there are fewer.
  double samples(int replica) const { return at(replica).samples; }
  // What recompute keeps to begin at a unit inside a layer.
  Bytes recompute_input(int replica, int unit) const {
    return at(replica).table->recompute_input(unit);
  }
  // What crosses a cut inside a layer for the use of later ops (the residual), beside the input of
  // the first one: a stage that begins there keeps it for each micro-batch in flight.
  Bytes passing_by(int replica, int unit) const;

  UnitRange first_layer(const UnitRange& units) const {
    return replicas_.front().table->first_layer(units);
  }

  int tensor() const { return tensor_; }
  int data() const { return data_; }
  Source time_source(const UnitRange& units) const;
  Source memory_source(const UnitRange& units) const;
  // Of one unit on a distinct replica.
  const Origin& origin(int replica, int unit) const { return at(replica).table->origin(unit); }
  const std::string& device_type(int replica) const { return at(replica).device->name; }

 private:
  struct Replica {
    const UnitTable* table = nullptr;
    const DeviceType* device = nullptr;
    double samples = 0;
  };

  const Replica& at(int replica) const { return replicas_[std::min(replica, replica_count() - 1)]; }
  int copies() const { return data_ * settings_.context; }
  // Parameters that one device updates or keeps when they are cut over the copies.
  double cut(double parameters, double expert_parameters) const;
  // Of one parameter, by the optimizer.
  Seconds update_time(const DeviceType& device) const;
  bool is_measured(const UnitCost& cost) const;

  // Of gradients on the way to their sum, and of what comes back to every replica afterwards.
  struct Reduction {
    Seconds gradients;
    Seconds weights;
  };
  Reduction reduce(double parameters, const Group& group, const Ring& ring) const;
  Reduction hybrid(Bytes gradients, Bytes weights) const;
  Seconds piece_latency(const Ring& ring) const;
  Seconds of_parameter(Seconds block) const;
  Reduction reductions(const UnitRange& units) const;
  void add_runs(const UnitTable& on, RecomputedRuns runs, Repeated& before, double tied,
                Memory& memory) const;
  Seconds block_sync(const UnitRange& units) const;
  // Parameters of an average layer that is not an input or output layer, as far as `units` have
  // them.
  double block_parameters(const UnitTable& table, const UnitRange& units) const;
  // Of the parameters, those that are trained.
  double trained_share(const UnitTable& table, const UnitRange& units) const;

  const Problem& problem_;
  PlanSettings settings_;
  FrameworkTraits traits_;
  StateBytes state_;
  double optimizer_traffic_ = 0;  // bytes of a parameter
  bool weights_are_cut_ = false;  // gathered for every micro-batch
  bool tied_are_trained_ = true;
  int tensor_ = 1;
  int data_ = 1;
  std::vector<Replica> replicas_;  // distinct ones
  int shard_copies_ = 1;           // over which ZeRO cuts, of copies()
  Group data_group_;
  Group shard_group_;        // neighbours of it, over which ZeRO cuts
  Group outer_group_;        // those that have the same part
  Group expert_data_group_;  // copies of one expert
  Ring data_ring_;
  Ring expert_data_ring_;
};

// Product workspaces, communication buffers and temporaries of a device, whatever it runs.
Bytes fixed_memory(const FrameworkTraits& traits, const Cluster& cluster);

// Whether the parameters of a tie get gradients, which are then summed over its two ends.
bool is_trained(const Problem& problem, const Tie& tie);

// Parameters of ties that these units keep a second copy of: their owner is elsewhere.
double tied_copies(const Model& model, std::span<const UnitRange> units);

}  // namespace plait
