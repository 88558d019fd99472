#pragma once

#include <optional>
#include <vector>

#include "cost/estimate.h"
#include "plan/plan.h"
#include "plan/problem.h"

// A plan in the form in which the second opinion changes it: what follows from the rest (the
// ranges of units) is left out. This folder shares no code with src/search.
namespace plait::second_opinion {

struct Part {
  std::vector<int> units;  // of each chunk
  int tensor = 1;
  int data = 1;
  Recompute recompute = Recompute::none;
  int kept = 0;  // units at the end of each chunk that are not recomputed
  std::vector<DeviceId> devices;
  std::vector<int> shares;  // empty = equal

  int unit_count() const;
};

struct Sketch {
  Plan settings;     // without stages
  int sequence = 1;  // length; it is cut wherever all tensor degrees divide it
  std::vector<Part> parts;

  int part_count() const { return static_cast<int>(parts.size()); }
  int chunks() const { return static_cast<int>(parts.front().units.size()); }
};

Sketch sketch_of(const Problem& problem, const Plan& plan);
Plan plan_of(const Sketch& sketch);

// Gives every part this many units, spread over its chunks as evenly as possible.
void spread_units(Sketch& sketch, const std::vector<int>& units, int chunks);

// Sets shares that are as equal as possible where the replicas do not divide the micro-batch, or in
// proportion to `speeds` (one a replica) where these are given. False when a replica gets nothing.
bool set_shares(const Problem& problem, Sketch& sketch, Part& part,
                const std::vector<double>& speeds = {});
// The same for all parts, in proportion to what the device types can do at most.
bool set_all_shares(const Problem& problem, Sketch& sketch);

// Whole numbers of at least one that add up to `sum`, as near to the weights as possible; empty
// when there are more weights than the sum.
std::vector<int> apportion(int sum, const std::vector<double>& weights);

// Units in proportion to how fast the parts were.
void balance(Sketch& sketch, const Estimate& cost);

double peak_of(const Problem& problem, DeviceId id);
std::vector<DeviceId> idle_devices(const Problem& problem, const Sketch& sketch);

}  // namespace plait::second_opinion
