#include "runtime/torch/comm/kernels.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/version.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace plait::runtime {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

at::Tensor turned(const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine,
                  bool neighbours, bool back) {
  const std::int64_t n = cosine.size(-1);
  const at::Tensor c = cosine.unsqueeze(1);  // over heads
  const at::Tensor s = sine.unsqueeze(1);
  const auto half = [&](const at::Tensor& all, std::int64_t which) {
    return neighbours ? all.slice(-1, which, 2 * n, 2) : all.narrow(-1, which * n, n);
  };
  const at::Tensor first = half(x, 0);
  const at::Tensor second = half(x, 1);
  at::Tensor out = at::empty(x.sizes(), x.options());
  const double sign = back ? -1 : 1;
  at::Tensor out_first = half(out, 0);
  at::Tensor out_second = half(out, 1);
  at::mul_out(out_first, first, c);
  out_first.addcmul_(second, s, -sign);
  at::mul_out(out_second, second, c);
  out_second.addcmul_(first, s, sign);
  const std::int64_t rest = x.size(-1) - 2 * n;
  if (rest > 0) out.narrow(-1, 2 * n, rest).copy_(x.narrow(-1, 2 * n, rest));
  return out;
}

struct Turn : torch::autograd::Function<Turn> {
  static Variable forward(AutogradContext* context, const Variable& x, const Variable& cosine,
                          const Variable& sine, bool neighbours) {
    context->save_for_backward({cosine, sine});
    context->saved_data["neighbours"] = neighbours;
    return turned(x, cosine, sine, neighbours, false);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradient) {
    const variable_list saved = context->get_saved_variables();
    const bool neighbours = context->saved_data["neighbours"].toBool();
    return {turned(gradient[0], saved[0], saved[1], neighbours, true), Variable(), Variable(),
            Variable()};
  }
};

at::Tensor plain_attention(const at::Tensor& q, at::Tensor k, at::Tensor v, const at::Tensor& bias,
                           const AttentionShape& shape) {
  const std::int64_t group = q.size(1) / k.size(1);
  if (group > 1) {
    k = k.repeat_interleave(group, 1);
    v = v.repeat_interleave(group, 1);
  }
  at::Tensor scores = capped(at::matmul(q * shape.scale, k.transpose(-2, -1)), shape.cap);
  if (bias.defined()) scores = scores + bias;
  if (shape.causal) {
    const at::Tensor later =
        at::ones({q.size(2), k.size(2)}, q.options().dtype(at::kBool).requires_grad(false)).triu(1);
    scores = scores.masked_fill(later, -std::numeric_limits<float>::infinity());
  }
  return at::matmul(at::softmax(scores, -1), v);
}

bool approximates_gelu(Function function) {
  return function == Function::gelu_tanh || function == Function::gelu_new ||
         function == Function::gelu_twice;
}

const char* gelu_kind(Function function) { return approximates_gelu(function) ? "tanh" : "none"; }

at::Tensor activation_of(const at::Tensor& x, Function function) {
  switch (function) {
    case Function::relu:
      return at::relu(x);
    case Function::silu:
      return at::silu(x);
    case Function::quick_gelu:
      return x * at::sigmoid(x * 1.702);
    default:
      return at::gelu(x, gelu_kind(function));
  }
}

// activation(first half) * second half. Gradients are written where they belong: the halves that
// split() would give need one more pass to be put together. The activation is computed again for
// backward: kept, it would be a quarter of what a gated layer keeps.
struct Gated : torch::autograd::Function<Gated> {
  static Variable forward(AutogradContext* context, const Variable& x, std::int64_t function) {
    const std::vector<at::Tensor> halves = at::split(x, x.size(-1) / 2, -1);
    context->save_for_backward({x});
    context->saved_data["function"] = function;
    return activation_of(halves[0], static_cast<plait::Function>(function)).mul_(halves[1]);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const auto function = static_cast<plait::Function>(context->saved_data["function"].toInt());
    const at::Tensor& gradient = gradients[0];
    const std::int64_t half = saved[0].size(-1) / 2;
    at::Tensor out = at::empty(saved[0].sizes(), saved[0].options());
    at::Tensor of_gate = out.narrow(-1, 0, half);
    at::Tensor of_value = out.narrow(-1, half, half);
    const at::Tensor gate = saved[0].narrow(-1, 0, half);
    if (function == plait::Function::silu)
      at::silu_out(of_value, gate);
    else
      at::gelu_out(of_value, gate, gelu_kind(function));
    of_value.mul_(gradient);
    const at::Tensor inner = gradient * saved[0].narrow(-1, half, half);
    if (function == plait::Function::silu)
      at::silu_backward_out(of_gate, inner, gate);
    else
      at::gelu_backward_out(of_gate, inner, gate, gelu_kind(function));
    return {out, Variable()};
  }
};

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 10)
#define PLAIT_GROUPED_PRODUCT 1

// What the product of all experts at once asks for: 16 bytes are loaded at a time.
bool is_one_product(const at::Tensor& rows, const at::Tensor& weights) {
  constexpr std::int64_t kAligned = 8;
  constexpr std::uintptr_t kBytes = 16;
  const auto aligned = [](const at::Tensor& x) {
    return x.size(-1) % kAligned == 0 &&
           reinterpret_cast<std::uintptr_t>(x.data_ptr()) % kBytes == 0;
  };
  return rows.is_cuda() && rows.scalar_type() == at::kBFloat16 && aligned(rows) &&
         aligned(weights) && weights.size(1) % kAligned == 0;
}
#endif

bool has_gated_kernel(Function function) {
  return function == Function::silu || function == Function::gelu || approximates_gelu(function);
}

// Keeps the chances of all classes and makes the gradient of them in one pass; log_softmax and
// nll_loss fill a tensor of zeros first and read three.
struct CrossEntropy : torch::autograd::Function<CrossEntropy> {
  static Variable forward(AutogradContext* context, const Variable& logits,
                          const Variable& labels) {
    const at::Tensor chances = at::softmax(logits, -1, wide_type(logits.scalar_type()));
    const at::Tensor place = labels.unsqueeze(-1);
    const at::Tensor hit = chances.gather(-1, place);
    context->save_for_backward({chances, place, hit});
    context->saved_data["dtype"] = static_cast<std::int64_t>(logits.scalar_type());
    return hit.clamp_min(std::numeric_limits<float>::min()).log_().neg_().squeeze(-1);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradient) {
    const variable_list saved = context->get_saved_variables();
    const auto dtype = static_cast<at::ScalarType>(context->saved_data["dtype"].toInt());
    const at::Tensor each = gradient[0].unsqueeze(-1);
    at::Tensor out = dtype == saved[0].scalar_type()
                         ? saved[0].detach()
                         : at::empty(saved[0].sizes(), saved[0].options().dtype(dtype));
    at::mul_out(out, saved[0].detach(), each);
    out.scatter_(-1, saved[1], saved[2].sub(1).mul_(each).to(dtype));
    return {out, Variable()};
  }
};

}  // namespace

at::Tensor normalise(const at::Tensor& x, Function kind, const at::Tensor& weight,
                     const at::Tensor& bias, double epsilon) {
  const std::int64_t width = x.size(-1);
  if (kind != Function::rms_norm) {
    if (!weight.defined()) return at::layer_norm(x, {width}, {}, {}, epsilon);
    if (!bias.defined()) return at::layer_norm(x, {width}, weight, {}, epsilon);
    return at::layer_norm(x, {width}, weight, bias, epsilon);
  }
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 8)
  if (x.is_cuda())
    return at::rms_norm(
        x, {width}, weight.defined() ? std::optional<at::Tensor>(weight) : std::nullopt, epsilon);
#endif
  const at::Tensor wide = x.to(wide_type(x.scalar_type()));
  const at::Tensor scale = at::rsqrt(wide.square().mean(-1, true) + epsilon);
  const at::Tensor out = (wide * scale).to(x.scalar_type());
  return weight.defined() ? out * weight : out;
}

at::Tensor normalise_maps(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (x.size(2) * x.size(3) == 1)
    return at::addcmul(bias.view({1, -1, 1, 1}), x, weight.view({1, -1, 1, 1}));
  return at::instance_norm(x, weight, bias, {}, {}, /*use_input_stats=*/true, 0.0, kUsualEpsilon,
                           /*cudnn_enabled=*/true);
}

at::Tensor activate(const at::Tensor& x, Function function, bool gated) {
  if (!gated) return activation_of(x, function);
  if (has_gated_kernel(function)) return Gated::apply(x, static_cast<std::int64_t>(function));
  const std::vector<at::Tensor> parts = at::split(x, x.size(-1) / 2, -1);
  return activation_of(parts[0], function) * parts[1];
}

at::Tensor expert_products(const at::Tensor& rows, const at::Tensor& weights,
                           const at::Tensor& biases, const at::Tensor& ends) {
#ifdef PLAIT_GROUPED_PRODUCT
  if (is_one_product(rows, weights)) {
    const at::Tensor out = at::_grouped_mm(rows, weights.transpose(1, 2), ends);
    if (!biases.defined()) return out;
    const at::Tensor row = at::arange(rows.size(0), ends.options());
    return out + biases.index_select(0, at::searchsorted(ends, row, /*out_int32=*/true,
                                                         /*right=*/true));
  }
#endif
  // Taken apart at once: the gradient of a part that is picked by its number is a tensor of all
  // parts, mostly zeros.
  const at::Tensor known = ends.to(at::kCPU);
  std::vector<std::int64_t> counts;
  std::int64_t before = 0;
  for (std::int64_t e = 0; e < known.size(0); ++e) {
    const std::int64_t end = known.data_ptr<std::int32_t>()[e];
    counts.push_back(end - std::exchange(before, end));
  }
  const std::vector<at::Tensor> own = rows.split_with_sizes(counts, 0);
  const std::vector<at::Tensor> weight = weights.unbind(0);
  const std::vector<at::Tensor> bias =
      biases.defined() ? biases.unbind(0) : std::vector<at::Tensor>(weight.size());
  std::vector<at::Tensor> outputs;
  for (std::size_t e = 0; e < own.size(); ++e)
    outputs.push_back(bias[e].defined() ? at::linear(own[e], weight[e], bias[e])
                                        : at::linear(own[e], weight[e]));
  return at::cat(outputs, 0);
}

at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& labels) {
  return CrossEntropy::apply(logits, labels);
}

at::Tensor turn(const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine,
                bool neighbours) {
  return Turn::apply(x, cosine, sine, neighbours);
}

std::pair<at::Tensor, at::Tensor> turning_angles(std::int64_t positions, std::int64_t features,
                                                 const Rotary& rotary,
                                                 const at::TensorOptions& options) {
  const at::TensorOptions exact = at::TensorOptions().dtype(at::kDouble);
  at::Tensor frequency = at::arange(0, features, 2, exact)
                             .div(static_cast<double>(features))
                             .mul(-std::log(rotary.base))
                             .exp();
  if (rotary.scaling == RotaryScaling::linear) frequency = frequency / rotary.factor;
  if (rotary.scaling == RotaryScaling::llama3) {
    // Turns within the trained positions; from low_factor to high_factor the scaling fades out.
    const at::Tensor turns =
        frequency * (static_cast<double>(rotary.trained_positions) / (2 * std::acos(-1.0)));
    const at::Tensor kept =
        turns.sub(rotary.low_factor).div(rotary.high_factor - rotary.low_factor).clamp(0, 1);
    frequency = frequency * kept + frequency / rotary.factor * (1 - kept);
  }
  const at::Tensor angles = at::outer(at::arange(0, positions, exact), frequency);
  return {angles.cos().to(options), angles.sin().to(options)};
}

at::Tensor capped(const at::Tensor& x, double cap) { return cap > 0 ? at::tanh(x / cap) * cap : x; }

at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                  const at::Tensor& bias, const AttentionShape& shape) {
  const auto heads_first = [&](const at::Tensor& x) {
    return x.view({x.size(0), x.size(1), x.size(2) / shape.head_dim, shape.head_dim})
        .transpose(1, 2);
  };
  const at::Tensor queries = heads_first(q);
  const at::Tensor keys = heads_first(k);
  const at::Tensor values = heads_first(v);
  at::Tensor out;
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 5)
  if (!shape.plain && shape.cap == 0) {
    std::optional<at::Tensor> mask;
    if (bias.defined()) {
      at::Tensor added = bias;
      if (shape.causal) {
        const at::Tensor later =
            at::ones({q.size(1), k.size(1)}, q.options().dtype(at::kBool)).triu(1);
        added = added.masked_fill(later, -std::numeric_limits<float>::infinity());
      }
      // The kernel copies a mask whose rows do not begin at multiples of 16 bytes for every sample.
      mask = added.contiguous().unsqueeze(0).expand({q.size(0), -1, -1, -1});
    }
    out = at::scaled_dot_product_attention(queries, keys, values, mask, 0.0, shape.causal && !mask,
                                           shape.scale, keys.size(1) != queries.size(1));
  }
#endif
  if (!out.defined()) out = plain_attention(queries, keys, values, bias, shape);
  return out.transpose(1, 2).reshape({q.size(0), q.size(1), q.size(2)});
}

at::Tensor relative_buckets(std::int64_t positions, std::int64_t buckets, std::int64_t distance,
                            bool causal) {
  std::vector<std::int64_t> rows;
  rows.reserve(2 * positions - 1);
  const std::int64_t side = causal ? buckets : buckets / 2;
  const std::int64_t exact = side / 2;
  for (std::int64_t ahead = 1 - positions; ahead < positions; ++ahead) {
    const std::int64_t first = !causal && ahead > 0 ? side : 0;
    const std::int64_t apart = causal ? std::max<std::int64_t>(0, -ahead) : std::abs(ahead);
    const double far = std::log(static_cast<double>(std::max<std::int64_t>(apart, 1)) /
                                static_cast<double>(exact)) /
                       std::log(static_cast<double>(distance) / static_cast<double>(exact)) *
                       static_cast<double>(side - exact);
    const std::int64_t row =
        apart < exact ? apart : std::min(side - 1, exact + static_cast<std::int64_t>(far));
    rows.push_back(first + row);
  }
  return at::tensor(rows, at::TensorOptions().dtype(at::kLong));
}

// Rows of 2 n - 1 with one cell more, read as rows of 2 n - 1, are each shifted by one more.
at::Tensor by_query_and_key(const at::Tensor& by_difference) {
  const std::int64_t heads = by_difference.size(0);
  const std::int64_t width = by_difference.size(1);
  const std::int64_t positions = (width + 1) / 2;
  const at::Tensor longer = at::constant_pad_nd(by_difference, {0, 1}, 0);
  const at::Tensor rows = longer.unsqueeze(1).expand({heads, positions, width + 1});
  return rows.reshape({heads, positions * (width + 1)})
      .narrow(1, 0, positions * width)
      .view({heads, positions, width})
      .narrow(2, positions - 1, positions);
}

at::Tensor alibi_bias(std::int64_t heads, std::int64_t first, std::int64_t count,
                      std::int64_t positions) {
  std::int64_t power = 1;  // the largest one that is not above `heads`
  while (2 * power <= heads) power *= 2;
  std::vector<double> slopes;
  for (std::int64_t head = first; head < first + count; ++head) {
    const bool added = head >= power;
    const double step =
        added ? static_cast<double>(2 * (head - power) + 1) / 2 : static_cast<double>(head + 1);
    slopes.push_back(std::exp2(-8 * step / static_cast<double>(power)));
  }
  const at::TensorOptions exact = at::TensorOptions().dtype(at::kDouble);
  const at::Tensor place = at::arange(0, positions, exact);
  return at::tensor(slopes, exact).view({-1, 1, 1}) * (place.unsqueeze(0) - place.unsqueeze(1));
}

at::Tensor unseen_keys(std::int64_t positions, std::int64_t window) {
  const at::Tensor all = at::ones({positions, positions}, at::kBool);
  const at::Tensor later = all.triu(1);
  return window > 0 ? later.logical_or(all.tril(-window)) : later;
}

}  // namespace plait::runtime
