#include "search/space/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "plan/names.h"
#include "search/space/schedules.h"

namespace plait {
namespace {

// Sequences from this length on may be cut over a context group.
constexpr int kLongSequence = 16384;
constexpr int kMaxContext = 64;
constexpr int kMaxExpert = 256;

bool any_attention(const Model& model) {
  for (const LayerKind& kind : model.kinds)
    for (const Op& op : kind.ops)
      if (op.kind == OpKind::attention) return true;
  return false;
}

// Experts of the layers that have them, 0 if none has; the greatest common divisor when they
// differ.
int expert_count(const Model& model) {
  int count = 0;
  for (const LayerKind& kind : model.kinds)
    for (const Op& op : kind.ops)
      if (op.split == Split::experts) count = std::gcd(count, static_cast<int>(op.count));
  return count;
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

Space::Space(const Problem& problem, const Pins& pins)
    : problem_(problem),
      pins_(pins),
      pools_(pools_of(problem.cluster)),
      run_classes_(problem.model),
      tied_copies_(problem.model) {
  std::set<int> nodes;
  for (const Pool& pool : pools_)
    for (std::size_t d = 0; d < pool.devices.size(); d += pool.per_node)
      pools_share_nodes_ |= !nodes.insert(problem.cluster.device(pool.devices[d]).node).second;
  recomputes_ = {Recompute::none};
  if (problem.job.attention == AttentionKernel::plain && any_attention(problem.model))
    recomputes_.push_back(Recompute::selective);
  recomputes_.push_back(Recompute::full);
  if (pins.recompute) recomputes_ = {*pins.recompute};

  max_stages_ = std::min(problem.model.unit_count(), problem.cluster.device_count());
  if (pins.pipeline) min_stages_ = max_stages_ = *pins.pipeline;
  if (!pins.stages.empty()) min_stages_ = max_stages_ = static_cast<int>(pins.stages.size());

  contradiction_ = find_contradiction();
  if (contradiction_.empty()) list_settings();
}

bool Space::cuts_sequence(const PlanSettings& settings, int tensor) const {
  if (!settings.sequence_parallel) return true;
  const int on_device = problem_.model.sequence_length / settings.context;
  return on_device <= 0 || on_device % tensor == 0;
}

std::vector<bool> Space::sequence_parallel_choices(int context) const {
  if (pins_.sequence_parallel) return {*pins_.sequence_parallel};
  if (problem_.model.sequence_length <= 1) return {false};
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

void Space::list_settings() {
  // plait's own runtime has neither the third stage of ZeRO nor context and expert groups.
  const bool own_runtime = problem_.job.framework == Framework::plait;
  std::vector<ZeroStage> zeros{ZeroStage::off, ZeroStage::optimizer, ZeroStage::parameters};
  if (own_runtime) zeros.pop_back();
  if (pins_.zero) zeros = {*pins_.zero};

  const int sequence = problem_.model.sequence_length;
  std::vector<int> contexts{1};
  if (pins_.context) {
    contexts = {*pins_.context};
  } else if (sequence >= kLongSequence && !own_runtime) {
    for (int c = 2; c <= kMaxContext && sequence % (2 * c) == 0; c *= 2) contexts.push_back(c);
  }

  const int count = expert_count(problem_.model);
  std::vector<int> experts{1};
  if (pins_.expert) {
    experts = {*pins_.expert};
  } else if (count > 1 && !own_runtime) {
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
          settings_.push_back({m, context, expert, zero, sequence_parallel, 0});
  }
}

int Space::max_stages(const PlanSettings& settings) const {
  const bool needs_one_stage = settings.zero == ZeroStage::parameters && !pins_.zero;
  return needs_one_stage ? std::min(1, max_stages_) : max_stages_;
}

bool Space::allows(const UnitRange& units, int after) const {
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
  stage.spans.push_back({.units = placed.units,
                         .tensor = option.tensor,
                         .data = option.data,
                         .recompute = placed.recompute});
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
  Plan plan;
  plan.schedule = schedule;
  plan.micro_batches = settings.micro_batches;
  plan.context = settings.context;
  plan.expert = settings.expert;
  int copies = settings.context;
  int tensor = 1;
  for (const PlacedStage& placed : stages) {
    plan.stages.push_back(stage_of(placed));
    copies = std::max(copies, placed.option.data * settings.context);
    tensor = std::max(tensor, placed.option.tensor);
  }
  // Said only where it means something, so that equal plans are equal values.
  plan.sequence_parallel = settings.sequence_parallel && (tensor > 1 || pins_.sequence_parallel);
  plan.zero = copies > 1 || pins_.zero ? settings.zero : ZeroStage::off;
  return plan;
}

std::vector<Plan> Space::plans_of(const std::vector<PlacedStage>& stages,
                                  const PlanSettings& settings) const {
  return plans_for(plan_of(stages, settings, searched_schedule(pins_)), pins_);
}

std::string Space::find_contradiction() const {
  const int devices = problem_.cluster.device_count();
  const int units = problem_.model.unit_count();
  const int batch = problem_.job.global_batch;
  if (pins_.pipeline && *pins_.pipeline > units)
    return fmt::format(
        "--pp {} is more than the {} units of the model (layers, embedding and head)",
        *pins_.pipeline, units);
  if (!pins_.stages.empty()) {
    const int sum = std::accumulate(pins_.stages.begin(), pins_.stages.end(), 0);
    if (sum != units)
      return fmt::format("--stages add up to {}, the model has {} units", sum, units);
    if (pins_.pipeline && *pins_.pipeline != static_cast<int>(pins_.stages.size()))
      return fmt::format("--pp {} and {} --stages do not agree", *pins_.pipeline,
                         pins_.stages.size());
  }
  const double needed = 1.0 * pins_.tensor.value_or(1) * pins_.data.value_or(1) *
                        pins_.context.value_or(1) * min_stages_;
  if (needed > devices)
    return fmt::format("the pinned degrees need {} devices, the cluster has {}", needed, devices);
  std::string obstacle;
  if (pins_.tensor && !cuts_evenly(problem_.model, *pins_.tensor, &obstacle))
    return fmt::format("--tp {} does not divide {}", *pins_.tensor, obstacle);
  if (pins_.tensor &&
      std::ranges::all_of(pools_, [&](const Pool& pool) { return tensor_degrees(pool).empty(); }))
    return fmt::format(
        "--tp {} neither divides the devices of a node nor is a multiple of them "
        "(at most {} nodes)",
        *pins_.tensor, kMaxTensorNodes);
  if (pins_.context && problem_.model.sequence_length % *pins_.context != 0)
    return fmt::format("--cp {} does not divide the sequence length of {}", *pins_.context,
                       problem_.model.sequence_length);
  if (const PlanSettings cut{.context = pins_.context.value_or(1),
                             .sequence_parallel = pins_.sequence_parallel.value_or(false)};
      pins_.tensor && !cuts_sequence(cut, *pins_.tensor))
    return fmt::format("--tp {} does not divide the {} tokens of a sequence on each device (--sp)",
                       *pins_.tensor, problem_.model.sequence_length / cut.context);
  if (pins_.expert && *pins_.expert > 1) {
    const int experts = expert_count(problem_.model);
    if (experts == 0) return fmt::format("--ep {} needs a model with experts", *pins_.expert);
    if (experts % *pins_.expert != 0)
      return fmt::format("--ep {} does not divide the {} experts", *pins_.expert, experts);
  }
  if (pins_.micro_batches && batch % *pins_.micro_batches != 0)
    return fmt::format("--micro-batches {} does not divide the global batch of {}",
                       *pins_.micro_batches, batch);
  if (pins_.micro_batch && batch % *pins_.micro_batch != 0)
    return fmt::format("--micro-batch {} does not divide the global batch of {}",
                       *pins_.micro_batch, batch);
  if (pins_.data && batch % *pins_.data != 0 && pools_.size() == 1)
    return fmt::format("--dp {} does not divide the global batch of {}", *pins_.data, batch);
  if (pins_.data && pins_.micro_batch &&
      batch % (static_cast<long>(*pins_.data) * *pins_.micro_batch) != 0)
    return fmt::format("--dp {} x --micro-batch {} does not divide the global batch of {}",
                       *pins_.data, *pins_.micro_batch, batch);
  if (pins_.data && pins_.micro_batch && pins_.micro_batches &&
      static_cast<long>(*pins_.data) * *pins_.micro_batch * *pins_.micro_batches != batch)
    return fmt::format(
        "--dp {} x --micro-batch {} x --micro-batches {} is not the global batch of {}",
        *pins_.data, *pins_.micro_batch, *pins_.micro_batches, batch);
  const bool chunked = pins_.schedule == Schedule::interleaved || pins_.schedule == Schedule::zb_v;
  if (chunked && pins_.pipeline == 1)
    return fmt::format("--schedule {} needs a pipeline, --pp is 1", name_of(*pins_.schedule));
  if (pins_.chunks && *pins_.chunks > 1 && !chunked)
    return fmt::format("--chunks {} needs --schedule interleaved", *pins_.chunks);
  if (chunked && !pins_.stages.empty())
    return fmt::format("--schedule {} cuts stages into chunks, --stages cannot say how",
                       name_of(*pins_.schedule));
  return "";
}

}  // namespace plait
