#pragma once

#include <compare>

#include "base/units.h"
#include "cost/comm/collectives.h"

namespace plait {

// How the work of one micro-batch is divided over the devices that share it.
struct Sharding {
  double samples = 1;  // of the micro-batch, on one replica
  int tensor = 1;
  int context = 1;
  int expert = 1;
  bool sequence_parallel = false;
  friend auto operator<=>(const Sharding&, const Sharding&) = default;
};

// Cost of one unit, or of a run of units, for one micro-batch on one device. Additive.
struct UnitCost {
  Seconds forward;
  Seconds backward;  // input gradients; recompute not included
  Seconds weight_gradient;
  Seconds recompute;
  Seconds forward_comm;   // exposed
  Seconds backward_comm;  // exposed, recompute's included
  // Of the network between nodes, hidden or not: how long a micro-batch keeps it busy.
  Seconds network_forward;
  Seconds network_backward;
  Bytes saved;  // kept for backward
  // On this device, experts not included; what is kept in 4 bits counts as the part of a weight
  // that it takes (stored_share()).
  double parameters = 0;
  double expert_parameters = 0;
  // Of them, those that get gradients and are updated: all, or the adapters alone.
  double trained = 0;
  double trained_experts = 0;
  // From measurements (cost/layer/measured.h); 0 where there are none.
  Bytes held;                       // beyond states and what is saved, whatever is in flight
  Seconds optimizer;                // of the parameters that it was measured for
  double optimizer_parameters = 0;  // of those

  UnitCost& operator+=(const UnitCost& other);
  friend UnitCost operator-(UnitCost a, const UnitCost& b);
  Seconds forward_total() const { return forward + forward_comm; }
  Seconds backward_total() const { return backward + weight_gradient + recompute + backward_comm; }
  Seconds total() const { return forward_total() + backward_total(); }
};

inline UnitCost& UnitCost::operator+=(const UnitCost& o) {
  forward += o.forward;
  backward += o.backward;
  weight_gradient += o.weight_gradient;
  recompute += o.recompute;
  forward_comm += o.forward_comm;
  backward_comm += o.backward_comm;
  network_forward += o.network_forward;
  network_backward += o.network_backward;
  saved += o.saved;
  parameters += o.parameters;
  expert_parameters += o.expert_parameters;
  trained += o.trained;
  trained_experts += o.trained_experts;
  held += o.held;
  optimizer += o.optimizer;
  optimizer_parameters += o.optimizer_parameters;
  return *this;
}

inline UnitCost operator-(UnitCost a, const UnitCost& b) {
  a.forward -= b.forward;
  a.backward -= b.backward;
  a.weight_gradient -= b.weight_gradient;
  a.recompute -= b.recompute;
  a.forward_comm -= b.forward_comm;
  a.backward_comm -= b.backward_comm;
  a.network_forward -= b.network_forward;
  a.network_backward -= b.network_backward;
  a.saved -= b.saved;
  a.parameters -= b.parameters;
  a.expert_parameters -= b.expert_parameters;
  a.trained -= b.trained;
  a.trained_experts -= b.trained_experts;
  a.held -= b.held;
  a.optimizer -= b.optimizer;
  a.optimizer_parameters -= b.optimizer_parameters;
  return a;
}

// The times of a UnitCost, communication included.
struct PassTime {
  Seconds forward;
  Seconds backward;
  Seconds total() const { return forward + backward; }
};

// What decides the cost of units on a replica, besides the problem itself.
struct ReplicaShape {
  int device_type = 0;
  Sharding sharding;
  Group tensor_group;   // of sharding.tensor members
  Group context_group;  // of sharding.context members
  Group expert_group;   // of sharding.expert members
  // Over which weights are cut (ZeRO-3; ZeRO-2 of FSDP); of one member where they are not.
  Group weight_group;
  Group expert_weight_group;
  bool gathers = false;          // weights are cut, if over a single device
  bool gathers_backward = true;  // weights are gathered again for backward
  int split = 0;                 // Span::split
  friend auto operator<=>(const ReplicaShape&, const ReplicaShape&) = default;
};

}  // namespace plait
