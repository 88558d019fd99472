#include "cost/stage_memo.h"

#include <bit>
#include <map>
#include <tuple>

#include "cost/pipeline/schedule.h"

namespace plait {
namespace {

constexpr std::size_t kMostKept = 50'000;  // of each: tens of megabytes

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

// By runs of devices of one type on one node.
void StageMemo::add_devices(std::span<const DeviceId> devices, Key& key) {
  key.add(devices.size());
  for (std::size_t i = 0; i < devices.size();) {
    const Device& first = problem_.cluster.device(devices[i]);
    const std::size_t begin = i++;
    while (i < devices.size() && problem_.cluster.device(devices[i]) == first) ++i;
    int& ordinal = ordinals_[first.node];
    if (ordinal == 0) {
      listed_.push_back(first.node);
      ordinal = static_cast<int>(listed_.size());
      key.add(node_kinds_[first.node]);
    }
    key.add(static_cast<std::uint64_t>(ordinal) << 32 | first.type);
    key.add(i - begin);
  }
}

void StageMemo::forget_nodes() {
  for (const int node : listed_) ordinals_[node] = 0;
  listed_.clear();
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
  add_devices(stage.devices, key);
  forget_nodes();
  const auto known = stages_.find(key);
  if (known != stages_.end()) return known->second;
  if (stages_.size() >= kMostKept) stages_.clear();
  return stages_.emplace(key, stage_cost(problem_, plan, index, tables)).first->second;
}

HandOver StageMemo::over(const Plan& plan, int from, int to, int unit) {
  const Stage& a = plan.stages[from];
  const Stage& b = plan.stages[to];
  Key key;
  add_settings(plan, key);
  key.add(static_cast<std::uint64_t>(problem_.model.units[unit - 1]) << 32 | a.spans.back().tensor);
  key.add(static_cast<std::uint64_t>(b.spans.front().tensor) << 32 | b.spans.front().data);
  key.add(a.spans.back().data);
  add_devices(a.devices, key);
  add_devices(b.devices, key);
  forget_nodes();
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
  add_devices(a.devices, key);
  add_devices(b.devices, key);
  forget_nodes();
  const auto known = tied_syncs_.find(key);
  if (known != tied_syncs_.end()) return known->second;
  if (tied_syncs_.size() >= kMostKept) tied_syncs_.clear();
  const Seconds time =
      tied_sync_time(problem_, problem_.model.ties[tie], a.devices, b.devices, tensor);
  return tied_syncs_.emplace(key, time).first->second;
}

}  // namespace plait
