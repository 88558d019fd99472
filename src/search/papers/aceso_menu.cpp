#include "search/papers/aceso_menu.h"

#include <algorithm>
#include <cmath>

namespace plait {
namespace {

constexpr double kRelative = 1e-12;

RecomputePoint point_of(std::span<const RecomputeOp> ops, std::vector<bool> chosen) {
  RecomputePoint out;
  double run = 0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (!chosen[i]) continue;
    out.time += ops[i].time;
    const bool goes_on = i + 1 < ops.size() && chosen[i + 1];
    if (goes_on) out.saved += ops[i].kept;
    // The last op's counts where the next segment is recomputed, too: it may be.
    if (goes_on || i + 1 == ops.size()) run += ops[i].kept;
    out.peak = std::max(out.peak, run);
    if (!goes_on) run = 0;
  }
  out.ops = std::move(chosen);
  return out;
}

// The choice with the least time - price * saved.
RecomputePoint cheapest(std::span<const RecomputeOp> ops, double price) {
  const std::size_t count = ops.size();
  std::vector<bool> from[2];  // of each op, whether the one before is recomputed, by its own choice
  double value[2] = {0, HUGE_VAL};
  for (std::size_t i = 0; i < count; ++i) {
    const double gain = i > 0 ? price * ops[i - 1].kept : 0;
    const double alone = i > 0 ? value[0] : 0;
    const double after = i > 0 ? value[1] - gain : HUGE_VAL;
    from[0].push_back(value[1] < value[0]);
    from[1].push_back(after < alone);
    const double chosen = ops[i].allowed ? std::min(alone, after) + ops[i].time : HUGE_VAL;
    value[0] = i > 0 ? std::min(value[0], value[1]) : 0;
    value[1] = chosen;
  }
  std::vector<bool> chosen(count, false);
  bool state = count > 0 && value[1] < value[0];
  for (std::size_t i = count; i-- > 0;) {
    chosen[i] = state;
    state = from[state ? 1 : 0][i];
  }
  return point_of(ops, std::move(chosen));
}

void refine(std::span<const RecomputeOp> ops, const RecomputePoint& low, const RecomputePoint& high,
            std::vector<RecomputePoint>& out) {
  const double price = (high.time - low.time) / (high.saved - low.saved);
  RecomputePoint middle = cheapest(ops, price);
  const double bar = low.time - price * low.saved;
  const double gain = bar - (middle.time - price * middle.saved);
  if (gain <= kRelative * (high.time + 1e-30) || middle.saved <= low.saved ||
      middle.saved >= high.saved)
    return;
  refine(ops, low, middle, out);
  out.push_back(middle);
  refine(ops, middle, high, out);
}

}  // namespace

std::vector<RecomputePoint> recompute_menu(std::span<const RecomputeOp> ops) {
  std::vector<RecomputePoint> out{point_of(ops, std::vector<bool>(ops.size(), false))};
  double time = 0;
  double kept = HUGE_VAL;
  for (const RecomputeOp& op : ops) {
    time += op.time;
    if (op.kept > 0) kept = std::min(kept, op.kept);
  }
  if (!(kept < HUGE_VAL)) return out;
  RecomputePoint most = cheapest(ops, 2 * (time + 1e-12) / kept);
  if (most.saved <= 0) return out;
  refine(ops, out.front(), most, out);
  out.push_back(std::move(most));
  return out;
}

}  // namespace plait
