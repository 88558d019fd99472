#pragma once

#include <cstdint>
#include <vector>

#include "model/model.h"
#include "plan/plan.h"

namespace plait {

// Runs of units that cost the same on the same devices, because they read the same: the same kinds
// in the same order, what is tied and the ends of the model told apart. A class is named by the
// first of its runs.
//
// Example: units a b c b c d. [1,2), [1,3), [2,3) read like [3,4), [3,5), [4,5); [2,4) = c b is
// first where it is. From unit 3 on only runs of more than 2 units are first: [3,6) = b c d.
//
// So all that must be known of each unit is how long the runs that begin there are repetitions, and
// of which earlier unit's runs: the array of longest previous factors, from a suffix array. A model
// of n units that repeats p of them has about p n classes, and this takes memory in proportion to n
// but for the list of the classes.
class RunClasses {
 public:
  explicit RunClasses(const Model& model);

  std::int64_t count() const { return count_; }
  std::int64_t of(const UnitRange& run) const {
    if (!table_.empty()) return table_[run.begin * (units_ + 1) + run.end];
    const int length = run.size();
    int begin = run.begin;
    while (length <= starts_[begin].repeated) begin = starts_[begin].earlier;
    return starts_[begin].first_class + length - starts_[begin].repeated - 1;
  }
  // Whether there are so few that something may be kept for each, many times over.
  bool are_few() const { return !firsts_.empty(); }
  // One run of each class, ascending in begin, then in end. Empty unless there are few.
  const std::vector<UnitRange>& firsts() const { return firsts_; }

 private:
  // Of the runs that begin at a unit.
  struct Start {
    int repeated = 0;              // runs of up to this many units have been seen before ..
    int earlier = 0;               // .. from this unit on
    std::int64_t first_class = 0;  // of the shortest that has not
  };
  void list_starts(const std::vector<int>& symbols);
  void list_table();

  int units_ = 0;
  std::int64_t count_ = 0;
  std::vector<Start> starts_;  // by unit
  std::vector<int> table_;     // of short models: by begin and end, for speed
  std::vector<UnitRange> firsts_;
};

}  // namespace plait
