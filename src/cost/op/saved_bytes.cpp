#include "cost/op/saved_bytes.h"

#include "cost/framework/framework.h"

namespace plait {

SavedBytes saved_bytes(const Job& job, const Model& model, const Op& op, const Sharding& s) {
  static const DeviceType kAny;  // nothing that is kept depends on the device
  return saved_bytes(*kernels_of(job, model, kAny), op, s);
}

SavedBytes saved_bytes(const Kernels& kernels, const Op& op, const Sharding& s) {
  const Job& job = kernels.job();
  const Model& model = kernels.model();
  if (op.kind == OpKind::loss) return {};
  double share = s.samples / s.context;
  if (op.saved_is_sharded || (s.sequence_parallel && !op.saved_is_whole)) share /= s.tensor;
  const Bytes bytes = share * (Bytes(kernels.kept_bytes(op)) + op.saved_mask);
  SavedBytes saved{bytes, bytes};
  if (op.kind != OpKind::attention) return saved;
  const double positions = op.count * op.rows * s.samples / s.context / s.tensor;
  if (job.attention == AttentionKernel::plain) {
    // Softmax output, and with dropout its mask and its output (Korthikanti et al., section 4.1).
    const double per_score =
        activation_bytes(job.precision) * (model.dropout ? 2 : 1) + (model.dropout ? 1 : 0);
    saved.all += Bytes(per_score * positions * op.columns);
  } else if (kernels.writes_scores(op)) {
    // The softmax in fp32, 4 bytes, and its copy in 16 bits, 2, or those of q, k and v in fp32, 0.3
    // a score in the measured steps; 1.2 more where a bias is learnt (T5). Measured on one H200
    // (docs/cost-model.md#eager).
    const double per_score = op.scores_in_16_bits ? 6 : op.learnt_bias ? 5.5 : 4.3;
    saved.all += Bytes(per_score * positions * op.columns);
  } else {
    saved.all += Bytes(4 * positions);  // log of the softmax's denominator
    saved.selective = saved.all;        // there is nothing quadratic to drop
  }
  return saved;
}

}  // namespace plait
