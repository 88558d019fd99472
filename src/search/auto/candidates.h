#pragma once

#include <memory>
#include <set>
#include <vector>

#include "cost/engine.h"
#include "search/bound/stage_table.h"
#include "search/space/search.h"
#include "search/space/space.h"

namespace plait {

// Settings that plans may have, with what is known of them.
struct Candidate {
  PlanSettings settings;
  std::unique_ptr<StageTable> table;  // none for plans of one stage
  Seconds bound;                      // no plan with these settings is faster
  bool exact = false;
  int effort = 1;
};

// All settings that may hold the best plan.
class Candidates {
 public:
  // Of none anything is known: the lowest bound is zero.
  Candidates() = default;
  struct Kinds {
    bool single_apart = false;  // settings that allow only one stage go into a list of their own
    bool every_zero = false;    // also those that hardly ever hold the best plan (worthwhile.h)
  };
  Candidates(const SearchContext& context, const Space& space, const CostEngine& engine,
             Schedule schedule, Kinds kinds);

  std::vector<Candidate>& pipelined() { return pipelined_; }  // by the first bound
  std::vector<Candidate>& single_stages() { return single_stages_; }

  bool is_listed() const { return is_listed_; }
  bool is_complete() const { return is_complete_; }
  // No plan is faster than the lowest bound; zero when it was stopped before all were listed.
  Seconds lowest_bound() const;
  // The two with the lowest bounds, below the limit and those of all that are done; pipelined ones.
  std::vector<int> lowest_open(const std::set<int>& done, Seconds limit) const;
  // Four times the effort for those below `middle`; or for as many of the lowest as there is effort
  // left for. Those below the result.
  Seconds raise_efforts(Seconds middle, bool only_lowest, double& effort);

 private:
  void list(const SearchContext& context, const Space& space, Kinds kinds);

  std::vector<Candidate> pipelined_;
  std::vector<Candidate> single_stages_;
  bool is_listed_ = false;
  bool is_complete_ = true;  // else it was stopped before all were listed
};

}  // namespace plait
