#pragma once

#include <array>
#include <vector>

#include "base/units.h"
#include "plan/plan.h"
#include "plan/problem.h"

namespace plait {

// Which part of the weights and of the optimizer state each device holds under a plan.
//
// Four kinds of state are told apart: weights and optimizer state, of experts and of the rest. Of
// each, a device holds one interval of [0, 1) of every unit of a span: rank r of n holds
// [r / n, (r + 1) / n), where n is the tensor degree, times the expert degree for experts, times
// the copies where ZeRO cuts this kind of state.
class HeldState {
 public:
  HeldState(const Model& model, const Job& job, const Plan& plan, int devices);

  Bytes held(int device) const;
  // Of what `device` holds here, the part that `other_device` holds in `other`.
  Bytes kept(int device, const HeldState& other, int other_device) const;
  // The same for several devices together, nothing counted twice.
  Bytes kept_by_any(int device, const HeldState& other, const std::vector<int>& others) const;
  // What only devices hold that do not survive.
  Bytes lost(const std::vector<bool>& survives) const;

 private:
  struct Interval {
    double begin = 0;
    double end = 0;
  };
  static constexpr int kKinds = 4;
  struct Share {
    UnitRange units;
    std::array<Interval, kKinds> parts;
  };
  Bytes size(const UnitRange& units, int kind) const;
  static double union_length(std::vector<Interval>& intervals);

  std::vector<std::vector<Share>> shares_;                // by device
  std::array<std::vector<double>, kKinds> bytes_before_;  // [i] = of units [0, i)
};

}  // namespace plait
