#pragma once

// What the parts of UnitModule share; for its own files only.

#include <ATen/ATen.h>

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "runtime/torch/train/unit_module.h"

namespace plait::runtime {

// An op with this device's part of its parameters.
struct UnitModule::Held {
  const ExecOp* op = nullptr;
  at::Tensor weight;
  at::Tensor bias;
  std::vector<at::Tensor> others;  // beyond weight and bias
  mutable at::Tensor buckets;
  mutable std::pair<at::Tensor, at::Tensor> angles;
};

inline at::Tensor take(Bundle& bundle, const std::string& name) {
  const auto found = bundle.find(name);
  PLAIT_CHECK(found != bundle.end());
  at::Tensor tensor = std::move(found->second);
  bundle.erase(found);
  return tensor;
}

inline at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return bias.defined() ? at::linear(x, weight, bias) : at::linear(x, weight);
}

inline at::Tensor scaled(const at::Tensor& x, double scale) { return scale == 1 ? x : x * scale; }

// A matrix product whose sum over devices follows: the bias is added once, after it.
template <typename Leave>
at::Tensor row_product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                       bool alone, const Leave& leave) {
  if (alone) return linear(x, weight, bias);
  const at::Tensor sum = leave(at::linear(x, weight));
  return bias.defined() ? sum + bias : sum;
}

// The entries of a dimension device by device, as `parts` give them to `tensor` devices.
inline std::vector<std::int64_t> device_order(const std::vector<Part>& parts, int tensor) {
  std::vector<std::int64_t> order;
  for (int t = 0; t < tensor; ++t)
    for (const Interval& range : shard_of(parts, tensor, t))
      for (std::int64_t i = range.begin; i < range.end; ++i) order.push_back(i);
  return order;
}

// A product that is not cut as usual, from and to the layouts of the usual cut.
template <typename Product>
at::Tensor UnitModule::cut_otherwise(const ExecOp& op, const at::Tensor& x, int dim,
                                     const Product& product) {
  const bool positions = shard_.cuts_positions();
  const std::vector<std::int64_t> order = device_order(op.usual_parts, shard_.tensor);
  const at::Tensor index = at::tensor(order, at::TensorOptions(x.device()).dtype(at::kLong));
  if (op.other == OtherCut::by_input) {
    const at::Tensor all = positions ? gather_features(x, group_, 1) : x;
    const at::Tensor sums = product(take_part(all, group_, dim));
    if (op.gathers) return leave_region(sums, group_, false);
    return sum_and_cut(sums.index_select(dim, index), group_, dim);
  }
  const at::Tensor all = gather_to_share(x, group_, dim).index_select(dim, index.argsort());
  const at::Tensor whole = gather_features(product(all), group_, dim);
  return positions ? take_part(whole, group_, 1) : whole;
}

}  // namespace plait::runtime
