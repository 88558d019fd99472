#include "cost/layer/layer_sums.h"

#include <algorithm>

#include "cost/comm/overlap.h"
#include "cost/framework/framework.h"
#include "cost/op/adapters.h"
#include "cost/op/op_comm.h"
#include "cost/op/saved_bytes.h"

namespace plait {
namespace {

bool adds(const Op& op) { return op.kind == OpKind::elementwise && op.function == Function::add; }

void add_loss(const ReplicaSetting& setting, const Op& op, LayerSums& sums) {
  const Sharding& s = setting.shape.sharding;
  const double share = s.samples / s.context / (op.split == Split::vocabulary ? s.tensor : 1);
  const double bytes = setting.traits().logit_bytes * setting.kernels.loss_share();
  sums.loss += Bytes(bytes * op.rows * op.columns * share);
  sums.kept_loss += op.saved_mask * share;
}

void add_parameters(const Job& job, const Op& op, const Sharding& s, UnitCost& unit) {
  const double own = parameters_per_device(op, s);
  const double adapter = adapter_parameters(job, op, s);
  const bool experts = op.split == Split::experts;
  (experts ? unit.expert_parameters : unit.parameters) += own * stored_share(job, op) + adapter;
  (experts ? unit.trained_experts : unit.trained) += job.adapters ? adapter : own;
}

// What PyTorch's selective checkpoints keep of an op (TorchTitan's policy): results of every second
// product, and of attention. Grouped products of experts are not among them.
Bytes kept_of_every_other(const ReplicaSetting& setting, const Op& op) {
  const Job& job = setting.problem.job;
  const Sharding& s = setting.shape.sharding;
  const Bytes element(activation_bytes(job.precision));
  if (op.kind == OpKind::attention && job.attention == AttentionKernel::flash)
    return element * (op.rows * op.count * op.inner * s.samples / s.context / s.tensor);
  const bool product = op.kind == OpKind::matmul || op.kind == OpKind::convolution;
  if (!product || op.split == Split::experts) return {};
  const Product g = sharded_product(job, op, s);
  return 0.5 * element * (g.m * g.n * g.count);
}

}  // namespace

int last_position(std::span<const Op> ops) {
  int last = static_cast<int>(ops.size());
  while (last > 0 && adds(ops[last - 1])) --last;
  return last > 0 && ops[last - 1].kind == OpKind::matmul ? last - 1 : last;
}

LayerSums sums_of(const ReplicaSetting& setting, std::span<const Op> ops, int last) {
  const Job& job = setting.problem.job;
  const Sharding& s = setting.shape.sharding;
  const CommCost comm_cost(setting.problem, setting.shape, setting.traits());
  LayerSums sums;
  Seconds exchange;
  for (int i = 0; i < static_cast<int>(ops.size()); ++i) {
    const Op& op = ops[i];
    OpTime time = setting.kernels.time(op, s);
    if (op.forward > Flops(0)) {
      const Source source = setting.points.correct(setting.kernels, op, s, time);
      sums.kernels = std::max(sums.kernels.value_or(source), source);
    }
    if (i >= last) sums.last += time.forward;
    sums.unit.forward += time.forward;
    sums.unit.backward += time.backward;
    sums.unit.weight_gradient += time.weight_gradient;
    sums.host += time.host;
    sums.host_forward += time.host_forward;
    if (op.kind == OpKind::attention && job.attention == AttentionKernel::plain)
      sums.attention += time.forward;
    const OpComm comm = comm_cost.of(op, time);
    sums.unit.forward_comm += comm.forward;
    sums.unit.backward_comm += comm.backward;
    sums.unit.network_forward += comm.network_forward;
    sums.unit.network_backward += comm.network_backward;
    exchange += comm.exchange;
    const SavedBytes saved = saved_bytes(setting.kernels, op, s);
    const Bytes adapter = adapter_saved(job, op, s);
    sums.unit.saved += saved.all + adapter;
    sums.selective += saved.selective + adapter;
    sums.every_other += kept_of_every_other(setting, op);
    add_parameters(job, op, s, sums.unit);
    sums.unpacked = std::max(sums.unpacked, unpacked_bytes(job, op, s));
    if (op.kind == OpKind::loss) add_loss(setting, op, sums);
  }
  UnitCost& unit = sums.unit;
  const double price = setting.traits().expert_exposed;
  unit.forward_comm += exposed(exchange, unit.forward, price);
  unit.backward_comm += exposed(exchange, unit.backward + unit.weight_gradient, price);
  return sums;
}

}  // namespace plait
