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

void StageMemo::add_devices(std::span<const DeviceId> devices, Key& key) {
  key.add(devices.size());
  for (const DeviceId id : devices) {
    const Device& device = problem_.cluster.device(id);
    int& ordinal = ordinals_[device.node];
    if (ordinal == 0) {
      listed_.push_back(device.node);
      ordinal = static_cast<int>(listed_.size());
      key.add(node_kinds_[device.node]);
    }
    key.add(static_cast<std::uint64_t>(ordinal) << 32 | device.type);
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
  add_devices(stage.devices, key);
  for (const int node : listed_) ordinals_[node] = 0;
  listed_.clear();
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
  for (const int node : listed_) ordinals_[node] = 0;
  listed_.clear();
  const auto known = hand_overs_.find(key);
  if (known != hand_overs_.end()) return known->second;
  if (hand_overs_.size() >= kMostKept) hand_overs_.clear();
  return hand_overs_.emplace(key, hand_over(problem_, plan, a, b, unit)).first->second;
}

}  // namespace plait
