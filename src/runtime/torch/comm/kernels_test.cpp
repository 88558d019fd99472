#include "runtime/torch/comm/kernels.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/torch/comm/device_state.h"

namespace plait::runtime {
namespace {

std::vector<at::Device> devices() {
  std::vector<at::Device> out{at::Device(at::kCPU)};
  if (has_cuda()) out.push_back(at::Device(at::kCUDA, 0));
  return out;
}

// Largest difference, relative to the largest value.
double apart(const at::Tensor& got, const at::Tensor& wanted) {
  const at::Tensor exact = wanted.to(at::kDouble);
  return ((got.to(at::kDouble) - exact).abs().max() / exact.abs().max()).item<double>();
}

double rounding_of(at::ScalarType type) {
  return type == at::kBFloat16 ? 1.0 / 256 : type == at::kFloat ? 1e-6 : 1e-14;
}

// The second of three experts has no rows.
TEST(Kernels, ProductsOfExpertsAreThoseOfEachRow) {
  at::manual_seed(2);
  const at::Tensor expert = at::tensor({0, 0, 2, 2, 2, 2, 2}, at::kLong);
  for (const at::Device device : devices())
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      const auto noise = [&](at::IntArrayRef shape) {
        return at::randn(shape, at::kDouble).to(type).to(device).set_requires_grad(true);
      };
      const at::Tensor rows = noise({7, 8}), weights = noise({3, 16, 8}), biases = noise({3, 16});
      const at::Tensor ends = at::tensor({2, 2, 7}, at::kInt).to(device);
      const at::Tensor seeds = at::randn({7, 16}, at::kDouble);
      const auto exact = [](const at::Tensor& x) {
        return x.detach().to(at::kCPU).to(at::kDouble).set_requires_grad(true);
      };
      const at::Tensor r = exact(rows), w = exact(weights), b = exact(biases);
      const at::Tensor wanted =
          at::bmm(w.index_select(0, expert), r.unsqueeze(2)).squeeze(2) + b.index_select(0, expert);
      wanted.backward(seeds);
      const at::Tensor got = expert_products(rows, weights, biases, ends);
      got.backward(seeds.to(type).to(device));
      const double close = 4 * rounding_of(type);
      EXPECT_LT(apart(got.to(at::kCPU), wanted), close);
      EXPECT_LT(apart(rows.grad().to(at::kCPU), r.grad()), close);
      EXPECT_LT(apart(weights.grad().to(at::kCPU), w.grad()), close);
      EXPECT_LT(apart(biases.grad().to(at::kCPU), b.grad()), close);
      EXPECT_LT(apart(expert_products(rows, weights, {}, ends).to(at::kCPU),
                      wanted - b.index_select(0, expert)),
                close);
    }
}

TEST(Kernels, CrossEntropyAndItsGradientAreThoseOfLogSoftmax) {
  at::manual_seed(1);
  for (const at::Device device : devices())
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kDouble}) {
      const at::Tensor logits =
          at::randn({7, 50}, at::kDouble).mul_(3).to(type).to(device).set_requires_grad(true);
      const at::Tensor labels = at::randint(50, {7}, at::kLong).to(device);
      const at::Tensor seeds = at::rand({7}, at::kDouble).to(wide_type(type)).to(device);
      const at::Tensor loss = cross_entropy(logits, labels);
      EXPECT_EQ(loss.scalar_type(), wide_type(type));
      loss.backward(seeds);
      const at::Tensor exact = logits.detach().to(at::kDouble).set_requires_grad(true);
      const at::Tensor wanted = at::cross_entropy_loss(exact, labels, {}, at::Reduction::None);
      wanted.backward(seeds.to(at::kDouble));
      EXPECT_LT(apart(loss, wanted), rounding_of(wide_type(type)));
      EXPECT_EQ(logits.grad().scalar_type(), type);
      EXPECT_LT(apart(logits.grad(), exact.grad()), rounding_of(type));
    }
}

// Chances below what fp32 can tell: the loss ends at -log 1.2e-38 = 87.3, the gradient does not.
TEST(Kernels, CrossEntropyOfTheImpossibleIsFinite) {
  const at::Tensor logits = at::zeros({1, 2}, at::kFloat);
  logits[0][0].fill_(500);
  const at::Tensor leaf = logits.clone().set_requires_grad(true);
  const at::Tensor loss = cross_entropy(leaf, at::ones({1}, at::kLong));
  EXPECT_NEAR(loss.item<double>(), 87.3, 0.1);
  loss.sum().backward();
  EXPECT_EQ(leaf.grad()[0][0].item<double>(), 1);
  EXPECT_EQ(leaf.grad()[0][1].item<double>(), -1);
}

TEST(Kernels, GatesHaveTheGradientsOfTheirParts) {
  at::manual_seed(2);
  for (const at::Device device : devices())
    for (const Function function :
         {Function::silu, Function::gelu, Function::gelu_tanh, Function::relu})
      for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
        const at::Tensor x =
            at::randn({2, 5, 12}, at::kDouble).to(type).to(device).set_requires_grad(true);
        const at::Tensor seeds = at::randn({2, 5, 6}, at::kDouble).to(type).to(device);
        const at::Tensor out = activate(x, function, /*gated=*/true);
        out.backward(seeds);
        const at::Tensor exact = x.detach().to(at::kDouble).set_requires_grad(true);
        const at::Tensor wanted =
            activate(exact.narrow(-1, 0, 6), function, false) * exact.narrow(-1, 6, 6);
        wanted.backward(seeds.to(at::kDouble));
        // In 16 bits what is between the two factors is rounded as well.
        EXPECT_LT(apart(out, wanted), 2 * rounding_of(type)) << static_cast<int>(function);
        EXPECT_LT(apart(x.grad(), exact.grad()), 3 * rounding_of(type))
            << static_cast<int>(function);
      }
}

TEST(Kernels, SlopesOfAlibiAreThoseOfThePaper) {
  // 8 heads: 2^-1 to 2^-8. 12 heads: these, and 2^-0.5, 2^-1.5, 2^-2.5, 2^-3.5 of the next power.
  const at::Tensor bias = alibi_bias(12, 6, 4, 3);
  const double slopes[] = {std::exp2(-7), std::exp2(-8), std::exp2(-0.5), std::exp2(-1.5)};
  for (int head = 0; head < 4; ++head)
    for (int query = 0; query < 3; ++query)
      for (int key = 0; key < 3; ++key)
        EXPECT_NEAR(bias[head][query][key].item<double>(), slopes[head] * (key - query), 1e-15);
}

TEST(Kernels, RelativePositionsBeyondTheDistanceShareABucket) {
  // 8 buckets looking back: 0 to 3 alone, 4 to 7 by the logarithm up to `distance`.
  const at::Tensor rows = relative_buckets(40, 8, 16, /*causal=*/true);  // key - query + 39
  EXPECT_EQ(rows[39 - 3].item<std::int64_t>(), 3);
  EXPECT_EQ(rows[39 - 16].item<std::int64_t>(), 7);
  EXPECT_EQ(rows[0].item<std::int64_t>(), 7);
  const at::Tensor wide = relative_buckets(40, 8, 128, true);
  EXPECT_LT(wide[39 - 16].item<std::int64_t>(), 7);
}

TEST(Kernels, DifferencesAreSpreadOverQueriesAndKeys) {
  // Two heads, three positions: differences -2 to 2.
  const at::Tensor table = at::arange(10, at::kDouble).view({2, 5}).requires_grad_();
  const at::Tensor spread = by_query_and_key(table);
  for (int head = 0; head < 2; ++head)
    for (int query = 0; query < 3; ++query)
      for (int key = 0; key < 3; ++key)
        EXPECT_EQ(spread[head][query][key].item<double>(), 5 * head + key - query + 2);
  // A difference of d stands in 3 - |d| cells.
  spread.sum().backward();
  EXPECT_TRUE(at::equal(table.grad()[1], at::tensor({1., 2., 3., 2., 1.}, at::kDouble)));
}

}  // namespace
}  // namespace plait::runtime
