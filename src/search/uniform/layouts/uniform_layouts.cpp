#include "search/uniform/layouts/uniform_layouts.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "cost/framework/framework.h"
#include "model/layers.h"
#include "search/space/schedules.h"
#include "search/space/short_contexts.h"
#include "search/uniform/layouts/network_bound.h"

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
      data_exposed_(traits_of(problem_.job).data_exposed) {
  if (!contains(target_.schedules, base_)) base_ = Schedule::gpipe;
  for (int u = 0; u < problem_.model.unit_count(); ++u)
    if (is_layer(problem_.model.unit(u)) && begins_layer(problem_.model.unit(u)))
      layer_units_.push_back(u);
  if (static_cast<int>(layer_units_.size()) != layer_count(problem_.model)) layer_units_.clear();
  recomputes_ = space.recomputes();
  if (space.pins().recompute_layers) recomputes_ = {Recompute::none};
  std::set<int> tensors;
  for (const Pool& pool : space.pools())
    for (const int tensor : space.tensor_degrees(pool)) tensors.insert(tensor);
  tensors_.assign(tensors.begin(), tensors.end());
  std::set<std::pair<int, int>> contexts;
  for (const PlanSettings& settings : space.settings())
    contexts.insert({settings.context, settings.expert});
  const std::vector<int> short_ones = short_contexts(space);
  has_short_contexts_ = !short_ones.empty();
  for (const int context : short_ones)
    for (const PlanSettings& settings : space.settings())
      contexts.insert({context, settings.expert});
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

bool UniformLayouts::has_degrees(const NodeMix& mix) const {
  int world = 0;
  for (std::size_t k = 0; k < kinds_.size(); ++k) world += mix[k] * kinds_[k].devices();
  const auto may_have = [&](int replica, int stages) {
    const int rest = world / replica;
    return rest > 0 && rest % stages == 0 && problem_.job.global_batch % (rest / stages) == 0;
  };
  for (const int tensor : tensors_)
    for (const auto& [context, expert] : contexts_) {
      const int replica = tensor * context;
      if (world % replica != 0 || !tensor_fits(mix, tensor, context)) continue;
      for (int stages = space_.min_stages(); stages <= most_stages_; ++stages)
        if (may_have(replica, stages)) return true;
    }
  return false;
}

void UniformLayouts::list_degrees(const NodeMix& mix, int at,
                                  std::vector<UniformLayout>& out) const {
  int world = 0;
  for (std::size_t k = 0; k < kinds_.size(); ++k) world += mix[k] * kinds_[k].devices();
  for (const int tensor : tensors_)
    for (const auto& [context, expert] : contexts_) {
      if (world % (tensor * context) != 0 || !tensor_fits(mix, tensor, context)) continue;
      const int rest = world / (tensor * context);
      for (const int stages : divisors_of(rest)) {
        if (stages > most_stages_ || stages < space_.min_stages()) continue;
        UniformLayout layout{.mix = at, .tensor = tensor, .data = rest / stages, .stages = stages};
        layout.settings.context = context;
        layout.settings.expert = expert;
        list_data(layout, out);
      }
    }
}

void UniformLayouts::list_data(UniformLayout degrees, std::vector<UniformLayout>& out) const {
  const int sequence = problem_.model.sequence_length;
  const auto& [context, expert] = std::pair(degrees.settings.context, degrees.settings.expert);
  if (target_.context_in_halves && context > 1 && sequence % (2 * context) != 0) return;
  const int tensor = degrees.tensor;
  const bool cuts = tensor > 1 && sequence > 1 && sequence / context % tensor == 0;
  degrees.settings.sequence_parallel =
      space_.pins().sequence_parallel.value_or(cuts && target_.sequence_parallel);
  if (degrees.settings.sequence_parallel && !space_.cuts_sequence(degrees.settings, tensor)) return;
  if (degrees.data * context % expert == 0) list_batches(degrees, out);
}

bool UniformLayouts::obeys_pins(const UniformLayout& layout) const {
  const Pins& pins = space_.pins();
  const int micro_batch = problem_.job.global_batch / (layout.settings.micro_batches * layout.data);
  if (pins.data && *pins.data != layout.data) return false;
  if (pins.micro_batch && *pins.micro_batch != micro_batch) return false;
  return !pins.micro_batches || *pins.micro_batches == layout.settings.micro_batches;
}

// A context degree that has a divisor in common with the samples of a replica: as many devices more
// in data parallel do the same with fewer samples of whole sequences, and exchange less.
bool UniformLayouts::may_cut_samples(const UniformLayout& layout) const {
  const Pins& pins = space_.pins();
  if (!has_short_contexts_ || pins.data || pins.micro_batch) return false;
  const int micro_batch = problem_.job.global_batch / (layout.settings.micro_batches * layout.data);
  return std::gcd(micro_batch, layout.settings.context) > 1;
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
    if (!obeys_pins(layout) || may_cut_samples(layout)) continue;
    for (const ZeroStage zero : zero_stages(layout))
      for (const Recompute recompute : recomputes_) {
        if (layout.of_any_nodes && recompute != recomputes_.front()) break;
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
  if (layout.stages == 1 && !in_chunks) add(pins.schedule.value_or(base_schedule(1)), 1);
  if (layout.stages == 1) return;
  const auto wants = [&](Schedule schedule) {
    return contains(target_.schedules, schedule) && (!pins.schedule || *pins.schedule == schedule);
  };
  if (wants(base_)) add(base_, 1);
  // No program with one layout has the other zero-bubble schedules but where they are pinned.
  for (const Schedule plain : {Schedule::zb_h1, Schedule::zb_2p})
    if (pins.schedule && wants(plain)) add(plain, 1);
  if (wants(Schedule::zb_v) && 2 * layout.stages <= problem_.model.unit_count())
    add(Schedule::zb_v, 2);
  const bool interleaves = wants(Schedule::interleaved) && pins.stages.empty() &&
                           layout.settings.micro_batches % layout.stages == 0;
  for (int chunks = 2; interleaves && chunks * layout.stages <= layers_; ++chunks)
    if (pins.chunks ? *pins.chunks == chunks : chunks <= kMostChunks)
      add(Schedule::interleaved, chunks);
}

// Layouts without sequence parallelism where some layer is faster without: with it, all-reduces are
// two collectives that wait twice. False where it was stopped before it knew.
bool UniformLayouts::add_whole_sequences(const std::vector<NodeMix>& mixes,
                                         std::vector<UniformLayout>& all,
                                         const std::function<bool()>& stop) {
  if (space_.pins().sequence_parallel || !target_.ranks_in_order) return true;
  if (target_.experts_need_sequence_parallel && expert_count(problem_.model) > 1) return true;
  std::map<std::pair<ReplicaCut, ReplicaCut>, bool> faster;
  const auto cuts_of = [&](const UniformLayout& layout, int kind) {
    ReplicaCut cut = cut_of(layout, kind, mixes[layout.mix]);
    ReplicaCut whole = cut;
    whole.sequence_parallel = false;
    return std::pair(cut, whole);
  };
  const auto for_each = [&](const auto& look) {
    const std::size_t count = all.size();
    for (std::size_t i = 0; i < count && !stop(); ++i)
      for (int k = 0; all[i].settings.sequence_parallel && k < std::ssize(kinds_); ++k)
        if (mixes[all[i].mix][k] > 0 && look(all[i], cuts_of(all[i], k))) break;
  };
  for_each([&](const UniformLayout&, const auto& cuts) {
    if (faster.try_emplace(cuts, false).second) times_.want(cuts.first), times_.want(cuts.second);
    return false;
  });
  if (stop() || !times_.make(threads_, stop)) return false;
  for (auto& [cuts, is_faster] : faster) {
    if (stop()) return false;
    const ModelTime& cut = times_.at(cuts.first);
    const ModelTime& whole = times_.at(cuts.second);
    for (std::size_t u = 0; u < cut.by_unit.size() && !is_faster; ++u)
      is_faster = whole.by_unit[u] < cut.by_unit[u];
  }
  std::vector<UniformLayout> more;
  for_each([&](const UniformLayout& layout, const auto& cuts) {
    if (!faster.at(cuts)) return false;
    more.push_back(layout);
    more.back().settings.sequence_parallel = false;
    return true;
  });
  all.insert(all.end(), more.begin(), more.end());
  return !stop();
}

UniformLayouts::Listed UniformLayouts::list(const std::vector<NodeMix>& mixes,
                                            const std::vector<int>& which, Seconds limit,
                                            const std::function<bool()>& stop) {
  std::vector<UniformLayout> all;
  for (const int at : which) {
    if (stop()) return {.layouts = {}, .are_all = false};
    list_degrees(mixes[at], at, all);
  }
  return bounded(mixes, std::move(all), limit, stop);
}

UniformLayouts::Listed UniformLayouts::bounded(const std::vector<NodeMix>& mixes,
                                               std::vector<UniformLayout> given, Seconds limit,
                                               const std::function<bool()>& stop) {
  Listed listed{.layouts = std::move(given), .are_all = true};
  std::vector<UniformLayout>& all = listed.layouts;
  const auto nothing = [] { return Listed{.layouts = {}, .are_all = false}; };
  if (!add_whole_sequences(mixes, all, stop)) return nothing();
  for (const UniformLayout& layout : all) {
    if (stop()) return nothing();
    for (int k = 0; k < static_cast<int>(kinds_.size()); ++k)
      if (mixes[layout.mix][k] > 0) {
        const ReplicaCut cut = cut_of(layout, k, mixes[layout.mix]);
        times_.want(cut);
        times_.want(copies_of(layout, k, mixes[layout.mix]), cut.micro_batch);
      }
  }
  if (!times_.make(threads_, stop)) return nothing();
  NetworkBound network(problem_, kinds_);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (stop()) {
      listed.are_all = false;
      all.resize(i);
      break;
    }
    const NodeMix& mix = mixes[all[i].mix];
    const NetworkBound::Busy busy =
        all[i].of_any_nodes ? NetworkBound::Busy{} : network.of(all[i], mix);
    all[i].untied = std::max(bound_of(all[i], mix, limit), busy.link);
    const Seconds tied = all[i].of_any_nodes ? Seconds(0) : network.tied(all[i], mix);
    all[i].bound = std::max(all[i].untied + tied, busy.node);
  }
  std::erase_if(all, [&](const UniformLayout& layout) { return layout.bound >= limit; });
  return listed;
}

}  // namespace plait
