#pragma once

#include <vector>

#include "base/short_list.h"
#include "cost/estimate.h"
#include "plan/plan.h"
#include "search/space/units/units_recomputed.h"

namespace plait {

// A plan in the form in which moves change it: what follows from the rest (ranges of units, whether
// sequences are cut) is left out.
struct DraftStage {
  ShortList<int, 4> units;  // of each chunk
  int tensor = 1;
  int data = 1;
  UnitsRecomputed recompute;       // of each chunk
  ShortList<DeviceId, 8> devices;  // as in Stage
  std::vector<int> shares;         // as in Stage

  int unit_count() const;
};

struct Draft {
  Plan settings;  // without stages
  std::vector<DraftStage> stages;

  int stage_count() const { return static_cast<int>(stages.size()); }
  int chunks() const { return static_cast<int>(stages.front().units.size()); }
  // Devices of one replica of a stage.
  int group(const DraftStage& stage) const { return stage.tensor * settings.context; }
};

// Of a plan whose stages have one tensor and one data degree.
Draft draft_of(const Plan& plan);

// Whole numbers of at least one that add up to `sum`, in proportion to the weights as nearly as
// possible; empty when there are more weights than the sum.
std::vector<int> apportioned(int sum, const std::vector<double>& weights);

// Cuts the chain of units so that stage s has about targets[s] of their weight, in `chunks` chunks
// each; false when there are too few units. prefix[u] is the weight of the units before u.
bool cut_units(Draft& draft, int chunks, const std::vector<double>& targets,
               const std::vector<double>& prefix);

// Weights for which all stages would take equally long, judged by what they take now.
std::vector<double> balanced_weights(const Draft& draft, const Estimate& cost,
                                     const std::vector<double>& prefix);

}  // namespace plait
