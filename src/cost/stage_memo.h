#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "cost/pipeline/simulator.h"
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

  // The plan that the questions below are about, until the next one is seen.
  void see(const Plan& plan);
  const StageResult& stage(const Plan& plan, int index, const TableSource& tables);
  // Before `unit`, from one stage of the plan to another.
  HandOver over(const Plan& plan, int from, int to, int unit);
  // Of a tie of the model, by its position, that two stages of the plan share.
  Seconds tied_sync(const Plan& plan, std::size_t tie, int first, int second);
  // simulate() without events: plans that differ in equal devices, or in what takes the same time,
  // are one pipeline.
  Trace simulated(const Pipeline& pipeline, Seconds limit);

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

  // Devices of one type on one node that follow each other.
  struct Run {
    int node = 0;
    int type = 0;
    int count = 0;
  };

  static Key key_of(const Pipeline& pipeline);
  void add_settings(const Plan& plan, Key& key) const;
  // Which of a stage's devices share a node, and of what kind they and their nodes are.
  void add_devices(int stage, Key& key);
  void forget_nodes();
  std::span<const Run> runs_of(int stage) const;
  const SpanFrame& frame(const Plan& plan, int stage, const Span& span, const TableSource& tables);
  // The same of two stages, and which nodes they share.
  void add_devices(int first, int second, Key& key);
  bool share_node(int first, int second);

  const Problem& problem_;
  std::vector<int> node_kinds_;  // by node; equal nodes of a zone are of one kind
  std::vector<int> ordinals_;    // by node; in the list being looked at, 0 = not there
  std::vector<int> listed_;      // nodes that are
  std::vector<Run> runs_;        // of the plan, stage by stage
  std::vector<int> run_ends_;    // by stage
  std::vector<Key> devices_;     // by stage, of its devices alone
  std::unordered_map<Key, StageResult, Hash> stages_;
  std::unordered_map<Key, SpanFrame, Hash> frames_;
  std::unordered_map<Key, HandOver, Hash> hand_overs_;
  std::unordered_map<Key, Seconds, Hash> tied_syncs_;
  struct Simulated {
    Seconds limit;  // under which it was simulated
    Trace trace;    // may be endless
  };
  std::unordered_map<Key, Simulated, Hash> pipelines_;
  std::size_t stages_kept_ = 0;  // of these pipelines
};

// Lends memos of one problem, to one user at a time: what one has worked out is at hand for the
// next.
class MemoShelf {
 public:
  explicit MemoShelf(const Problem& problem) : problem_(problem) {}

  struct GiveBack {
    MemoShelf* shelf;
    void operator()(StageMemo* memo) const;
  };
  using Lent = std::unique_ptr<StageMemo, GiveBack>;
  Lent lend();

 private:
  const Problem& problem_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<StageMemo>> idle_;
};

}  // namespace plait
