#include "cost/op/adapters.h"

#include "cost/framework/framework.h"

namespace plait {
namespace {

// Sizes of an adapter on one device; `count` of them where the op is a mixture of experts.
struct AdapterShape {
  double rows = 0;     // of x
  double inner = 0;    // of A
  double columns = 0;  // of B, all matrices together
  double count = 1;
  double matrices = 1;
};

AdapterShape shape_of(const Job& job, const Op& op, const Sharding& s) {
  const Product product = sharded_product(job, op, s);
  return {.rows = product.m,
          .inner = product.k,
          .columns = product.n,
          .count = product.count,
          .matrices = op.split == Split::row ? 1 : op.matrices};
}

constexpr double kFourBitBytes = (4 + 8.0 / 64 + 32.0 / (64 * 256)) / 8;
// Of the speed of memory that kernels reach which unpack such weights: tables of LitGPT (one A100),
// torchtune (one RTX 4090) and Qwen (one A100) have steps with and without; they say .33, .18, .16.
constexpr double kUnpackingShare = 0.2;

// Whether adapters stand beside such an op, whatever their rank.
bool is_adapted(const Job& job, const Op& op) {
  return job.adapters && op.kind == OpKind::matmul &&
         (op.split == Split::column || op.split == Split::row || op.split == Split::experts);
}

bool is_four_bit(const Job& job, const Op& op) {
  return job.four_bit_weights && is_adapted(job, op);
}

}  // namespace

bool has_adapter(const Job& job, const Op& op) {
  return job.adapter_rank > 0 && is_adapted(job, op);
}

double adapter_parameters(const Job& job, const Op& op, const Sharding& s) {
  if (!has_adapter(job, op)) return 0;
  const AdapterShape a = shape_of(job, op, s);
  return job.adapter_rank * a.count * (a.matrices * a.inner + a.columns);
}

OpTime adapter_time(const Job& job, const DeviceType& d, const Op& op, const Sharding& s) {
  const AdapterShape a = shape_of(job, op, s);
  const double rank = job.adapter_rank;
  const ProductFormat format{attention_dtype(job.precision), 1};
  const auto time = [&](double m, double n, double k) {
    return matmul_time(d, format, {.m = m, .n = n, .k = k, .count = a.count, .misaligned = 0});
  };
  const double parts = rank * a.matrices;
  OpTime out;
  out.forward = time(a.rows, parts, a.inner) + time(a.rows, a.columns, rank);
  out.backward = time(a.rows, rank, a.columns) + time(a.rows, a.inner, parts);
  out.weight_gradient = time(a.inner, parts, a.rows) + time(rank, a.columns, a.rows);
  // The result is read, added to that of the product, and written; gradients of x are added.
  const double bytes = activation_bytes(job.precision) * a.count * a.rows;
  out.forward += memory_time(d, Bytes(3 * bytes * a.columns));
  out.backward += memory_time(d, Bytes(3 * bytes * a.inner));
  return out;
}

Bytes adapter_saved(const Job& job, const Op& op, const Sharding& s) {
  if (!has_adapter(job, op)) return {};
  const AdapterShape a = shape_of(job, op, s);
  return Bytes(activation_bytes(job.precision) * a.count * a.rows * job.adapter_rank * a.matrices);
}

double stored_share(const Job& job, const Op& op) {
  return is_four_bit(job, op) ? kFourBitBytes / state_bytes(job).weight : 1;
}

Bytes unpacked_bytes(const Job& job, const Op& op, const Sharding& s) {
  if (!is_four_bit(job, op)) return {};
  return Bytes(activation_bytes(job.precision) * parameters_per_device(op, s));
}

Seconds unpacking_time(const Job& job, const DeviceType& d, const Op& op, const Sharding& s) {
  if (!is_four_bit(job, op)) return {};
  const Bytes moved =
      unpacked_bytes(job, op, s) + Bytes(kFourBitBytes * parameters_per_device(op, s));
  return memory_time(d, Bytes(moved.value / kUnpackingShare));
}

double stored_parameters(const Model& model, const Job& job) {
  double sum = 0;
  for (int u = 0; u < model.unit_count(); ++u)
    for (const Op& op : model.unit(u).ops) sum += op.parameters * stored_share(job, op);
  return sum;
}

double trained_parameters(const Model& model, const Job& job) {
  double sum = 0;
  for (int u = 0; u < model.unit_count(); ++u) {
    const LayerKind& kind = model.unit(u);
    if (kind.frozen) continue;
    for (const Op& op : kind.ops)
      sum += job.adapters ? adapter_parameters(job, op, {}) : op.parameters;
  }
  return sum;
}

}  // namespace plait
