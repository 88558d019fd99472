#pragma once

#include "base/units.h"
#include "cost/comm/measured_links.h"
#include "cost/framework/framework.h"
#include "cost/op/replica.h"
#include "model/model.h"
#include "plan/problem.h"

namespace plait {

// Communication of one op for one micro-batch, as far as compute does not hide it.
struct OpComm {
  Seconds forward;
  Seconds backward;
};

// Tensor, expert and context communication of the ops on one replica
// (docs/cost-model.md#tensor-context-and-expert-communication). Refers to its arguments.
class CommCost {
 public:
  CommCost(const Problem& problem, const ReplicaShape& shape, const FrameworkTraits& traits);
  OpComm of(const Op& op) const;

 private:
  void add_tensor(const Op& op, OpComm& comm) const;
  void add_expert(const Op& op, OpComm& comm) const;
  void add_context(const Op& op, OpComm& comm) const;

  const Model& model_;
  const MeasuredLinks links_;
  const ReplicaShape& shape_;
  const FrameworkTraits& traits_;
  const double element_;
  const double per_device_;  // samples
};

}  // namespace plait
