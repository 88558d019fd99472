#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "runtime/torch/comm/kernels.h"
#include "runtime/torch/measure/measure_meter.h"

namespace plait::runtime {
namespace {

std::int64_t whole(double size) { return static_cast<std::int64_t>(size); }

constexpr double kMostElements = 1e12;

void check_size(const OpKey& key) {
  const double largest = std::max({key.rows * std::max(1.0, key.inner) * key.count,
                                   key.rows * std::max(1.0, key.columns) * key.count,
                                   key.inner * std::max(1.0, key.columns) * key.count});
  if (largest > kMostElements) throw std::bad_alloc();
}

}  // namespace

std::vector<TorchMeter::Pass> TorchMeter::product_passes(const OpKey& key) {
  const at::ScalarType type = storage_type(key.dtype);
  const std::int64_t m = whole(key.rows), k = whole(key.inner), n = whole(key.columns);
  std::vector<std::int64_t> first;
  if (key.count > 1) first.push_back(whole(key.count));
  const auto shape = [&](std::int64_t a, std::int64_t b) {
    std::vector<std::int64_t> sizes = first;
    sizes.insert(sizes.end(), {a, b});
    return sizes;
  };
  const at::Tensor x = noise(shape(m, k), type);
  const at::Tensor w = noise(shape(n, k), type);  // as layers keep it: output by input
  const at::Tensor dy = noise(shape(m, n), type);
  return {{&Measurement::forward, {x}, [=] { at::matmul(x, w.transpose(-2, -1)); }},
          {&Measurement::backward, {dy}, [=] { at::matmul(dy, w); }},
          {&Measurement::weight_gradient, {dy}, [=] { at::matmul(dy.transpose(-2, -1), x); }}};
}

std::vector<TorchMeter::Pass> TorchMeter::convolution_passes(const OpKey& key) {
  const at::ScalarType type = storage_type(key.dtype);
  const std::int64_t window = std::max(1, key.window), stride = std::max(1, key.stride);
  const auto side = static_cast<std::int64_t>(std::llround(std::sqrt(key.rows)));
  if (side * side != whole(key.rows))
    throw InputError("convolution", fmt::format("rows must be a square, is {}", key.rows));
  const std::int64_t channels = whole(key.inner) / (window * window);
  const std::int64_t padding = (window - 1) / 2;
  const std::int64_t images = whole(key.count), out = whole(key.columns);
  const at::Tensor x = noise({images, channels, side * stride, side * stride}, type);
  const at::Tensor w = noise({out, channels, window, window}, type);
  const auto forward = [=] {
    return at::conv2d(x, w, {}, at::IntArrayRef{stride, stride}, at::IntArrayRef{padding, padding});
  };
  const at::Tensor dy = at::randn_like(forward());
  const auto gradient = [=](std::array<bool, 3> which) {
    at::convolution_backward(dy, x, w, at::OptionalIntArrayRef(), at::IntArrayRef{stride, stride},
                             at::IntArrayRef{padding, padding}, at::IntArrayRef{1, 1}, false,
                             at::IntArrayRef{0, 0}, 1, which);
  };
  return {{&Measurement::forward, {x}, [=] { forward(); }},
          {&Measurement::backward,
           {dy},
           [=] {
             gradient({true, false, false});
           }},
          {&Measurement::weight_gradient, {dy}, [=] {
             gradient({false, true, false});
           }}};
}

std::vector<TorchMeter::Pass> TorchMeter::differentiated(std::vector<at::Tensor> inputs,
                                                         std::function<at::Tensor()> forward) {
  const at::Tensor y = forward();
  const at::Tensor dy = at::randn_like(y);
  std::vector<at::Tensor> read;
  // Without a version, which writing to them would count up.
  for (const at::Tensor& input : inputs) read.push_back(input.variable_data());
  return {{&Measurement::forward, read, [forward] { forward(); }},
          {&Measurement::backward, {dy}, [inputs, y, dy] {
             torch::autograd::grad({y}, inputs, {dy}, /*retain_graph=*/true);
           }}};
}

std::vector<TorchMeter::Pass> TorchMeter::passes_of(const OpKey& key) {
  check_size(key);
  const at::ScalarType type = storage_type(key.dtype);
  const auto learnt = [&](std::vector<std::int64_t> shape) {
    return noise(std::move(shape), type).requires_grad_(true);
  };
  const std::int64_t rows = whole(key.rows), columns = whole(key.columns);
  switch (key.kind) {
    case OpKind::matmul:
      return product_passes(key);
    case OpKind::convolution:
      return convolution_passes(key);
    case OpKind::attention: {
      const std::int64_t head = whole(key.inner), heads = whole(key.count);
      const std::int64_t groups = key.kv_count > 0 ? whole(key.kv_count) : heads;
      const AttentionShape shape{.head_dim = head,
                                 .causal = key.causal,
                                 .scale = 1 / std::sqrt(static_cast<double>(head)),
                                 .plain = options_.job.attention == AttentionKernel::plain};
      const at::Tensor q = learnt({1, rows, heads * head});
      const at::Tensor k = learnt({1, columns, groups * head});
      const at::Tensor v = learnt({1, columns, groups * head});
      return differentiated({q, k, v}, [=] { return attend(q, k, v, {}, shape); });
    }
    case OpKind::norm: {
      const at::Tensor x = learnt({rows, columns}), w = learnt({columns});
      const Function function = key.function;
      return differentiated({x, w}, [=] { return normalise(x, function, w, {}); });
    }
    case OpKind::reduction: {
      const at::Tensor x = learnt({rows, columns});
      return differentiated({x}, [=] { return x.sum(-1); });
    }
    case OpKind::elementwise: {
      const at::Tensor a = learnt({rows});
      if (key.function == Function::add || key.function == Function::other) {
        const at::Tensor b = learnt({rows});
        return differentiated({a, b}, [=] { return a + b; });
      }
      if (key.function == Function::rotary) {
        constexpr std::int64_t kHead = 64;
        const std::int64_t positions = std::max<std::int64_t>(1, rows / kHead);
        const at::Tensor x = learnt({1, positions, 1, kHead});
        const auto angles = turning_angles(positions, kHead, {}, x.options().requires_grad(false));
        return differentiated({x}, [=] { return turn(x, angles.first, angles.second); });
      }
      const bool gated = key.function == Function::silu;
      const at::Tensor x = gated ? learnt({1, 2 * rows}) : a;
      const Function function = key.function;
      return differentiated({x}, [=] { return activate(x, function, gated); });
    }
    case OpKind::embedding: {
      const at::Tensor table = learnt({std::max<std::int64_t>(1, whole(key.inner)), columns});
      const at::Tensor places =
          at::randint(table.size(0), {rows}, at::TensorOptions().dtype(at::kLong).device(device_));
      std::vector<Pass> passes =
          differentiated({table}, [=] { return at::embedding(table, places); });
      passes[0].read.clear();  // the table is not what was just written
      return passes;
    }
    case OpKind::loss: {
      const at::Tensor logits = learnt({rows, columns});
      const at::Tensor labels =
          at::randint(columns, {rows}, at::TensorOptions().dtype(at::kLong).device(device_));
      return differentiated({logits},
                            [=] { return at::cross_entropy_loss(logits.to(at::kFloat), labels); });
    }
  }
  throw InputError("op", "cannot be measured");
}

}  // namespace plait::runtime
