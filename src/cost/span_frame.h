#pragma once

#include <functional>
#include <span>
#include <vector>

#include "cost/estimate.h"
#include "cost/unit_cost.h"
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

// Gives the unit costs of a replica shape; CostEngine keeps them.
using TableSource = std::function<const UnitTable&(const ReplicaShape&)>;

// Devices that run a span, and how: all that its cost depends on besides the units themselves. Made
// once, then asked for many runs of units.
class SpanFrame {
 public:
  // `devices` ordered as in Stage, tensor * data * context of them; `shares` as in Stage.
  SpanFrame(const Problem& problem, const PlanSettings& settings, std::span<const DeviceId> devices,
            int tensor, int data, std::span<const int> shares, const TableSource& tables);

  // One micro-batch, on the slowest replica. ZeRO-3's gathering is in the communication.
  UnitCost time(const UnitRange& units, Recompute recompute) const;
  // Once a step: exposed gradient synchronisation and optimizer.
  Seconds gradient_sync(const UnitRange& units) const;
  Seconds optimizer(const UnitRange& units) const;

  struct Memory {
    Bytes weights;
    Bytes gradients;
    Bytes optimizer_state;
    Bytes saved;        // of one micro-batch
    Bytes working_set;  // while a recomputed unit runs backward; the largest, not a sum
    Bytes workspace;
    Bytes capacity;
    Bytes reserve;
    // With `live` micro-batches in flight.
    Bytes peak(double live) const {
      return weights + gradients + optimizer_state + live * saved + working_set + workspace;
    }
    Bytes spare(double live) const { return capacity - reserve - peak(live); }
  };
  // On one of the distinct replicas. `tied` parameters are kept in a second copy.
  int replica_count() const { return static_cast<int>(replicas_.size()); }
  Memory memory(int replica, const UnitRange& units, Recompute recompute, double tied) const;

  int tensor() const { return tensor_; }
  int data() const { return data_; }
  Source time_source(const UnitRange& units) const;
  Source memory_source(const UnitRange& units) const;

 private:
  struct Replica {
    const UnitTable* table = nullptr;
    const DeviceType* device = nullptr;
    double samples = 0;
  };

  int copies() const { return data_ * settings_.context; }
  // Parameters that one device updates or keeps when they are cut over the copies.
  double cut(const UnitCost& cost) const;

  const Problem& problem_;
  PlanSettings settings_;
  int tensor_ = 1;
  int data_ = 1;
  std::vector<Replica> replicas_;  // distinct ones
  Group data_group_;
  Group expert_data_group_;        // copies of one expert
  BytesPerSecond optimizer_rate_;  // of the slowest device
};

// Parameters of ties that these units keep a second copy of: their owner is elsewhere.
double tied_copies(const Model& model, std::span<const UnitRange> units);

}  // namespace plait
