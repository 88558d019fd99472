#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "cost/stage_cost.h"
#include "plan/plan.h"
#include "plan/problem.h"

namespace plait {

// Costs of stages and hand-overs that come back in many plans of one problem: a search that changes
// plans step by step works out only what is new. Stages on different but equal nodes are the same.
// Not for several threads at once.
class StageMemo {
 public:
  explicit StageMemo(const Problem& problem);

  const StageResult& stage(const Plan& plan, int index, const TableSource& tables);
  // Before `unit`, from one stage of the plan to another.
  HandOver over(const Plan& plan, int from, int to, int unit);
  // Of a tie of the model, by its position, that two stages of the plan share.
  Seconds tied_sync(const Plan& plan, std::size_t tie, int first, int second);

 private:
  // Two independent hashes of all that a cost depends on: 128 bits do not meet by chance.
  struct Key {
    std::uint64_t first = 0x243F6A8885A308D3;
    std::uint64_t second = 0x13198A2E03707344;
    void add(std::uint64_t value);
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const { return key.first; }
  };

  void add_settings(const Plan& plan, Key& key) const;
  // Which of the devices share a node, and of what kind they and their nodes are.
  void add_devices(std::span<const DeviceId> devices, Key& key);
  void forget_nodes();

  const Problem& problem_;
  std::vector<int> node_kinds_;  // by node; equal nodes of a zone are of one kind
  std::vector<int> ordinals_;    // by node; in the list being looked at, 0 = not there
  std::vector<int> listed_;      // nodes that are
  std::unordered_map<Key, StageResult, Hash> stages_;
  std::unordered_map<Key, HandOver, Hash> hand_overs_;
  std::unordered_map<Key, Seconds, Hash> tied_syncs_;
};

}  // namespace plait
