#pragma once

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "cost/stage_cost.h"
#include "search/space/run_costs.h"
#include "search/uniform/layout_evaluation.h"

namespace plait {

// The stages of a layout with its hosts in some order, all units on each, and what runs of units
// and hand-overs cost there: worked out once for stages that are alike.
class LayoutStages {
 public:
  LayoutStages(const UniformGround& ground, const UniformLayout& layout, const Space& space);

  // Hosts by kind; stages have consecutive devices. False where a tensor group has devices of
  // several types.
  bool place(const std::vector<int>& order);
  const Plan& plan() const { return plan_; }

  RunCosts* runs(int stage) { return runs_of(stage, runs_); }
  // The same with the first layers of every run recomputed, as was said last.
  RunCosts* recomputing_runs(int stage) { return runs_of(stage, recomputing_); }
  void recompute_first(const RunCosts::FirstLayers& layers);

  // Of every stage, with all units.
  std::vector<double> times_alone();

  // From a stage to the next before a unit.
  const HandOver& over(int stage, int unit);
  ScheduleSetting rhythm() const;
  // Stages with the same number cost the same.
  int signature(int stage) const { return sides_[stage].signature; }

 private:
  using BySignature = std::map<int, std::unique_ptr<RunCosts>>;
  RunCosts* runs_of(int stage, BySignature& made);
  bool tensor_groups_have_one_type() const;
  void read_signatures(const std::vector<int>& order);

  const UniformGround& ground_;
  const UniformLayout& layout_;
  const Space& space_;
  const Problem& problem_;
  TableSource tables_;
  Plan plan_;
  struct Side {
    int signature = 0;
    bool ends_inside_node = false;
  };
  std::vector<Side> sides_;  // by stage
  std::map<std::vector<int>, int> signatures_;
  BySignature runs_;
  BySignature recomputing_;
  RunCosts::FirstLayers first_;
  std::map<std::array<int, 4>, HandOver> overs_;
};

// The orders of its hosts that are looked at.
HostOrders orders_of(const UniformGround& ground, const UniformLayout& layout);

// An order of hosts that may have a plan which is wanted.
struct OpenOrder {
  const std::vector<int>* order = nullptr;
  Seconds bound;
};
// Lowest bound first, then those with hosts of a kind in a row.
void sort_orders(std::vector<OpenOrder>& orders);

}  // namespace plait
