#pragma once

#include <utility>
#include <vector>

#include "model/model.h"
#include "plan/plan.h"

namespace plait {

// For each tie, whether it is one of many at its distance: layers that each share the weights of
// the one before it. The others are told apart by their owners.
std::vector<bool> ties_at_a_distance(const Model& model);

// Parameters of which a run of units keeps a second copy, because it has the unit that uses them
// again but not the unit that owns them: tied_copies() of cost/span_frame.h, without a look at
// every tie. Models of shared layers have as many ties as layers.
class TiedCopies {
 public:
  explicit TiedCopies(const Model& model);

  bool any() const { return !owners_.empty() || !distances_.empty(); }
  double of(const UnitRange& run) const;

  // The next unit in front of a run with which it would keep fewer copies; -1 when there is none.
  // Up to that unit a longer run needs more memory.
  int next_owner(const UnitRange& run) const;

 private:
  // Which units use parameters again: unit, and parameters of all up to it.
  class Uses {
   public:
    void add(int unit, double parameters) { list_.emplace_back(unit, parameters); }
    void sum();  // after the last was added
    double between(int begin, int end) const { return before(end) - before(begin); }
    const std::vector<std::pair<int, double>>& list() const { return list_; }

   private:
    double before(int unit) const;
    std::vector<std::pair<int, double>> list_;
  };
  struct Owner {
    int unit = 0;
    Uses uses;
  };
  struct Distance {
    int units = 0;
    Uses uses;
    std::vector<int> heads;  // units that own more for the unit at that distance than they use
  };
  std::vector<Owner> owners_;
  std::vector<Distance> distances_;
};

}  // namespace plait
