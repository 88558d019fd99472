#pragma once

#include <functional>
#include <vector>

#include "search/space/pipeline_suffix.h"
#include "search/space/run_costs.h"
#include "search/space/space.h"

namespace plait {

// Which units the stages of a pipeline may have, beyond what pins say.
struct CutLimits {
  int least_layers = 0;  // of a stage
  int most_layers = 0;   // 0 = any number
};

// A way to cut the units over given stages.
struct Cut {
  std::vector<int> begins;  // first unit of every stage
  Seconds length;           // closed form of the step, at most the simulated step
};

struct CutResult {
  std::vector<Cut> cuts;      // shortest first
  Seconds lower_bound;        // of all cuts; at most the limit
  bool lacks_memory = false;  // more of it might allow other cuts
};

// The best cuts of the model over stages whose devices are known, by dynamic programming over the
// stages from the last: what stages behind a unit take is a PipelineSuffix, and a suffix that is
// not better than another in any respect is dropped.
class CutSearch {
 public:
  // Of one stage: what runs of units cost there, and the hand-over to the next one before a unit.
  struct Slot {
    RunCosts* runs = nullptr;
    std::function<Seconds(int unit)> send;
  };

  // `work`: relative to the usual.
  CutSearch(const Space& space, const ScheduleSetting& rhythm, const CutLimits& limits,
            double work = 1);

  // Only cuts that take less than the limit are of interest. `tied`: what follows every step. Once
  // `stop` says so nothing is found, and nothing is proven.
  CutResult run(const std::vector<Slot>& slots, Seconds limit, Seconds tied,
                const std::function<bool()>& stop);

 private:
  struct Label {
    PipelineSuffix suffix;
    int end = 0;       // of the stage's units
    int parent = -1;   // among the labels of the next stage that begin at `end`
    double near = -1;  // the least excess of another one over it; below zero where it is not known
  };
  using Labels = std::vector<std::vector<Label>>;  // by first unit

  Seconds balanced(const std::vector<Slot>& slots) const;
  void extend(const std::vector<Slot>& slots, int stage, int end, Seconds limit);
  // Whether a stage may have these units; 1 when it has too many, -1 when too few.
  int has_wrong_layers(const UnitRange& units) const;
  void insert(int stage, int begin, const Label& label);
  void drop_one(int stage, std::vector<Label>& labels);
  static double excess(const PipelineSuffix& kept, const PipelineSuffix& other, double enough);
  std::vector<int> begins_of(int label) const;

  const Space& space_;
  ScheduleSetting rhythm_;
  CutLimits limits_;
  std::size_t most_labels_;  // of a stage that begins at a unit
  int units_;
  std::vector<int> layers_before_;
  std::vector<Seconds> least_before_;  // round trip of the units before each one, on any stage
  std::vector<Labels> labels_;         // by stage
  std::vector<double> lost_;           // by stage: what dropped labels may be better by, as a part
  bool lacks_memory_ = false;
};

}  // namespace plait
