#include "search/uniform/uniform_layouts.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "cost/framework/framework.h"
#include "model/layers.h"
#include "search/space/schedules.h"
#include "search/space/worthwhile.h"

namespace plait {
namespace {

constexpr int kMostChunks = 8;

bool contains(const auto& list, const auto& value) {
  return std::ranges::find(list, value) != list.end();
}

}  // namespace

UniformLayouts::UniformLayouts(const Space& space, const CostEngine& engine,
                               const std::vector<NodeKind>& kinds, int threads)
    : space_(space),
      problem_(space.problem()),
      target_(space.target()),
      kinds_(kinds),
      threads_(threads),
      times_(engine, kinds),
      base_(searched_schedule(space.pins())),
      layers_(whole_layer_count(problem_.model)),
      cut_optimizer_wins_(gains_by_cut_optimizer(problem_)) {
  if (!contains(target_.schedules, base_)) base_ = Schedule::gpipe;
  std::set<int> tensors;
  for (const Pool& pool : space.pools())
    for (const int tensor : space.tensor_degrees(pool)) tensors.insert(tensor);
  tensors_.assign(tensors.begin(), tensors.end());
  std::set<std::pair<int, int>> contexts;
  for (const PlanSettings& settings : space.settings())
    contexts.insert({settings.context, settings.expert});
  contexts_.assign(contexts.begin(), contexts.end());
  for (const PlanSettings& settings : space.settings())
    most_stages_ = std::max(most_stages_, space.max_stages(settings));
}

// Tensor and context groups have devices of one type, on one node or on whole nodes.
bool UniformLayouts::tensor_fits(const NodeMix& mix, int tensor, int context) const {
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    if (mix[k] == 0) continue;
    const int own = kinds_[k].devices();
    if (own % tensor != 0 && tensor % own != 0) return false;
    if (tensor > kMaxTensorNodes * own || mix[k] * own % (tensor * context) != 0) return false;
    if (tensor > own && !target_.tensor_across_nodes) return false;
    for (int d = 0; d < own; ++d)
      if (kinds_[k].types[d] != kinds_[k].types[tensor > own ? 0 : d - d % tensor]) return false;
  }
  return true;
}

void UniformLayouts::list_degrees(const NodeMix& mix, int at,
                                  std::vector<UniformLayout>& out) const {
  int world = 0;
  for (std::size_t k = 0; k < kinds_.size(); ++k) world += mix[k] * kinds_[k].devices();
  const int sequence = problem_.model.sequence_length;
  for (const int tensor : tensors_)
    for (const auto& [context, expert] : contexts_) {
      if (world % (tensor * context) != 0 || !tensor_fits(mix, tensor, context)) continue;
      if (target_.context_in_halves && context > 1 && sequence % (2 * context) != 0) continue;
      const int rest = world / (tensor * context);
      for (const int stages : divisors_of(rest)) {
        if (stages > most_stages_ || stages < space_.min_stages()) continue;
        UniformLayout layout{.mix = at, .tensor = tensor, .data = rest / stages, .stages = stages};
        layout.settings.context = context;
        layout.settings.expert = expert;
        const bool cuts = tensor > 1 && sequence > 1 && sequence / context % tensor == 0;
        layout.settings.sequence_parallel =
            space_.pins().sequence_parallel.value_or(cuts && target_.sequence_parallel);
        if (layout.settings.sequence_parallel && !space_.cuts_sequence(layout.settings, tensor))
          continue;
        if (layout.data * context % expert == 0) list_batches(layout, out);
      }
    }
}

bool UniformLayouts::obeys_pins(const UniformLayout& layout) const {
  const Pins& pins = space_.pins();
  const int micro_batch = problem_.job.global_batch / (layout.settings.micro_batches * layout.data);
  if (pins.data && *pins.data != layout.data) return false;
  if (pins.micro_batch && *pins.micro_batch != micro_batch) return false;
  return !pins.micro_batches || *pins.micro_batches == layout.settings.micro_batches;
}

std::vector<ZeroStage> UniformLayouts::zero_stages(const UniformLayout& layout) const {
  const Pins& pins = space_.pins();
  std::vector<ZeroStage> zeros = layout.stages > 1 ? target_.zero_in_pipeline : target_.zero;
  if (pins.zero)
    return contains(zeros, *pins.zero) ? std::vector{*pins.zero} : std::vector<ZeroStage>{};
  if (layout.data * layout.settings.context == 1) return {ZeroStage::off};
  // Gathering weights for every micro-batch does not pay in a pipeline; whoever wants it pins it.
  if (layout.stages > 1) std::erase(zeros, ZeroStage::parameters);
  if (contains(zeros, ZeroStage::optimizer)) {
    std::erase(zeros, ZeroStage::gradients);
    if (cut_optimizer_wins_) std::erase(zeros, ZeroStage::off);
  }
  return zeros;
}

void UniformLayouts::list_batches(const UniformLayout& degrees,
                                  std::vector<UniformLayout>& out) const {
  const int batch = problem_.job.global_batch;
  if (batch % degrees.data != 0) return;
  for (const int m : divisors_of(batch / degrees.data)) {
    UniformLayout layout = degrees;
    layout.settings.micro_batches = m;
    layout.settings.offload = space_.pins().offload.value_or(0);
    if (!obeys_pins(layout)) continue;
    for (const ZeroStage zero : zero_stages(layout))
      for (const Recompute recompute : space_.recomputes()) {
        layout.settings.zero = zero;
        layout.recompute = recompute;
        list_schedules(layout, out);
      }
  }
}

void UniformLayouts::list_schedules(const UniformLayout& layout,
                                    std::vector<UniformLayout>& out) const {
  const Pins& pins = space_.pins();
  const auto add = [&](Schedule schedule, int chunks) {
    UniformLayout own = layout;
    own.schedule = schedule;
    own.chunks = chunks;
    out.push_back(own);
  };
  const bool in_chunks = pins.schedule == Schedule::interleaved || pins.schedule == Schedule::zb_v;
  if (layout.stages == 1 && !in_chunks) add(pins.schedule.value_or(base_), 1);
  if (layout.stages == 1) return;
  const auto wants = [&](Schedule schedule) {
    return contains(target_.schedules, schedule) && (!pins.schedule || *pins.schedule == schedule);
  };
  if (wants(base_)) add(base_, 1);
  // Zero-bubble schedules have no bound that is near, and are searched where they are pinned.
  for (const Schedule plain : {Schedule::zb_h1, Schedule::zb_2p})
    if (pins.schedule && wants(plain)) add(plain, 1);
  if (pins.schedule && wants(Schedule::zb_v) && 2 * layout.stages <= problem_.model.unit_count())
    add(Schedule::zb_v, 2);
  const bool interleaves = wants(Schedule::interleaved) && pins.stages.empty() &&
                           layout.settings.micro_batches % layout.stages == 0;
  for (int chunks = 2; interleaves && chunks * layout.stages <= layers_; ++chunks)
    if (pins.chunks ? *pins.chunks == chunks : chunks <= kMostChunks)
      add(Schedule::interleaved, chunks);
}

ReplicaCut UniformLayouts::cut_of(const UniformLayout& layout, int kind) const {
  const bool cuts_weights =
      layout.settings.zero == ZeroStage::parameters ||
      (layout.settings.zero == ZeroStage::gradients && problem_.job.framework.fully_sharded);
  const bool enough = kinds_[kind].count() * kinds_[kind].devices() >= layout.stage_devices();
  const bool depends = (layout.settings.expert > 1 || cuts_weights) && enough;
  return {.kind = kind,
          .tensor = layout.tensor,
          .context = layout.settings.context,
          .expert = depends ? layout.settings.expert : 1,
          .data = depends ? layout.data : 1,
          .micro_batch = problem_.job.global_batch / (layout.settings.micro_batches * layout.data),
          .sequence_parallel = layout.settings.sequence_parallel,
          .zero = cuts_weights && depends ? layout.settings.zero : ZeroStage::off,
          .recompute = layout.recompute};
}

// With X_k the time of the whole model on a stage of nodes of kind k and w_u the least part of it
// that unit u has on any kind, stages that take x_s have done the model when sum x_s / X_k(s) is at
// least W = sum w_u; so the longest takes Y = W / sum 1 / X_k(s) at least, and a step m Y. Under
// 1F1B and GPipe the first micro-batch has to pass all stages as well (closed_form in
// cost/pipeline/simulator.h): with c_s = m - k_s + (k_s - 1) / 2, k_s = min(m, p - s),
//   sum of the round trip + W / sum over s of 1 / (c_s X).
Seconds UniformLayouts::bound_of(const UniformLayout& layout, const NodeMix& mix) const {
  std::vector<const ModelTime*> used;
  double rate = 0;  // models of a micro-batch in a second, all stages together
  double fastest = HUGE_VAL;
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    if (mix[k] == 0) continue;
    used.push_back(&times_.at(cut_of(layout, static_cast<int>(k))));
    const double stages = 1.0 * mix[k] * kinds_[k].devices() / layout.stage_devices();
    rate += stages / used.back()->total;
    fastest = std::min(fastest, used.back()->total);
  }
  double work = 1;
  double round_trip = fastest;
  if (used.size() > 1) {
    work = round_trip = 0;
    for (std::size_t u = 0; u < used.front()->by_unit.size(); ++u) {
      double part = HUGE_VAL;
      double least = HUGE_VAL;
      for (const ModelTime* time : used) {
        part = std::min(part, time->by_unit[u] / time->total);
        least = std::min(least, time->by_unit[u]);
      }
      work += part;
      round_trip += least;
    }
  }
  const double m = layout.settings.micro_batches;
  double bound = m * work / rate;
  if (layout.schedule == Schedule::one_f_one_b || layout.stages == 1) {
    double inverse = 0;
    for (int s = 0; s < layout.stages; ++s) {
      const double k = std::min(m, static_cast<double>(layout.stages - s));
      const double weight = m - k + (k - 1) / 2;
      inverse += weight > 0 ? 1 / weight : HUGE_VAL;
    }
    bound = std::max(bound, round_trip + work * fastest / inverse);
  } else if (layout.schedule == Schedule::gpipe) {
    bound = std::max(bound, round_trip + (m - 1) * work / rate);
  }
  return Seconds(bound);
}

std::vector<UniformLayout> UniformLayouts::list(const std::vector<NodeMix>& mixes,
                                                const std::vector<int>& which, Seconds limit) {
  std::vector<UniformLayout> all;
  for (const int at : which) list_degrees(mixes[at], at, all);
  for (const UniformLayout& layout : all)
    for (int k = 0; k < static_cast<int>(kinds_.size()); ++k)
      if (mixes[layout.mix][k] > 0) times_.want(cut_of(layout, k));
  times_.make(threads_);
  for (UniformLayout& layout : all) layout.bound = bound_of(layout, mixes[layout.mix]);
  std::erase_if(all, [&](const UniformLayout& layout) { return layout.bound >= limit; });
  return all;
}

}  // namespace plait
