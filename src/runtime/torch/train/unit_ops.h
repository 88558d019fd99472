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

}  // namespace plait::runtime
