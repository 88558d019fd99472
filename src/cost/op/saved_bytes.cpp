#include "cost/op/saved_bytes.h"

#include "cost/framework/framework.h"
#include "cost/op/eager.h"

namespace plait {
namespace {

// Bytes that an op keeps where nothing is fused. Under autocast a product that reads the fp32
// stream keeps a converted copy for each of its matrices.
double unfused_saved(const Job& job, const Op& op) {
  const double element = activation_bytes(job.precision);
  if (op.function == Function::rotary) return element * op.rows * op.inner;
  if (op.saved == 0) return 0;
  if (op.kind == OpKind::matmul && is_autocast(job)) {
    const double copies = op.split == Split::column    ? op.parts
                          : op.split == Split::experts ? 2  // in fp32
                                                       : 1;
    return element * op.saved * copies;
  }
  if (op.kind == OpKind::matmul) return element * op.saved;
  if (op.function == Function::other || op.function == Function::add) return element * op.saved;
  return eager_kernels(op, is_autocast(job)).saved * element / 2 * eager_elements(op);
}

// Bytes of a product's input that is kept in the format of fp8 or fp4 products, for each element.
double quantised_bytes(Precision precision) {
  if (precision == Precision::fp4) return 0.5;
  return compute_dtype(precision) == DType::fp8 ? 1 : activation_bytes(precision);
}

// Bytes that an op keeps for backward of one sample, before it is cut.
double kept_bytes(const Job& job, const FrameworkTraits& traits, const Op& op) {
  if (traits.unfused) return unfused_saved(job, op);
  const double element = activation_bytes(job.precision);
  // What combines the experts' results is the op whose traffic counts elsewhere.
  const bool combines = op.kind == OpKind::elementwise && op.moved == 0;
  if (traits.weighs_early && combines) return 0;
  if (!traits.keeps_quantised) return element * op.saved;
  const double quantised = quantised_bytes(job.precision);
  // The output layer and routers multiply in 16 bits.
  const bool wide = op.split == Split::vocabulary || op.split == Split::replicated;
  if (op.kind == OpKind::matmul) return (wide ? element : quantised) * op.saved;
  // Attention keeps its own result, which the projection's converted input is no substitute for.
  const bool own = op.kind == OpKind::attention && quantised < element;
  return element * (op.saved + (own ? op.rows * op.count * op.inner : 0));
}

}  // namespace

SavedBytes saved_bytes(const Job& job, const Model& model, const Op& op, const Sharding& s) {
  if (op.kind == OpKind::loss) return {};
  double share = s.samples / s.context;
  if (op.saved_is_sharded || s.sequence_parallel) share /= s.tensor;
  const Bytes bytes = share * (Bytes(kept_bytes(job, traits_of(job), op)) + op.saved_mask);
  SavedBytes saved{bytes, bytes};
  if (op.kind != OpKind::attention) return saved;
  const double positions = op.count * op.rows * s.samples / s.context / s.tensor;
  if (job.attention == AttentionKernel::plain) {
    // Softmax output, and with dropout its mask and its output (Korthikanti et al., section 4.1).
    const double per_score =
        activation_bytes(job.precision) * (model.dropout ? 2 : 1) + (model.dropout ? 1 : 0);
    saved.all += Bytes(per_score * positions * op.columns);
  } else if (computes_scores(job, op)) {
    // The softmax in fp32, and its copy in 16 bits or those of q, k and v in fp32; more where a
    // bias is learnt.
    const double per_score = multiplies_scores_in_16_bits(op) ? 6 : op.parts > 1 ? 5.5 : 4.3;
    saved.all += Bytes(per_score * positions * op.columns);
  } else {
    saved.all += Bytes(4 * positions);  // log of the softmax's denominator
    saved.selective = saved.all;        // there is nothing quadratic to drop
  }
  return saved;
}

}  // namespace plait
