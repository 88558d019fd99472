#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cost/aceso_rules.h"
#include "cost/aceso_table.h"
#include "plan/plan.h"

namespace plait {

// How one op of a stage runs.
struct AcesoChoice {
  int tensor = 1;
  int data = 1;
  int algorithm = 0;
  bool recomputed = false;
  friend bool operator==(const AcesoChoice&, const AcesoChoice&) = default;
};

// Consecutive ops on so many devices, with one choice for each op.
struct AcesoStage {
  UnitRange ops;
  int devices = 1;
  std::vector<AcesoChoice> choices;
};

// What Aceso's program says of a stage, for one micro-batch and one device.
struct AcesoStageCost {
  Seconds forward;
  Seconds backward;
  Seconds recomputed;
  Seconds in;       // what it receives, and resharding in its forward pass
  Seconds out;      // what it sends, and resharding in its backward pass
  Seconds reshard;  // a part of both
  Bytes weights;    // with the fp32 copy
  Bytes gradients;
  Bytes optimizer;
  Bytes activations;  // of the micro-batches before the last
  Bytes peak;         // of the last one, and of what is recomputed at once
  Bytes reserved;
  Seconds time() const { return forward + backward + recomputed + in + out; }
  Bytes memory() const { return weights + gradients + optimizer + activations + peak + reserved; }
};

struct AcesoCost {
  std::vector<AcesoStageCost> stages;
  std::vector<Seconds> times;  // of the step, as each stage sees it
  Seconds step;                // the longest of them
  Bytes memory;                // the most of a stage
};

// Which of a stage's neighbours are on other nodes.
struct AcesoBorders {
  bool in = false;
  bool out = false;
};

// The time and memory that Aceso's program (Liu et al., EuroSys 2024) gives to a configuration, so
// that plans can be compared with its own by its own measure. With N micro-batches and stages i of
// ops at (samples of a replica, tensor, algorithm):
//
//   t_i     sum of forward + backward, forward of recomputed ops again,
//           input of the first op / bandwidth + output of the last / bandwidth, resharding
//   step    max over i of t_i (N - 1) + sum of t
//   memory  8 W (4 W in fp32) + (A - saved)(stages behind + 1) + peak + reserved
//   A       input of the first op and the activations of all
//   saved   those of ops that are recomputed together with the op after them, in one segment
//   peak    the largest such run
//   reserved  max(largest forward + largest backward growth of the allocator's pool, W)
//
// Its faults are kept, as its numbers are wanted (the numbers are those of the study of its code):
//   1  no sum of gradients, optimizer step or tied embeddings
//   2  the output is that of the tensor degree of the first op, not of the last
//   3  bandwidths are those of messages half as large; below 1 MB the table is read from its end;
//      GB/s are taken as MB of 2^20 bytes a millisecond
//   5  an all-gather is looked up by what it gives, not by what a member has; a size that was not
//      measured takes 100 s
//      Without a file of the collective, which ends its program, a ring of sends is taken
//   6  the last op of a stage is left out of `reserved`; rules of ResNet, see aceso_rule()
// Stages on other nodes are told by the number of devices before them. docs/peers.md.
class AcesoFormula {
 public:
  // `ops` in execution order, all of them in every point of the table.
  AcesoFormula(const AcesoTable& table, const std::vector<std::string>& ops, int devices_per_node);

  // Nothing where a point that it needs was not measured.
  std::optional<AcesoStageCost> stage(const AcesoStage& stage, int micro_batch, int behind,
                                      const AcesoBorders& borders) const;
  std::optional<AcesoCost> cost(std::span<const AcesoStage> stages, int global_batch,
                                int micro_batch) const;

  // The row of an op; nullptr where the point was not measured.
  const AcesoOp* row(int op, const AcesoPoint& point) const;
  const AcesoRule& rule(int op) const { return kinds_[units_[op]].rule; }
  const std::string& name(int op) const { return kinds_[units_[op]].name; }
  int kind(int op) const { return units_[op]; }
  int kind_count() const { return static_cast<int>(kinds_.size()); }
  int op_count() const { return static_cast<int>(units_.size()); }
  int devices_per_node() const { return devices_per_node_; }
  const AcesoTable& table() const { return table_; }
  // Whether ops of one stage may be cut differently: its runtime cannot do so for T5.
  bool reshards() const { return reshards_; }
  // Weights with all that is kept beside them, gradients included, over the weights alone.
  double state_share() const { return main_share_ + 1 + optimizer_share_; }

  Seconds send(Bytes size, bool across_nodes) const;
  // Between op - 1 and op; seconds of the forward and of the backward pass.
  std::pair<Seconds, Seconds> reshard(int op, const AcesoChoice& before, const AcesoChoice& own,
                                      int micro_batch) const;

 private:
  struct Kind {
    std::string name;
    AcesoRule rule;
  };

  Seconds collective(const char* name, int members, Bytes size) const;
  void add_memory(const AcesoStage& stage, std::span<const AcesoOp* const> rows, int behind,
                  AcesoStageCost& cost) const;

  const AcesoTable& table_;
  std::vector<Kind> kinds_;
  std::vector<int> units_;                                  // of each op, its kind
  std::map<AcesoPoint, std::vector<const AcesoOp*>> rows_;  // by kind
  int devices_per_node_;
  bool reshards_;
  double main_share_;  // weights and their fp32 copy
  double optimizer_share_;
};

// The stages of a plan whose units are the ops of the formula.
std::vector<AcesoStage> aceso_stages(const Plan& plan);
// The plan of stages on consecutive devices; neighbouring ops that run alike form a span.
Plan plan_of(std::span<const AcesoStage> stages, int micro_batches);

}  // namespace plait
