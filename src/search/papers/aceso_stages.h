#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "cost/aceso_formula.h"
#include "search/papers/aceso_menu.h"

namespace plait {

// The stages that a pipeline may have under AcesoFormula, for one size of micro-batch: the least
// time of ops [begin, end) on a way to cut them, with so many stages behind, within the memory.
//
// Ops are divided into segments (layers, blocks), where recompute starts anew. A segment, or the
// part of one at an end of the stage, has a menu of recompute; of equal segments only the number
// counts, which prefix sums give. Steps through the menus are taken in the order of bytes per
// second until the stage fits, the last one by as many segments as needed; then what is more than
// needed is taken back. That is the least time but for the roundness of the last steps.
class AcesoStages {
 public:
  // How the devices of a stage cut its ops: all in the first way, or, after some segment, in the
  // second.
  struct Option {
    int devices = 1;
    int first = 0;  // index of a way
    int second = 0;
    bool mixed() const { return first != second; }
  };

  // `memory` is what a device may use. Ways have at most a node's devices.
  AcesoStages(const AcesoFormula& formula, int micro_batch, Bytes memory, int most_devices);

  int micro_batch() const { return micro_batch_; }
  const std::vector<Option>& options() const { return options_; }
  // Seconds of compute without recompute, the lesser of both ways: no stage takes less.
  double least(int option, int begin, int end) const;
  // Seconds of compute, recompute and resharding; HUGE_VAL where it does not fit.
  double time(int option, int behind, int begin, int end);
  // Seconds for what it receives or sends.
  double receive(int option, int begin, bool across) const;
  double send(int option, int end, bool across) const;
  // The stage itself.
  AcesoStage stage(int option, int behind, UnitRange ops);
  // Of the ops before `end`: devices times seconds that any stages take for them at least.
  const std::vector<double>& work() const { return work_; }
  // The first op of each segment, and the number of ops at the end.
  const std::vector<int>& segment_starts() const { return starts_; }
  std::int64_t evaluations() const { return evaluations_; }

 private:
  struct Way {
    int tensor = 1;
    int data = 1;
    std::vector<const AcesoOp*> rows;  // by kind of op
    std::vector<int> algorithms;
    // Of the first 0, 1, .. ops.
    std::vector<double> time, weights, kept;
  };
  // A part of a segment on one way.
  struct Fragment {
    std::vector<RecomputePoint> menu;
    double forward_reserved = 0, backward_reserved = 0;  // the most of an op
    double forward_but_last = 0, backward_but_last = 0;  // of those before its last
  };
  struct Part {
    const Fragment* fragment = nullptr;
    int count = 1;
    int kind = -1;            // of full segments
    UnitRange ops;            // where count is 1; else the ops between which they are
    std::vector<int> raised;  // by step of the menu, how many segments take it
  };
  struct Step {
    double ratio = 0;  // bytes a second
    int part = 0;
    int level = 0;
  };
  struct Fit {
    double time = 0;
    int switched_at = 0;
  };

  void add_ways(int most_devices);
  bool add_rows(Way& way, bool chooses) const;
  void add_borders(const Option& option);
  void find_segments();
  void add_work();
  const Fragment& fragment(int way, int segment, int from, int to);
  void gather(int way, UnitRange ops, bool is_last);
  double fit(const Option& option, int behind, UnitRange ops, int switched_at);
  double raise(double memory, double per_byte, bool& fits);
  void take_back(double slack, double per_byte, double& time);
  Fit best(const Option& option, int behind, UnitRange ops);
  double reshard(const Option& option, int at) const;

  const AcesoFormula& formula_;
  int micro_batch_;
  double memory_;
  std::vector<Way> ways_;
  std::vector<Option> options_;
  std::vector<int> starts_;
  std::vector<int> segment_of_;           // by op
  std::vector<int> kind_of_;              // by segment
  std::vector<bool> keep_last_;           // by kind: the last op is not recomputed
  std::vector<int> first_of_;             // by kind: a segment of it
  std::vector<std::vector<int>> counts_;  // by kind: among the first 0, 1, .. segments
  std::vector<int> same_run_;  // by segment: from how many on it reads as the first of its kind
  std::vector<double> work_;
  std::vector<std::vector<double>> receive_, send_;  // by option, then 2 * kind of op + across
  std::vector<std::unordered_map<std::uint64_t, std::unique_ptr<Fragment>>> fragments_;  // by way
  std::unordered_map<std::uint64_t, float> times_;
  std::vector<Part> parts_;  // of the stage that is worked on
  std::vector<Step> steps_;
  std::int64_t evaluations_ = 0;
};

}  // namespace plait
