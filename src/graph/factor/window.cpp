#include "graph/factor/window.h"

namespace plait::graph {
namespace {

// Rounded towards minus infinity.
std::int64_t floor_of(std::int64_t a, std::int64_t b) {
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

// Binds one range of the smaller size to two dimensions, of which one may be a multiple of the
// other (a stride): parts of the range are then parts of both. -1 where that is not so.
int bind_both(RuleBuilder& rule, std::int64_t a, std::int64_t b, FactorKind kind,
              const auto& bind_a, const auto& bind_b) {
  const std::int64_t small = std::min(a, b);
  if (small < 2 || std::max(a, b) % small != 0) return -1;
  const int f = rule.factor(small, kind);
  bind_a(f);
  bind_b(f);
  if (a > small) bind_a(rule.factor(a / small, FactorKind::replication));
  if (b > small) bind_b(rule.factor(b / small, FactorKind::replication));
  return f;
}

// Result o looks at positions stride * o - low + dilation * k of the operand, whose elements stand
// base_dilation apart. A part [a, b) of the results has the operand's part [a, b) stride /
// base_dilation, and wants from  ceil((stride a - low) / base_dilation)  to
// floor((stride (b - 1) - low + dilation (size - 1)) / base_dilation).
// A window of 3 and stride 1 with padding 1 wants one element on each side.
void pass_positions(RuleBuilder& rule, const Window& w, int in, int out) {
  const std::int64_t size_in = rule.operand(0)[in];
  const std::int64_t size_out = rule.output()[out];
  if (size_in * w.base_dilation != size_out * w.stride) return;
  const int f = bind_both(
      rule, size_in, size_out, FactorKind::pass, [&](int g) { rule.bind_operand(0, in, g); },
      [&](int g) { rule.bind_output(0, out, g); });
  if (f < 0) return;
  rule.halo({0, in, floor_of(w.low, w.base_dilation),
             floor_of((w.size - 1) * w.dilation - w.low - w.stride, w.base_dilation) + 1});
}

// The gradient of a kernel: the window is the gradient of the results, as large as they are, and
// summed over. A part [a, b) of it, for all results o, wants of the operand from  dilation a - low
// to dilation (b - 1) - low + stride (results - 1).
void sum_positions(RuleBuilder& rule, const Window& w, int in, int kernel, int out) {
  const std::int64_t size_in = rule.operand(0)[in];
  const std::int64_t size_kernel = rule.operand(1)[kernel];
  if (w.base_dilation != 1 || size_in != size_kernel * w.dilation) return;
  const int f = bind_both(
      rule, size_in, size_kernel, FactorKind::reduction,
      [&](int g) { rule.bind_operand(0, in, g); }, [&](int g) { rule.bind_operand(1, kernel, g); });
  if (f < 0) return;
  rule.halo({0, in, w.low, (rule.output()[out] - 1) * w.stride - w.low - w.dilation + 1});
}

}  // namespace

std::vector<Window> windows_of(const Instruction& it, int rank) {
  const auto size = window_field(it, "size", rank, 1);
  const auto stride = window_field(it, "stride", rank, 1);
  const auto pad = window_field(it, "pad", rank, 0);
  const auto base = window_field(it, "lhs_dilate", rank, 1);
  const auto dilation = window_field(it, "rhs_dilate", rank, 1);
  const auto reversed = window_field(it, "rhs_reversal", rank, 0);
  std::vector<Window> all;
  for (int d = 0; d < rank; ++d)
    all.push_back({size[d], std::max<std::int64_t>(stride[d], 1), pad[2 * d], pad[2 * d + 1],
                   std::max<std::int64_t>(base[d], 1), std::max<std::int64_t>(dilation[d], 1),
                   reversed[d] != 0});
  return all;
}

void bind_positions(RuleBuilder& rule, const ConvolutionDims& dims) {
  const auto windows = windows_of(rule.source(), static_cast<int>(dims.lhs_spatial.size()));
  for (std::size_t s = 0; s < windows.size(); ++s) {
    const std::int64_t kernel = rule.operand(1)[dims.rhs_spatial[s]];
    if (windows[s].reversed || windows[s].size != kernel) continue;
    if (kernel > rule.output()[dims.out_spatial[s]]) {
      sum_positions(rule, windows[s], dims.lhs_spatial[s], dims.rhs_spatial[s],
                    dims.out_spatial[s]);
    } else {
      pass_positions(rule, windows[s], dims.lhs_spatial[s], dims.out_spatial[s]);
    }
  }
}

}  // namespace plait::graph
