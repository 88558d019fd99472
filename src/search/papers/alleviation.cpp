#include "search/papers/alleviation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace plait {
namespace {

int largest_degree(const Space& space, int devices) {
  int largest = 1;
  for (const Pool& pool : space.pools())
    for (const int degree : space.tensor_degrees(pool))
      if (devices % degree == 0 && degree <= devices) largest = std::max(largest, degree);
  return largest;
}

// Moves `count` units from one stage to another through those between.
std::optional<Alleviated> with_units_moved(Alleviated pipeline, int from, int to, int count) {
  if (count < 1 || pipeline.stages[from].units <= count) return std::nullopt;
  pipeline.stages[from].units -= count;
  pipeline.stages[to].units += count;
  return pipeline;
}

// The stages from the least loaded on.
std::vector<int> by_load(const Estimate& cost) {
  std::vector<int> order(cost.stages.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](int s) { return load_of(cost.stages[s]).value; });
  return order;
}

std::vector<Alleviated> fewer_units(const Space&, const Alleviated& from, int bottleneck,
                                    const Estimate& cost) {
  std::vector<Alleviated> out;
  std::vector<int> partners{by_load(cost).front(), bottleneck - 1, bottleneck + 1};
  const double own = load_of(cost.stages[bottleneck]).value;
  for (const int partner : partners) {
    if (partner < 0 || partner == bottleneck || partner >= static_cast<int>(from.stages.size()))
      continue;
    const double gap = own - load_of(cost.stages[partner]).value;
    const double unit = own / from.stages[bottleneck].units;
    const int even = std::max(1, static_cast<int>(std::lround(gap / 2 / std::max(unit, 1e-12))));
    for (const int count : {even, (even + 1) / 2, 1})
      if (auto moved = with_units_moved(from, bottleneck, partner, count))
        out.push_back(std::move(*moved));
  }
  return out;
}

// Doubles or halves the devices of a stage, in its tensor or its data degree.
bool scale(AlleviatedStage& stage, bool doubled, bool tensor) {
  if (doubled) {
    stage.devices *= 2;
    if (tensor) stage.tensor *= 2;
    return true;
  }
  if (stage.devices % 2 != 0) return false;
  if (tensor && stage.tensor % 2 != 0) return false;
  if (!tensor && stage.devices / stage.tensor % 2 != 0) return false;
  stage.devices /= 2;
  if (tensor) stage.tensor /= 2;
  return true;
}

// The bottleneck gets twice the devices, or half of them; the stages that have most to spare, or
// most to do, make up for it.
std::vector<Alleviated> with_devices(const Alleviated& from, int bottleneck, const Estimate& cost,
                                     bool more, bool tensor) {
  std::vector<Alleviated> out;
  std::vector<int> partners = by_load(cost);
  if (!more) std::ranges::reverse(partners);
  for (const bool partner_tensor : {true, false}) {
    Alleviated next = from;
    if (!scale(next.stages[bottleneck], more, tensor)) continue;
    int open = std::abs(next.stages[bottleneck].devices - from.stages[bottleneck].devices);
    for (const int partner : partners) {
      if (partner == bottleneck || open == 0) continue;
      AlleviatedStage& stage = next.stages[partner];
      const int change = more ? stage.devices / 2 : stage.devices;
      if (change < 1 || change > open) continue;
      AlleviatedStage changed = stage;
      if (!scale(changed, !more, partner_tensor) && !scale(changed, !more, !partner_tensor))
        continue;
      stage = changed;
      open -= change;
    }
    if (open == 0) out.push_back(std::move(next));
  }
  return out;
}

template <bool more, bool tensor>
std::vector<Alleviated> devices(const Space&, const Alleviated& from, int bottleneck,
                                const Estimate& cost) {
  return with_devices(from, bottleneck, cost, more, tensor);
}

// The next larger or smaller micro-batch of the same other settings.
std::vector<Alleviated> micro_batch(const Space& space, const Alleviated& from, bool larger) {
  const auto& all = space.settings();
  const PlanSettings& own = all[from.setting];
  int best = -1;
  for (int i = 0; i < static_cast<int>(all.size()); ++i) {
    const PlanSettings& other = all[i];
    const bool alike = other.context == own.context && other.expert == own.expert &&
                       other.zero == own.zero && other.offload == own.offload &&
                       other.sequence_parallel == own.sequence_parallel;
    if (!alike || (larger ? other.micro_batches >= own.micro_batches
                          : other.micro_batches <= own.micro_batches))
      continue;
    if (best < 0 || std::abs(other.micro_batches - own.micro_batches) <
                        std::abs(all[best].micro_batches - own.micro_batches))
      best = i;
  }
  if (best < 0) return {};
  Alleviated same = from;
  same.setting = best;
  // With its degrees, and with all stages cut for data as far as the micro-batch goes.
  Alleviated data = same;
  const int samples = space.problem().job.global_batch / all[best].micro_batches;
  for (AlleviatedStage& stage : data.stages)
    while (stage.tensor % 2 == 0 && samples % (2 * stage.devices / stage.tensor) == 0)
      stage.tensor /= 2;
  if (data == same) return {same};
  return {std::move(same), std::move(data)};
}

std::vector<Alleviated> larger_micro_batch(const Space& space, const Alleviated& from, int,
                                           const Estimate&) {
  return micro_batch(space, from, true);
}
std::vector<Alleviated> smaller_micro_batch(const Space& space, const Alleviated& from, int,
                                            const Estimate&) {
  return micro_batch(space, from, false);
}

// The same devices with another tensor degree.
std::vector<Alleviated> exchange(const Space&, const Alleviated& from, int bottleneck,
                                 const Estimate&) {
  std::vector<Alleviated> out;
  const AlleviatedStage& own = from.stages[bottleneck];
  for (const int tensor : {own.tensor * 2, own.tensor / 2}) {
    if (tensor < 1 || own.devices % tensor != 0) continue;
    out.push_back(from);
    out.back().stages[bottleneck].tensor = tensor;
  }
  return out;
}

}  // namespace

Seconds load_of(const StageCost& stage) {
  return stage.forward_total() + stage.backward_total() + stage.send;
}

std::optional<std::vector<PlacedStage>> placed(const Space& space, const Alleviated& pipeline) {
  std::vector<PlacedStage> out;
  std::size_t pool = 0;
  int used = 0;
  int unit = 0;
  for (const AlleviatedStage& stage : pipeline.stages) {
    while (pool < space.pools().size() && used == space.pools()[pool].size()) {
      ++pool;
      used = 0;
    }
    if (pool == space.pools().size()) return std::nullopt;
    const Pool& own = space.pools()[pool];
    if (used + stage.devices > own.size() || stage.devices % stage.tensor != 0) return std::nullopt;
    if (!tensor_fits(own, stage.tensor) ||
        space.aligned(static_cast<int>(pool), used, stage.tensor) != used)
      return std::nullopt;
    const int data = stage.devices / stage.tensor;
    const PlanSettings& settings = space.settings()[pipeline.setting];
    const int samples = space.problem().job.global_batch / settings.micro_batches;
    if (data % settings.context != 0 || samples % (data / settings.context) != 0)
      return std::nullopt;
    PlacedStage placed;
    placed.option = {
        stage.tensor, data / settings.context, {{static_cast<int>(pool), stage.devices, samples}}};
    placed.begin = {used};
    placed.units = {unit, unit + stage.units};
    placed.recompute = UnitsRecomputed::all(stage.recompute);
    used += stage.devices;
    unit += stage.units;
    out.push_back(std::move(placed));
  }
  return out;
}

std::optional<Alleviated> balanced_pipeline(const Space& space, int stages, int setting) {
  const int units = space.problem().model.unit_count();
  int left = -stages;
  for (const Pool& pool : space.pools()) left += pool.size();
  if (left < 0 || units < stages) return std::nullopt;
  Alleviated out;
  out.setting = setting;
  out.stages.assign(stages, {units / stages, 1, 1, Recompute::none});
  out.stages.back().units += units % stages;
  for (bool doubled = true; doubled && left > 0;) {
    doubled = false;
    for (AlleviatedStage& stage : out.stages) {
      if (stage.devices > left) continue;
      left -= stage.devices;
      stage.devices *= 2;
      doubled = true;
    }
  }
  if (left > 0) return std::nullopt;
  for (AlleviatedStage& stage : out.stages) stage.tensor = largest_degree(space, stage.devices);
  return out;
}

std::span<const Primitive> primitives() {
  static const Primitive table[] = {{"fewer units", -1, -1, fewer_units},
                                    {"more data", -1, -1, devices<true, false>},
                                    {"more tensor", -1, -1, devices<true, true>},
                                    {"exchange", 0, 0, exchange},
                                    {"larger micro-batch", -1, 1, larger_micro_batch},
                                    {"smaller micro-batch", 1, -1, smaller_micro_batch},
                                    {"less data", 1, 1, devices<false, false>},
                                    {"less tensor", 1, 1, devices<false, true>}};
  return table;
}

}  // namespace plait
