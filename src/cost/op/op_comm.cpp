#include "cost/op/op_comm.h"

#include <algorithm>
#include <cmath>

#include "cost/comm/overlap.h"

namespace plait {
namespace {

// Sequence parallelism gathers the input once more for the weight gradient: a quarter of the
// traffic that backward has without it.
constexpr double kSequenceParallelBackward = 1.25;

Seconds tensor_reduction(const MeasuredLinks& links, const Group& group, bool sequence_parallel,
                         Bytes size) {
  return sequence_parallel ? links.reduce_scatter(group, size) + links.all_gather(group, size)
                           : links.all_reduce(group, size);
}

}  // namespace

CommCost::CommCost(const Problem& problem, const ReplicaShape& shape, const FrameworkTraits& traits)
    : model_(problem.model),
      links_(problem.profile, problem.cluster.device_types[shape.device_type].name),
      shape_(shape),
      traits_(traits),
      element_(activation_bytes(problem.job.precision)),
      per_device_(shape.sharding.samples / shape.sharding.context) {}

OpComm CommCost::of(const Op& op, const OpTime& time) const {
  OpComm comm;
  if (shape_.sharding.tensor > 1) add_tensor(op, time, comm);
  if (shape_.sharding.expert > 1 && op.expert_exchange > 0) add_expert(op, comm);
  if (shape_.sharding.context > 1 && op.kind == OpKind::attention) add_context(op, time, comm);
  return comm;
}

void CommCost::add_tensor(const Op& op, const OpTime& time, OpComm& comm) const {
  const Sharding& s = shape_.sharding;
  if (op.kind == OpKind::loss) {
    // Maximum, sum of exponentials and target logit of every position, one after the other.
    if (op.forward_reduce > 0)
      comm.forward += 3 * all_reduce(shape_.tensor_group, Bytes(4 * op.rows * per_device_));
    return;
  }
  const auto reduced = [&](double elements) {
    if (elements <= 0) return Seconds(0);
    return tensor_reduction(links_, shape_.tensor_group, s.sequence_parallel,
                            Bytes(element_ * elements * per_device_));
  };
  const bool vocabulary = op.split == Split::vocabulary;
  const Seconds forward = reduced(op.forward_reduce);
  const Seconds backward = reduced(op.backward_reduce) *
                           (s.sequence_parallel && !vocabulary ? kSequenceParallelBackward : 1);
  comm.forward += op.kind == OpKind::embedding
                      ? forward
                      : exposed(forward, time.forward, traits_.tensor_exposed);
  // The weight gradient runs beside the reduction of the input's gradient; frameworks that cut
  // products into pieces hide more of it behind the input's gradient itself.
  const Seconds rest =
      vocabulary ? backward : exposed(backward, time.weight_gradient, traits_.tensor_backward);
  comm.backward += exposed(rest, time.backward, traits_.tensor_exposed);
  const double share = network_share(shape_.tensor_group);
  comm.network_forward += share * forward;
  comm.network_backward += share * backward;
  // A block has two ops that reduce forward; each also waits for the slowest device.
  if (op.forward_reduce > 0 && !vocabulary)
    comm.backward +=
        traits_.tensor_skew / 2 * std::pow(std::log2(s.tensor), traits_.tensor_skew_power);
}

void CommCost::add_expert(const Op& op, OpComm& comm) const {
  const double copies = op.rows * op.count / std::max(1, model_.sequence_length);
  const Bytes sent(element_ * op.expert_exchange * per_device_ / shape_.sharding.tensor);
  comm.exchange =
      all_to_all(shape_.expert_group, sent, {copies, op.expert_groups, op.chosen_groups});
  const double share = network_share(shape_.expert_group);
  comm.network_forward += share * comm.exchange;
  comm.network_backward += share * comm.exchange;
}

void CommCost::add_context(const Op& op, const OpTime& time, OpComm& comm) const {
  // Keys and values go round the ring once forward, and with their gradients once backward.
  const Sharding& s = shape_.sharding;
  const double heads = std::max(op.kv_count / s.tensor, 1.0);
  const Bytes ring(element_ * 2 * op.columns * op.inner * heads * s.samples);
  const Seconds once = all_gather(shape_.context_group, ring);
  comm.forward += exposed(once, time.forward, traits_.context_exposed);
  comm.backward += exposed(2 * once, time.backward, traits_.context_exposed);
  const double share = network_share(shape_.context_group);
  comm.network_forward += share * once;
  comm.network_backward += share * 2 * once;
}

}  // namespace plait
