#include "cost/resharding.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "cost/comm/measured_links.h"
#include "model/op_cuts.h"

namespace plait {
namespace {

// The first tensor or data group of the devices, and what it takes to change a tensor on it.
class Changes {
 public:
  Changes(const Problem& problem, std::span<const DeviceId> devices)
      : problem_(problem),
        devices_(devices),
        links_(problem.profile, problem.cluster.type_of(devices.front()).name) {}

  Group group(int members, int stride) const {
    std::vector<DeviceId> ids;
    for (int i = 0; i < members; ++i) ids.push_back(devices_[i * stride]);
    return group_of(problem_.cluster, ids);
  }
  Seconds gather(int members, int stride, Bytes whole) const {
    return members < 2 ? Seconds(0) : links_.all_gather(group(members, stride), whole);
  }
  // Of a tensor of `whole` bytes on a tensor group.
  Seconds between(TensorLayout from, TensorLayout to, int members, Bytes whole_size) const {
    if (members < 2 || from == to || from == TensorLayout::whole) return {};
    const Group own = group(members, 1);
    if (from == TensorLayout::partial_sums)
      return to == TensorLayout::whole ? links_.all_reduce(own, whole_size)
                                       : links_.reduce_scatter(own, whole_size);
    PLAIT_CHECK(to != TensorLayout::partial_sums);
    return to == TensorLayout::whole ? links_.all_gather(own, whole_size)
                                     : links_.all_to_all(own, whole_size);
  }

 private:
  const Problem& problem_;
  std::span<const DeviceId> devices_;
  MeasuredLinks links_;
};

// One op of the two that meet.
struct Side {
  const LayerKind* unit = nullptr;
  const Span* span = nullptr;
  OpCut cut;

  bool is_product() const { return unit->ops.size() == 1 && input_elements(unit->ops[0]) > 0; }
};

Side side_of(const Problem& problem, const PlanSettings& settings, int unit, const Span& span,
             bool last_op) {
  const LayerKind& kind = problem.model.unit(unit);
  const std::vector<OpCut> cuts =
      cuts_of(last_op ? kind.ops.back() : kind.ops.front(), settings.sequence_parallel);
  return {&kind, &span, cuts[span.split < static_cast<int>(cuts.size()) ? span.split : 0]};
}

// Of what passes between them, without what only passes by (a residual).
double elements_between(const Side& before, const Side& after) {
  if (after.span->split > 0 && after.is_product()) return input_elements(after.unit->ops[0]);
  if (before.is_product()) return output_elements(before.unit->ops[0]);
  return before.unit->output;
}

bool repeats(const Side& side) { return side.span->recompute == Recompute::full; }

// Units that touch, in spans of the same degrees.
Resharding split_change(const Problem& problem, const PlanSettings& settings,
                        const Changes& changes, const Side& before, const Side& after) {
  const int tensor = before.span->tensor;
  if (tensor < 2 || (before.span->split == 0 && after.span->split == 0)) return {};
  const double samples = static_cast<double>(problem.job.global_batch) / settings.micro_batches /
                         settings.context / before.span->data;
  const Bytes size(activation_bytes(problem.job.precision) * samples *
                   elements_between(before, after));
  Resharding time;
  time.forward = changes.between(before.cut.output, after.cut.input, tensor, size);
  time.backward =
      changes.between(after.cut.input_gradient, before.cut.output_gradient(), tensor, size);
  // The change belongs to the op that is not cut as usual.
  if (repeats(before.span->split > 0 ? before : after)) time.backward += time.forward;
  return time;
}

}  // namespace

Resharding resharding(const Problem& problem, const PlanSettings& settings,
                      std::span<const DeviceId> devices, const Span& before, const Span& after) {
  if (before.chunk != after.chunk) return {};
  const bool same_degrees = before.data == after.data && before.tensor == after.tensor;
  if (same_degrees && before.split == 0 && after.split == 0) return {};
  const int unit = after.units.begin;
  const Side left = side_of(problem, settings, unit - 1, before, true);
  const Side right = side_of(problem, settings, unit, after, false);
  const Changes changes(problem, devices);
  if (same_degrees) return split_change(problem, settings, changes, left, right);
  const double samples = static_cast<double>(problem.job.global_batch) / settings.micro_batches;
  const Bytes size(activation_bytes(problem.job.precision) * left.unit->output * samples /
                   settings.context);
  const auto samples_of = [&](const Span& wide, const Span& other) {
    const int fewer = std::min(wide.data, other.data);
    return changes.gather((wide.data + fewer - 1) / fewer, wide.tensor * settings.context,
                          size / fewer);
  };
  Resharding time;
  if (before.data > after.data) time.forward = samples_of(before, after);
  if (after.data > before.data) time.backward = samples_of(after, before);
  time.forward +=
      changes.between(left.cut.output, TensorLayout::whole, before.tensor, size / before.data);
  time.backward += changes.between(right.cut.input_gradient, TensorLayout::whole, after.tensor,
                                   size / after.data);
  return time;
}

Resharding resharding_inside(const Problem& problem, const PlanSettings& settings,
                             std::span<const DeviceId> devices, const Span& span) {
  Resharding sum;
  if (span.split == 0 || span.tensor < 2) return sum;
  const Changes changes(problem, devices);
  for (int u = span.units.begin; u + 1 < span.units.end; ++u)
    sum += split_change(problem, settings, changes, side_of(problem, settings, u, span, true),
                        side_of(problem, settings, u + 1, span, false));
  return sum;
}

}  // namespace plait
