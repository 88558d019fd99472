#include "search/space/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "model/layers.h"
#include "search/space/host_order.h"
#include "search/space/schedules.h"

namespace plait {
namespace {

// Sequences from this length on may be cut over a context group. A limit of work, set: shorter ones
// fit without, and each degree multiplies the settings.
constexpr int kLongSequence = 16384;
// Limits of work, set: the widest published mixture, DeepSeek-V3, has 256 experts.
constexpr int kMaxContext = 64;
constexpr int kMaxExpert = 256;

bool any_attention(const Model& model) {
  for (const LayerKind& kind : model.kinds)
    for (const Op& op : kind.ops)
      if (op.kind == OpKind::attention) return true;
  return false;
}

}  // namespace

std::vector<int> divisors_of(int n) {
  std::vector<int> low;
  std::vector<int> high;
  for (int d = 1; d <= n / d; ++d) {
    if (n % d != 0) continue;
    low.push_back(d);
    if (d != n / d) high.push_back(n / d);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

std::vector<Pool> pools_of(const Cluster& cluster) {
  // Devices of one type on one node, in device order.
  std::map<std::pair<int, int>, std::vector<DeviceId>> blocks;  // (node, type)
  for (int i = 0; i < cluster.device_count(); ++i) {
    const Device& device = cluster.devices[i];
    blocks[{device.node, device.type}].push_back(DeviceId(i));
  }
  using Key = std::tuple<int, int, int, Link, Link, UsdPerSecond>;
  std::vector<std::pair<Key, Pool>> pools;
  for (const auto& [at, devices] : blocks) {
    const Node& node = cluster.nodes[at.first];
    const int count = static_cast<int>(devices.size());
    const Key key{at.second, node.zone, count, node.intra, node.uplink, node.price};
    auto it = std::ranges::find(pools, key, &std::pair<Key, Pool>::first);
    if (it == pools.end()) it = pools.insert(pools.end(), {key, Pool{at.second, count, {}}});
    it->second.devices.insert(it->second.devices.end(), devices.begin(), devices.end());
  }
  std::vector<Pool> out;
  for (auto& [key, pool] : pools) out.push_back(std::move(pool));
  return out;
}

int expert_count(const Model& model) {
  int count = 0;
  for (const LayerKind& kind : model.kinds)
    for (const Op& op : kind.ops)
      if (op.split == Split::experts) count = std::gcd(count, static_cast<int>(op.count));
  return count;
}

bool tensor_fits(const Pool& pool, int tensor) {
  return tensor <= std::min(pool.size(), kMaxTensorNodes * pool.per_node) &&
         (pool.per_node % tensor == 0 || tensor % pool.per_node == 0);
}

bool cuts_evenly(const Model& model, int tensor, std::string* obstacle) {
  for (const LayerKind& kind : model.kinds) {
    for (const Op& op : kind.ops) {
      double side = 0;
      const char* name = "";
      if (op.split == Split::heads) side = op.count, name = "heads";
      if (op.split == Split::column) side = op.columns * op.count, name = "output features";
      if (op.split == Split::row) side = op.inner * op.count, name = "input features";
      if (std::fmod(side, tensor) == 0) continue;
      if (obstacle != nullptr)
        *obstacle = fmt::format("the {} {} of {}.{}", side, name, kind.name, op.name);
      return false;
    }
  }
  return true;
}

Space::Space(const Problem& problem, const Pins& pins, const Target& target)
    : problem_(problem),
      pins_(pins),
      target_(target),
      violation_(violation_of(problem, pins, target)),
      pools_(pools_of(problem.cluster)),
      run_classes_(problem.model),
      layer_starts_(plait::layer_starts(problem.model)),
      tied_copies_(problem.model) {
  std::set<int> nodes;
  for (const Pool& pool : pools_)
    for (std::size_t d = 0; d < pool.devices.size(); d += pool.per_node)
      pools_share_nodes_ |= !nodes.insert(problem.cluster.device(pool.devices[d]).node).second;
  recomputes_ = {Recompute::none};
  if (problem.job.attention == AttentionKernel::plain && any_attention(problem.model))
    recomputes_.push_back(Recompute::selective);
  recomputes_.push_back(Recompute::full);
  std::erase_if(recomputes_, [&](Recompute recompute) {
    return std::ranges::find(target.recomputes, recompute) == target.recomputes.end();
  });
  if (pins.recompute) recomputes_ = {*pins.recompute};
  if (pins.recompute_layers) recomputes_ = {Recompute::none, Recompute::full};
  recomputes_by_layer_ = recomputes_.size() > 1 && !pins.recompute_layers &&
                         target.recompute_layers == RecomputeLayers::any;
  for (const LayerKind& unit : problem.model.kinds)
    split_choices_ = std::max(split_choices_, ways_to_cut(target, unit));

  max_stages_ = std::min(problem.model.unit_count(), problem.cluster.device_count());
  if (target.cuts == CutRule::none) max_stages_ = 1;
  if (pins.pipeline) min_stages_ = max_stages_ = *pins.pipeline;
  if (!pins.stages.empty()) min_stages_ = max_stages_ = static_cast<int>(pins.stages.size());

  if (!violation_) list_settings();
}

bool Space::cuts_sequence(const PlanSettings& settings, int tensor) const {
  if (!settings.sequence_parallel) return true;
  const int on_device = problem_.model.sequence_length / settings.context;
  return on_device <= 0 || on_device % tensor == 0;
}

std::vector<bool> Space::sequence_parallel_choices(int context) const {
  if (pins_.sequence_parallel) return {*pins_.sequence_parallel};
  if (problem_.model.sequence_length <= 1 || !target_.sequence_parallel) return {false};
  const PlanSettings cutting{.context = context, .sequence_parallel = true};
  bool always = true;
  bool sometimes = false;
  for (const Pool& pool : pools_)
    for (const int t : tensor_degrees(pool)) {
      const bool cuts = cuts_sequence(cutting, t);
      sometimes = sometimes || (t > 1 && cuts);
      always = always && (cuts || t > pool.per_node);
    }
  if (always) return {true};
  return sometimes ? std::vector<bool>{true, false} : std::vector<bool>{false};
}

// Cut gradients are worth a setting only where nothing else is cut less than parameters.
std::vector<ZeroStage> Space::zero_stages() const {
  if (pins_.zero) return {*pins_.zero};
  std::vector<ZeroStage> zeros = target_.zero;
  if (std::ranges::find(zeros, ZeroStage::optimizer) != zeros.end())
    std::erase(zeros, ZeroStage::gradients);
  return zeros;
}

void Space::list_settings() {
  const std::vector<ZeroStage> zeros = zero_stages();
  const int sequence = problem_.model.sequence_length;
  std::vector<int> contexts{1};
  if (pins_.context) {
    contexts = {*pins_.context};
  } else if (sequence >= kLongSequence && has_context(target_, problem_.job)) {
    for (int c = 2; c <= kMaxContext && sequence % (2 * c) == 0; c *= 2) contexts.push_back(c);
  }

  const int count = expert_count(problem_.model);
  std::vector<int> experts{1};
  if (pins_.expert) {
    experts = {*pins_.expert};
  } else if (count > 1 && target_.expert) {
    experts.clear();
    for (const int e : divisors_of(count))
      if (e <= std::min(kMaxExpert, problem_.cluster.device_count())) experts.push_back(e);
  }

  std::vector<std::pair<int, bool>> cuts;  // context, sequence parallelism
  for (const int context : contexts)
    for (const bool sequence_parallel : sequence_parallel_choices(context))
      cuts.emplace_back(context, sequence_parallel);
  for (const int m : divisors_of(problem_.job.global_batch)) {
    if (pins_.micro_batches && *pins_.micro_batches != m) continue;
    for (const auto& [context, sequence_parallel] : cuts)
      for (const int expert : experts)
        for (const ZeroStage zero : zeros)
          settings_.push_back(
              {m, context, expert, zero, sequence_parallel, pins_.offload.value_or(0)});
  }
}

int Space::max_stages(const PlanSettings& settings) const {
  const auto& zeros = target_.zero_in_pipeline;
  const bool needs_one_stage = (settings.zero == ZeroStage::parameters && !pins_.zero) ||
                               std::ranges::find(zeros, settings.zero) == zeros.end();
  return needs_one_stage ? std::min(1, max_stages_) : max_stages_;
}

bool Space::allows(const UnitRange& units, int after) const {
  if (pins_.even_layers && min_stages_ == max_stages_) {
    int layers = 0;
    for (int u = units.begin; u < units.end; ++u)
      layers += begins_layer(problem_.model.unit(u)) ? 1 : 0;
    const int even = whole_layer_count(problem_.model) / max_stages_;
    const int rest = whole_layer_count(problem_.model) % max_stages_ > 0 ? 1 : 0;
    if (layers < even || layers > even + rest) return false;
  }
  if (pins_.stages.empty()) return true;
  const int stage = static_cast<int>(pins_.stages.size()) - 1 - after;
  return stage >= 0 && units.size() == pins_.stages[stage];
}

int Space::aligned(int pool, int used, int tensor) const {
  const int step = std::min(tensor, pools_[pool].per_node);
  return (used + step - 1) / step * step;
}

Stage Space::stage_of(const PlacedStage& placed) const {
  Stage stage;
  const StageOption& option = placed.option;
  for (const RecomputedRun& run : placed.recompute.of(placed.units))
    stage.spans.push_back({.units = run.units,
                           .tensor = option.tensor,
                           .data = option.data,
                           .recompute = run.recompute});
  for (std::size_t i = 0; i < option.takes.size(); ++i) {
    const Take& take = option.takes[i];
    const auto from = pools_[take.pool].devices.begin() + placed.begin[i];
    stage.devices.insert(stage.devices.end(), from, from + take.devices);
    const int replicas = option.data_of(take);
    for (int r = 0; r < replicas; ++r)
      stage.shares.push_back(take.samples / replicas + (r < take.samples % replicas ? 1 : 0));
  }
  const bool equal =
      std::ranges::all_of(stage.shares, [&](int share) { return share == stage.shares.front(); });
  if (equal) stage.shares.clear();
  return stage;
}

Plan Space::plan_of(const std::vector<PlacedStage>& stages, const PlanSettings& settings,
                    Schedule schedule) const {
  Plan plan = plan_under(settings, schedule);
  for (const PlacedStage& placed : stages) plan.stages.push_back(stage_of(placed));
  if (target_.ranks_in_order) put_ranks_in_order(problem_.cluster, plan);
  drop_idle_switches(plan);
  return plan;
}

void Space::drop_idle_switches(Plan& plan) const {
  int copies = plan.context;
  int tensor = 1;
  for (const Stage& stage : plan.stages)
    for (const Span& span : stage.spans) {
      copies = std::max(copies, span.data * plan.context);
      tensor = std::max(tensor, span.tensor);
    }
  if (tensor == 1 && !pins_.sequence_parallel) plan.sequence_parallel = false;
  if (copies == 1 && !pins_.zero) plan.zero = ZeroStage::off;
}

std::vector<Plan> Space::plans_of(const std::vector<PlacedStage>& stages,
                                  const PlanSettings& settings) const {
  std::vector<Plan> plans = plans_for(plan_of(stages, settings, searched_schedule(pins_)), pins_);
  if (pins_.recompute_layers)
    for (Plan& plan : plans) recompute_first(problem_.model, *pins_.recompute_layers, plan);
  return plans;
}

}  // namespace plait
