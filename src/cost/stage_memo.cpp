#include "cost/stage_memo.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <tuple>

#include "cost/pipeline/schedule.h"

namespace plait {
namespace {

constexpr std::size_t kMostKept = 50'000;         // of each: tens of megabytes
constexpr std::size_t kMostStagesKept = 200'000;  // of simulated pipelines: the same

}  // namespace

void StageMemo::Key::add(std::uint64_t value) {
  first = (first ^ value) * 0x9E3779B97F4A7C15;
  first ^= first >> 32;
  second = (std::rotl(second, 29) + value) * 0xD6E8FEB86659FD93;
  second ^= second >> 31;
}

StageMemo::StageMemo(const Problem& problem)
    : problem_(problem), ordinals_(problem.cluster.nodes.size()) {
  std::map<std::tuple<int, Link, Link>, int> kinds;
  for (const Node& node : problem.cluster.nodes)
    node_kinds_.push_back(
        kinds.emplace(std::tuple(node.zone, node.intra, node.uplink), std::ssize(kinds))
            .first->second);
}

void StageMemo::add_settings(const Plan& plan, Key& key) const {
  key.add(static_cast<std::uint64_t>(plan.micro_batches) << 32 | plan.context);
  key.add(static_cast<std::uint64_t>(plan.expert) << 32 | static_cast<unsigned>(plan.zero) << 1 |
          (plan.sequence_parallel ? 1U : 0U));
  key.add(std::bit_cast<std::uint64_t>(plan.offload));
}

void StageMemo::see(const Plan& plan) {
  runs_.clear();
  run_ends_.clear();
  for (const Stage& stage : plan.stages) {
    const std::size_t begin = runs_.size();
    for (const DeviceId id : stage.devices) {
      const Device& device = problem_.cluster.device(id);
      const bool goes_on = runs_.size() > begin && runs_.back().node == device.node &&
                           runs_.back().type == device.type;
      if (!goes_on) runs_.push_back({device.node, device.type, 0});
      ++runs_.back().count;
    }
    run_ends_.push_back(static_cast<int>(runs_.size()));
  }
  devices_.assign(plan.stages.size(), {});
  for (int s = 0; s < plan.stage_count(); ++s) {
    add_devices(s, devices_[s]);
    forget_nodes();
  }
}

std::span<const StageMemo::Run> StageMemo::runs_of(int stage) const {
  const int begin = stage == 0 ? 0 : run_ends_[stage - 1];
  return std::span(runs_).subspan(begin, run_ends_[stage] - begin);
}

// Nodes that were not listed before are told by how many of one kind, used alike, follow each
// other.
void StageMemo::add_devices(int stage, Key& key) {
  constexpr std::uint64_t kListed = std::uint64_t{1} << 63;
  const std::span<const Run> runs = runs_of(stage);
  for (std::size_t i = 0; i < runs.size();) {
    const Run& first = runs[i];
    const std::uint64_t used = static_cast<std::uint64_t>(first.type) << 32 | first.count;
    if (const int ordinal = ordinals_[first.node]; ordinal > 0) {
      key.add(kListed | ordinal);
      key.add(used);
      ++i;
      continue;
    }
    const int kind = node_kinds_[first.node];
    std::uint64_t nodes = 0;
    for (; i < runs.size(); ++i, ++nodes) {
      const Run& own = runs[i];
      if (own.type != first.type || own.count != first.count || ordinals_[own.node] != 0 ||
          node_kinds_[own.node] != kind)
        break;
      listed_.push_back(own.node);
      ordinals_[own.node] = static_cast<int>(listed_.size());
    }
    key.add(static_cast<std::uint64_t>(kind) << 32 | nodes);
    key.add(used);
  }
  key.add(kListed);
}

void StageMemo::forget_nodes() {
  for (const int node : listed_) ordinals_[node] = 0;
  listed_.clear();
}

bool StageMemo::share_node(int first, int second) {
  for (const Run& run : runs_of(first)) {
    ordinals_[run.node] = 1;
    listed_.push_back(run.node);
  }
  const bool share = std::ranges::any_of(runs_of(second),
                                         [&](const Run& run) { return ordinals_[run.node] != 0; });
  forget_nodes();
  return share;
}

void StageMemo::add_devices(int first, int second, Key& key) {
  if (share_node(first, second)) {
    add_devices(first, key);
    add_devices(second, key);
    forget_nodes();
    return;
  }
  for (const int stage : {first, second}) {
    key.add(devices_[stage].first);
    key.add(devices_[stage].second);
  }
}

const StageResult& StageMemo::stage(const Plan& plan, int index, const TableSource& tables) {
  const Stage& stage = plan.stages[index];
  Key key;
  add_settings(plan, key);
  const int chunks = chunk_count(stage);
  const int live =
      chunks_in_flight(plan.schedule, plan.stage_count(), index, plan.micro_batches, chunks);
  key.add(static_cast<std::uint64_t>(live) << 32 | static_cast<unsigned>(plan.schedule));
  for (const Span& span : stage.spans) {
    key.add(static_cast<std::uint64_t>(span.units.begin) << 32 | span.units.end);
    key.add(static_cast<std::uint64_t>(span.tensor) << 32 | span.data);
    key.add(static_cast<std::uint64_t>(span.split) << 32 | span.chunk << 4 |
            static_cast<int>(span.recompute));
  }
  for (const int share : stage.shares) key.add(share);
  key.add(devices_[index].first);
  key.add(devices_[index].second);
  const auto known = stages_.find(key);
  if (known != stages_.end()) return known->second;
  if (stages_.size() >= kMostKept) stages_.clear();
  if (frames_.size() >= kMostKept) frames_.clear();
  const auto frame_of = [&](const Span& span) -> const SpanFrame& {
    return frame(plan, index, span, tables);
  };
  return stages_.emplace(key, stage_cost_in(problem_, plan, index, frame_of)).first->second;
}

// Stages that differ in their units have the same one.
const SpanFrame& StageMemo::frame(const Plan& plan, int index, const Span& span,
                                  const TableSource& tables) {
  const Stage& stage = plan.stages[index];
  Key key = devices_[index];
  add_settings(plan, key);
  key.add(static_cast<std::uint64_t>(span.tensor) << 32 | span.data);
  key.add(span.split);
  for (const int share : stage.shares) key.add(share);
  const auto known = frames_.find(key);
  if (known != frames_.end()) return known->second;
  return frames_
      .emplace(key, SpanFrame(problem_, settings_of(plan), stage.devices, span.tensor, span.data,
                              stage.shares, tables, span.split))
      .first->second;
}

HandOver StageMemo::over(const Plan& plan, int from, int to, int unit) {
  const Stage& a = plan.stages[from];
  const Stage& b = plan.stages[to];
  Key key;
  add_settings(plan, key);
  key.add(static_cast<std::uint64_t>(problem_.model.units[unit - 1]) << 32 | a.spans.back().tensor);
  key.add(static_cast<std::uint64_t>(b.spans.front().tensor) << 32 | b.spans.front().data);
  key.add(a.spans.back().data);
  add_devices(from, to, key);
  const auto known = hand_overs_.find(key);
  if (known != hand_overs_.end()) return known->second;
  if (hand_overs_.size() >= kMostKept) hand_overs_.clear();
  return hand_overs_.emplace(key, hand_over(problem_, plan, a, b, unit)).first->second;
}

Seconds StageMemo::tied_sync(const Plan& plan, std::size_t tie, int first, int second) {
  const Stage& a = plan.stages[first];
  const Stage& b = plan.stages[second];
  const int tensor = b.spans.back().tensor;
  Key key;
  key.add(static_cast<std::uint64_t>(tie) << 32 | tensor);
  add_devices(first, second, key);
  const auto known = tied_syncs_.find(key);
  if (known != tied_syncs_.end()) return known->second;
  if (tied_syncs_.size() >= kMostKept) tied_syncs_.clear();
  const Seconds time =
      tied_sync_time(problem_, problem_.model.ties[tie], a.devices, b.devices, tensor);
  return tied_syncs_.emplace(key, time).first->second;
}

StageMemo::Key StageMemo::key_of(const Pipeline& pipeline) {
  Key key;
  const auto add = [&](Seconds time) { key.add(std::bit_cast<std::uint64_t>(time.value)); };
  key.add(static_cast<std::uint64_t>(pipeline.stages) << 32 |
          static_cast<unsigned>(pipeline.chunks));
  key.add(static_cast<std::uint64_t>(pipeline.micro_batches) << 32 |
          static_cast<unsigned>(pipeline.schedule));
  for (const ChunkTime& time : pipeline.time) {
    add(time.forward);
    add(time.backward);
    add(time.weight_gradient);
  }
  for (const Seconds send : pipeline.send) add(send);
  for (const Seconds busy : pipeline.send_busy) add(busy);
  return key;
}

Trace StageMemo::simulated(const Pipeline& pipeline, Seconds limit) {
  const Key key = key_of(pipeline);
  const auto known = pipelines_.find(key);
  if (known != pipelines_.end()) {
    const Simulated& own = known->second;
    const bool is_endless = std::isinf(own.trace.longest_stage.value);
    if (is_endless ? limit <= own.limit : limit > own.trace.longest_stage) return own.trace;
    if (!is_endless) return endless(pipeline);
  }
  if (stages_kept_ >= kMostStagesKept) {
    pipelines_.clear();
    stages_kept_ = 0;
  }
  stages_kept_ += pipeline.stages;
  Simulated& own = pipelines_[key];
  own = {limit, simulate(pipeline, false, limit)};
  return own.trace;
}

void MemoShelf::GiveBack::operator()(StageMemo* memo) const {
  const std::lock_guard lock(shelf->mutex_);
  shelf->idle_.emplace_back(memo);
}

MemoShelf::Lent MemoShelf::lend() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) return {new StageMemo(problem_), GiveBack{this}};
  Lent lent(idle_.back().release(), GiveBack{this});
  idle_.pop_back();
  return lent;
}

}  // namespace plait
