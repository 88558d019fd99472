#include "search/papers/paper_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cost/pipeline/schedule.h"
#include "cost/stage_cost.h"
#include "search/space/schedules.h"

namespace plait {
namespace {

constexpr std::size_t kMostKeyNumbers = 1 << 24;

Stage stage_of(const Slot& slot, const UnitRange& units, Recompute recompute) {
  Stage stage;
  stage.spans.push_back(
      {.units = units, .tensor = slot.tensor, .data = slot.data, .recompute = recompute});
  stage.devices = slot.devices;
  stage.shares = slot.shares;
  return stage;
}

}  // namespace

PaperSearch::PaperSearch(const SearchContext& context)
    : context_(context),
      space_(*context.space),
      engine_(*context.engine),
      tables_(
          [this](const ReplicaShape& shape) -> const UnitTable& { return engine_.table(shape); }),
      found_(engine_, context.options.keep, context.options.target),
      schedule_(searched_schedule(context.options.pins)),
      recompute_(context.options.pins.recompute.value_or(Recompute::none)),
      obstacle_(space_.violation() ? in_words(*space_.violation()) : ""),
      places_(context.problem.cluster.devices.size()) {
  for (int p = 0; p < static_cast<int>(space_.pools().size()); ++p)
    for (int i = 0; i < space_.pools()[p].size(); ++i)
      places_[index(space_.pools()[p].devices[i])] = {p, i};
  units_of_kind_.resize(context.problem.model.kinds.size());
  for (const int kind : context.problem.model.units) ++units_of_kind_[kind];
  most_frequent_kind_ = std::ranges::max_element(units_of_kind_) - units_of_kind_.begin();
  const int pinned_context = context.options.pins.context.value_or(1);
  sequence_parallel_ = !space_.settings().empty() &&
                       std::ranges::all_of(space_.settings(), [&](const PlanSettings& settings) {
                         return settings.context != pinned_context || settings.sequence_parallel;
                       });
  least_latency_ = Seconds(HUGE_VAL);
  for (const Node& node : context.problem.cluster.nodes) {
    fastest_uplink_ = std::max(fastest_uplink_, node.uplink.bandwidth);
    least_latency_ = std::min(least_latency_, node.uplink.latency);
  }
  least_output_ = HUGE_VAL;
  for (int u = 0; u + 1 < units(); ++u)
    least_output_ = std::min(least_output_, context.problem.model.unit(u).output);
  // Under other schedules than those that are searched, pipelines may be faster than they look.
  const auto& pinned = context.options.pins.schedule;
  has_cutoff_ = std::isfinite(context.options.cutoff.value) && (!pinned || *pinned == schedule_);
}

bool PaperSearch::stopped() {
  const std::int64_t limit = context_.options.max_evaluations;
  stopped_ =
      stopped_ || (limit > 0 && found_.evaluations() + slow_ >= limit) || context_.should_stop();
  return stopped_;
}

PlanSettings PaperSearch::settings(int micro_batches) const {
  const Pins& pins = space_.pins();
  PlanSettings settings;
  settings.micro_batches = micro_batches;
  settings.context = pins.context.value_or(1);
  settings.expert = pins.expert.value_or(1);
  settings.zero = pins.zero.value_or(ZeroStage::off);
  settings.sequence_parallel = sequence_parallel_;
  settings.offload = pins.offload.value_or(0);
  return settings;
}

bool PaperSearch::allows_stages(int stages) const {
  return stages >= space_.min_stages() && stages <= space_.max_stages(settings(1));
}

bool PaperSearch::tries(int micro_batches) const {
  const std::vector<int>& promising = context_.options.promising_micro_batches;
  const auto& pinned = space_.pins().micro_batches;
  return (!pinned || *pinned == micro_batches) &&
         (promising.empty() || std::ranges::binary_search(promising, micro_batches));
}

std::vector<Degrees> PaperSearch::uniform_degrees(int max_tensor) const {
  const Problem& problem = space_.problem();
  const Pins& pins = space_.pins();
  int per_node = 0;
  for (const Pool& pool : space_.pools()) per_node = std::gcd(per_node, pool.per_node);
  const int context = pins.context.value_or(1);
  const int devices = problem.cluster.device_count();
  std::vector<Degrees> all;
  for (const int tensor : divisors_of(per_node)) {
    if (tensor > max_tensor || devices % (tensor * context) != 0) continue;
    for (const int data : divisors_of(devices / (tensor * context))) {
      const int pipeline = devices / (tensor * context * data);
      if (problem.job.global_batch % data != 0 || !allows_stages(pipeline)) continue;
      for (const int m : divisors_of(problem.job.global_batch / data))
        if (tries(m)) all.push_back({tensor, data, pipeline, m});
    }
  }
  return all;
}

std::optional<Layout> PaperSearch::uniform_layout(const std::vector<DeviceId>& order,
                                                  const Degrees& degrees) {
  const PlanSettings settings = this->settings(degrees.micro_batches);
  std::vector<Slot> slots;
  const int size = static_cast<int>(order.size()) / degrees.pipeline;
  for (int s = 0; s < degrees.pipeline; ++s) {
    const auto from = order.begin() + static_cast<std::ptrdiff_t>(s) * size;
    slots.push_back({{from, from + size}, degrees.tensor, degrees.data, {}});
  }
  if (!std::ranges::all_of(slots, [&](const Slot& slot) { return allows(slot, settings); }))
    return std::nullopt;
  Layout made = layout(settings, std::move(slots));
  if (is_hopeless(made)) return std::nullopt;
  return made;
}

bool PaperSearch::cuts_evenly_by(int tensor) {
  const auto [at, is_new] = is_even_degree_.try_emplace(tensor);
  if (is_new) at->second = cuts_evenly(space_.problem().model, tensor);
  return at->second;
}

bool PaperSearch::allows(const Slot& slot, const PlanSettings& settings) {
  const Problem& problem = space_.problem();
  const Pins& pins = space_.pins();
  const int micro_batch = problem.job.global_batch / settings.micro_batches;
  if (pins.tensor && *pins.tensor != slot.tensor) return false;
  if (pins.data && *pins.data != slot.data) return false;
  if (pins.micro_batch && *pins.micro_batch * slot.data != micro_batch) return false;
  if (pins.micro_batch && !slot.shares.empty()) return false;
  if (slot.shares.empty() ? micro_batch % slot.data != 0 : micro_batch < slot.data) return false;
  if (slot.data * settings.context % settings.expert != 0) return false;
  if (!cuts_evenly_by(slot.tensor)) return false;
  if (settings.sequence_parallel &&
      problem.model.sequence_length % (settings.context * slot.tensor) != 0)
    return false;
  return has_tidy_tensor_groups(slot);
}

bool PaperSearch::has_tidy_tensor_groups(const Slot& slot) const {
  if (slot.tensor == 1) return true;
  for (std::size_t i = 0; i < slot.devices.size(); ++i) {
    const Place& first = places_[index(slot.devices[i - i % slot.tensor])];
    const Place& here = places_[index(slot.devices[i])];
    const int per_node = space_.pools()[first.pool].per_node;
    if (here.pool != first.pool) return false;
    if (space_.aligned(first.pool, first.position, slot.tensor) != first.position) return false;
    if (per_node % slot.tensor != 0 && slot.tensor % per_node != 0) return false;
    if (slot.tensor > kMaxTensorNodes * per_node) return false;
  }
  return true;
}

// Devices enter by what tells them apart: their pool, and which of them share a node.
std::vector<int> PaperSearch::key_of(const PlanSettings& settings, const Slot& slot) const {
  std::vector<int> key;
  key.reserve(3 + 2 * slot.devices.size() + slot.shares.size());
  key.insert(key.end(), {settings.micro_batches, slot.tensor, slot.data});
  int node = -1;
  int number = 0;
  for (const DeviceId id : slot.devices) {
    const int at = space_.problem().cluster.device(id).node;
    if (at != node) ++number;
    node = at;
    key.push_back(places_[index(id)].pool);
    key.push_back(number);
  }
  key.insert(key.end(), slot.shares.begin(), slot.shares.end());
  return key;
}

PaperFrame& PaperSearch::frame(const PlanSettings& settings, const Slot& slot) {
  std::vector<int> key = key_of(settings, slot);
  const std::size_t numbers = key.size();
  std::unique_ptr<PaperFrame>& kept = frames_[std::move(key)];
  if (!kept) {
    key_numbers_ += numbers;
    kept = std::make_unique<PaperFrame>(PaperFrame{SpanFrame(
        space_.problem(), settings, slot.devices, slot.tensor, slot.data, slot.shares, tables_)});
  }
  return *kept;
}

bool PaperSearch::forget_many_frames() {
  if (key_numbers_ <= kMostKeyNumbers) return false;
  frames_.clear();
  key_numbers_ = 0;
  return true;
}

Layout PaperSearch::layout(const PlanSettings& settings, std::vector<Slot> slots) {
  forget_many_frames();
  Layout layout{settings, std::move(slots), {}};
  for (const Slot& slot : layout.slots) layout.frames.push_back(&frame(settings, slot));
  return layout;
}

const std::vector<double>& PaperSearch::times(PaperFrame& frame) const {
  std::vector<double>& times = frame.times;
  for (int u = static_cast<int>(times.size()); u <= units(); ++u)
    times.push_back(u == 0 ? 0 : time(frame, {0, u}).value);
  return times;
}

double PaperSearch::fill(const Layout& layout, int stage, const UnitRange& units) const {
  const int m = layout.settings.micro_batches;
  const double live = chunks_in_flight(schedule_, layout.stages(), stage, m, 1);
  const double waiting = schedule_ == Schedule::gpipe ? m - 1 : 0;
  const double tied = space_.tied_copies().of(units);
  const SpanFrame& frame = layout.frames[stage]->span;
  double fullest = 0;
  for (int r = 0; r < frame.replica_count(); ++r) {
    const SpanFrame::Memory memory = frame.memory(r, units, recompute_, tied);
    fullest = std::max(fullest, memory.peak(live, waiting) / (memory.capacity - memory.reserve));
  }
  return fullest;
}

PaperFrame::Run* PaperSearch::known_run(PaperFrame& frame, const UnitRange& units) {
  const RunClasses& classes = space_.run_classes();
  if (!classes.are_few()) return nullptr;
  if (frame.runs.empty()) {
    frame.runs.resize(classes.count());
    key_numbers_ += classes.count() * (sizeof(PaperFrame::Run) / sizeof(int));
  }
  return &frame.runs[classes.of(units)];
}

// More micro-batches in flight never take less memory. Runs that read the same differ by rounding.
bool PaperSearch::fits(const Layout& layout, int stage, const UnitRange& units) {
  PaperFrame::Run* const run = known_run(*layout.frames[stage], units);
  const int live =
      chunks_in_flight(schedule_, layout.stages(), stage, layout.settings.micro_batches, 1);
  if (run != nullptr && live <= run->fits_with) return true;
  const double full = fill(layout, stage, units);
  if (run != nullptr && full <= 1 - kSameTime) run->fits_with = live;
  return full <= 1;
}

Seconds PaperSearch::send(const PlanSettings& settings, const Slot& from, const Slot& to,
                          int unit) const {
  const Plan plan = plan_under(settings, schedule_);
  return hand_over_time(space_.problem(), plan, stage_of(from, {unit - 1, unit}, recompute_),
                        stage_of(to, {unit, unit + 1}, recompute_), unit);
}

Plan PaperSearch::plan_of(const Layout& layout, const std::vector<int>& cuts) const {
  Plan plan = plan_under(layout.settings, schedule_);
  for (int s = 0; s < layout.stages(); ++s)
    plan.stages.push_back(stage_of(layout.slots[s], {cuts[s], cuts[s + 1]}, recompute_));
  space_.drop_idle_switches(plan);
  return plan;
}

void PaperSearch::offer(const Layout& layout, const std::vector<int>& cuts) {
  if (has_cutoff_ && is_slow(layout, cuts)) return;
  if (has_cutoff_) {
    const std::vector<Slot>& slots = layout.slots;
    Sends sends;
    for (int s = 0; s + 1 < layout.stages(); ++s)
      sends.between.push_back(send(layout.settings, slots[s], slots[s + 1], cuts[s + 1]));
    if (layout.stages() > 1)
      sends.tied = tied_sync(slots.front().devices, slots.back().devices, slots.back().tensor);
    if (is_slow(layout, cuts, &sends)) return;
  }
  simulate(layout, cuts);
}

void PaperSearch::simulate(const Layout& layout, const std::vector<int>& cuts) {
  for (Plan& plan : plans_for(plan_of(layout, cuts), space_.pins())) {
    if (const auto layers = space_.pins().recompute_layers)
      recompute_first(space_.problem().model, *layers, plan);
    if (found_.offer(plan) && context_.on_improvement)
      context_.on_improvement(found_.plans().front(), found_.evaluations());
  }
}

void PaperSearch::report_progress(double fraction) const {
  if (context_.on_progress) context_.on_progress(fraction);
}

SearchResult PaperSearch::result(const std::string& nothing_found) const {
  SearchResult result;
  result.plans = found_.plans();
  result.evaluations = found_.evaluations();
  result.cut_short = stopped_;
  if (!found_.empty()) return result;
  result.nearest = found_.nearest();
  if (!result.nearest) result.reason = obstacle_.empty() ? nothing_found : obstacle_;
  return result;
}

std::vector<int> pinned_cuts(const Pins& pins) {
  if (pins.stages.empty()) return {};
  std::vector<int> cuts{0};
  for (const int units : pins.stages) cuts.push_back(cuts.back() + units);
  return cuts;
}

namespace {

// By node, the type of its first device; -1 for a node without devices.
std::vector<int> type_by_node(const Cluster& cluster) {
  std::vector<int> types(cluster.nodes.size(), -1);
  for (const Device& device : cluster.devices)
    if (types[device.node] < 0) types[device.node] = device.type;
  return types;
}

}  // namespace

std::vector<int> node_types(const Cluster& cluster) {
  std::vector<int> types;
  for (const int type : type_by_node(cluster))
    if (type >= 0 && std::ranges::find(types, type) == types.end()) types.push_back(type);
  return types;
}

std::vector<int> nodes_by_type(const Cluster& cluster, const std::vector<int>& types) {
  const std::vector<int> type_of = type_by_node(cluster);
  std::vector<int> nodes;
  for (const int type : types)
    for (int n = 0; n < static_cast<int>(type_of.size()); ++n)
      if (type_of[n] == type) nodes.push_back(n);
  return nodes;
}

std::vector<DeviceId> devices_of(const Cluster& cluster, const std::vector<int>& nodes) {
  std::vector<std::vector<DeviceId>> by_node(cluster.nodes.size());
  for (int i = 0; i < cluster.device_count(); ++i)
    by_node[cluster.devices[i].node].push_back(DeviceId(i));
  std::vector<DeviceId> devices;
  for (const int node : nodes)
    devices.insert(devices.end(), by_node[node].begin(), by_node[node].end());
  return devices;
}

std::string no_uniform_layout(std::string_view planner) {
  return std::string(planner) +
         " uses all devices with the same degrees for every stage, which these layers, nodes and "
         "batch do not allow";
}

}  // namespace plait
