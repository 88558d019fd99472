#pragma once

#include "base/units.h"
#include "cost/comm/measured_links.h"
#include "cost/framework/framework.h"
#include "cost/op/op_time.h"
#include "cost/op/replica.h"
#include "model/model.h"
#include "plan/problem.h"

namespace plait {

// Communication of one op for one micro-batch.
struct OpComm {
  // What it adds to the time of the op's compute (cost/comm/overlap.h).
  Seconds forward;
  Seconds backward;
  // Exchange of tokens between experts, each way. It hides behind the whole layer, whose other half
  // of the tokens is computed meanwhile, and is not in `forward` and `backward`.
  Seconds exchange;
  // How long it keeps the network between nodes busy, hidden or not.
  Seconds network_forward;
  Seconds network_backward;
};

// Tensor, expert and context communication of the ops on one replica
// (docs/cost-model.md#tensor-context-and-expert-communication). Tensor and context communication
// hide behind the compute of the op that they belong to. Refers to its arguments.
class CommCost {
 public:
  CommCost(const Problem& problem, const ReplicaShape& shape, const FrameworkTraits& traits);
  OpComm of(const Op& op, const OpTime& time) const;

 private:
  void add_tensor(const Op& op, const OpTime& time, OpComm& comm) const;
  void add_expert(const Op& op, OpComm& comm) const;
  void add_context(const Op& op, const OpTime& time, OpComm& comm) const;

  const Model& model_;
  const MeasuredLinks links_;
  const ReplicaShape& shape_;
  const FrameworkTraits& traits_;
  const double element_;
  const double per_device_;  // samples
};

}  // namespace plait
