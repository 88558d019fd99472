#include "search/moves/ground.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "search/space/schedules.h"

namespace plait {
namespace {

constexpr int kMostChunks = 4;
// Units that compute nothing (an embedding) weigh this part of the mean.
constexpr double kLeastWeight = 0.02;

std::vector<double> work_before(const Model& model) {
  const double mean = model.forward().value / model.unit_count();
  std::vector<double> prefix{0};
  for (int u = 0; u < model.unit_count(); ++u)
    prefix.push_back(prefix.back() + std::max(model.unit(u).forward().value, kLeastWeight * mean) +
                     1e-30);
  return prefix;
}

}  // namespace

Ground::Ground(const Space& space)
    : problem_(space.problem()), pins_(space.pins()), prefix_(work_before(problem_.model)) {
  const Problem& problem = problem_;
  const Pins& pins = pins_;
  devices_.resize(problem.cluster.nodes.size());
  for (int i = 0; i < problem.cluster.device_count(); ++i)
    devices_[problem.cluster.devices[i].node].push_back(DeviceId(i));
  for (const DeviceType& type : problem.cluster.device_types)
    speeds_.push_back(type.peak_of(DType::fp16).value * type.efficiency.matmul);
  for (const Pool& pool : space.pools())
    for (const int t : space.tensor_degrees(pool)) {
      if (t >= static_cast<int>(tensor_degrees_.size())) tensor_degrees_.resize(t + 1);
      tensor_degrees_[t] = true;
    }
  schedules_ = {searched_schedule(pins)};
  if (pins.schedule) schedules_ = {*pins.schedule};
  if (!pins.schedule && pins.stages.empty())
    for (const Schedule other : space.target().schedules)
      if (other != Schedule::gpipe && other != schedules_.front()) schedules_.push_back(other);
  recomputes_ = space.recomputes();
  if (pins.recompute_layers) recomputes_.resize(1);
  recomputes_by_layer_ = space.recomputes_by_layer();
  std::set<int> experts;
  for (const PlanSettings& settings : space.settings()) experts.insert(settings.expert);
  expert_degrees_.assign(experts.begin(), experts.end());
  for (const PlanSettings& settings : space.settings())
    if (std::ranges::find(zeros_, settings.zero) == zeros_.end()) zeros_.push_back(settings.zero);
  for (const int m : divisors_of(problem.job.global_batch))
    if (!pins.micro_batches || *pins.micro_batches == m) micro_batches_.push_back(m);
  for (int chunks = 2; chunks <= kMostChunks; ++chunks)
    if (!pins.chunks || *pins.chunks == chunks) chunk_counts_.push_back(chunks);
  if (pins.chunks && *pins.chunks > kMostChunks) chunk_counts_ = {*pins.chunks};
}

bool Ground::allows_tensor(int degree) const {
  return degree >= 1 && degree < static_cast<int>(tensor_degrees_.size()) &&
         tensor_degrees_[degree];
}

bool Ground::allows_expert(int degree) const {
  return std::ranges::find(expert_degrees_, degree) != expert_degrees_.end();
}

bool Ground::share_out(Draft& draft, DraftStage& stage) const {
  stage.shares.clear();
  const int samples = micro_batch(draft);
  const int group = draft.group(stage);
  const int first = type(stage.devices.front());
  bool alike = true;
  for (int d = 1; d < stage.data && alike; ++d) alike = type(stage.devices[d * group]) == first;
  if (alike && samples % stage.data == 0) return true;
  std::vector<double> speeds;
  for (int d = 0; d < stage.data; ++d) speeds.push_back(speed(type(stage.devices[d * group])));
  stage.shares = apportioned(samples, speeds);
  if (stage.shares.empty()) return false;
  const auto equal = [&](int share) { return share == stage.shares.front(); };
  if (std::ranges::all_of(stage.shares, equal)) stage.shares.clear();
  return true;
}

bool Ground::share_out(Draft& draft) const {
  return std::ranges::all_of(draft.stages,
                             [&](DraftStage& stage) { return share_out(draft, stage); });
}

bool Ground::is_sound(const Draft& draft, const DraftStage& stage) const {
  const Plan& settings = draft.settings;
  const int group = draft.group(stage);
  if (stage.data < 1 || !allows_tensor(stage.tensor)) return false;
  if (static_cast<int>(stage.devices.size()) != group * stage.data) return false;
  if (stage.data * settings.context % settings.expert != 0) return false;
  if (std::ranges::any_of(stage.units, [](int units) { return units < 1; })) return false;
  if (stage.shares.empty() && micro_batch(draft) % stage.data != 0) return false;
  if (std::ranges::any_of(stage.shares, [](int share) { return share < 1; })) return false;
  for (std::size_t i = 0; i < stage.devices.size(); i += stage.tensor)
    for (int t = 1; t < stage.tensor; ++t)
      if (type(stage.devices[i + t]) != type(stage.devices[i])) return false;
  return true;
}

bool Ground::is_sound(const Draft& draft) const {
  const Plan& settings = draft.settings;
  const int stages = draft.stage_count();
  const bool chunked = settings.schedule == Schedule::interleaved;
  if (chunked && (stages < 2 || settings.micro_batches % stages != 0)) return false;
  if (settings.zero == ZeroStage::parameters && stages > 1 && !pins_.zero) return false;
  return std::ranges::all_of(draft.stages,
                             [&](const DraftStage& stage) { return is_sound(draft, stage); }) &&
         obeys_pins(draft);
}

bool Ground::obeys_pins(const Draft& draft) const {
  if (pins_.pipeline && *pins_.pipeline != draft.stage_count()) return false;
  if (!pins_.stages.empty() && static_cast<int>(pins_.stages.size()) != draft.stage_count())
    return false;
  for (int s = 0; s < draft.stage_count(); ++s) {
    const DraftStage& stage = draft.stages[s];
    if (pins_.data && *pins_.data != stage.data) return false;
    const bool right_samples =
        stage.shares.empty() && micro_batch(draft) == stage.data * pins_.micro_batch.value_or(0);
    if (pins_.micro_batch && !right_samples) return false;
    if (!pins_.stages.empty() && pins_.stages[s] != stage.unit_count()) return false;
  }
  return true;
}

UnitsRecomputed::Runs Ground::by_layers(const UnitRange& units, UnitsRecomputed recompute) const {
  const auto to_next_layer = [&](int count) {
    while (count < units.size() && !problem_.model.unit(units.begin + count).starts_layer) ++count;
    return count;
  };
  if (recompute.full > 0) recompute.full = to_next_layer(recompute.full);
  if (recompute.selective > 0 && recompute.full < units.size() &&
      recompute.selective < units.size())
    recompute.selective = to_next_layer(recompute.full + recompute.selective) - recompute.full;
  return recompute.of(units);
}

Plan Ground::plan_of(const Draft& draft) const {
  Plan plan;
  lay_out(draft, plan);
  return plan;
}

Schedule Ground::schedule_of(const Draft& draft) const {
  return draft.stage_count() == 1 && !pins_.schedule ? schedules_.front() : draft.settings.schedule;
}

void Ground::lay_out(const Draft& draft, Plan& plan) const {
  std::vector<Stage> room = std::move(plan.stages);
  plan = draft.settings;
  plan.stages = std::move(room);
  const int stages = draft.stage_count();
  const int chunks = draft.chunks();
  std::vector<int> begins(static_cast<std::size_t>(stages) * chunks + 1);
  for (int s = 0; s < stages; ++s)
    for (int c = 0; c < chunks; ++c)
      begins[chunk_position(plan.schedule, stages, s, c) + 1] = draft.stages[s].units[c];
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  int tensor = 1;
  int copies = plan.context;
  bool cuts_sequence = problem_.model.sequence_length > 1;
  plan.stages.resize(stages);
  for (int s = 0; s < stages; ++s) {
    const DraftStage& own = draft.stages[s];
    Stage& stage = plan.stages[s];
    stage.devices.assign(own.devices.begin(), own.devices.end());
    stage.shares = own.shares;
    stage.spans.clear();
    for (int c = 0; c < chunks; ++c) {
      const int at = chunk_position(plan.schedule, stages, s, c);
      for (const RecomputedRun& run : by_layers({begins[at], begins[at + 1]}, own.recompute))
        stage.spans.push_back({.units = run.units,
                               .tensor = own.tensor,
                               .data = own.data,
                               .recompute = run.recompute,
                               .chunk = c});
    }
    tensor = std::max(tensor, own.tensor);
    copies = std::max(copies, own.data * plan.context);
    cuts_sequence &= problem_.model.sequence_length / plan.context % own.tensor == 0;
  }
  // Said only where it means something, so that equal plans are equal values.
  plan.sequence_parallel = pins_.sequence_parallel.value_or(tensor > 1 && cuts_sequence);
  if (copies == 1 && !pins_.zero) plan.zero = ZeroStage::off;
  plan.schedule = schedule_of(draft);
  if (pins_.recompute_layers) recompute_first(problem_.model, *pins_.recompute_layers, plan);
}

}  // namespace plait
