#pragma once

#include <cmath>
#include <functional>
#include <span>
#include <vector>

#include "search/bound/send_lower_bound.h"
#include "search/space/space.h"
#include "search/space/stage_costs.h"

namespace plait {

// One way to run a run of units as a stage; seconds.
struct StageOffer {
  double time = 0;     // forward and backward of a micro-batch
  double forward = 0;  // the forward pass alone
  double longer = 0;   // the longer one of the two
  double finish = 0;
  int option = 0;
};

// The useful stages for the runs of a class, ascending in time.
struct StageOffers {
  std::span<const StageOffer> offers;
  bool first = false;  // begins the model
  bool last = false;
};

// The possible stages of plans that have at least two stages and are faster than the incumbent: for
// every class of runs, the options that are not dominated by another.
class OfferTable {
 public:
  OfferTable(const Space& space, const PlanSettings& settings, StageCosts& costs,
             const SendLowerBound& sends, Seconds incumbent, const std::function<bool()>& stop);

  bool complete() const { return complete_; }  // else it was stopped, and of no use
  const std::vector<StageOffers>& by_class() const { return by_class_; }
  int option_count() const { return static_cast<int>(devices_.size() / pools_); }
  // Devices of a pool that an option takes.
  int devices(int option, std::size_t pool) const { return devices_[option * pools_ + pool]; }
  // Of a hand-over to or from a stage of an option, at least; of the last stage for what is tied.
  double send(int option) const { return sends_[option]; }
  double tied(int option) const { return tied_[option]; }
  int longest_run() const { return longest_run_; }
  double single() const { return single_; }  // least step of a plan of one stage
  std::size_t size() const { return offers_.size(); }

 private:
  void list(const Space& space, const PlanSettings& settings, StageCosts& costs,
            const SendLowerBound& sends, double incumbent, const std::function<bool()>& stop);
  bool add(int c, int o, int micro_batches, const StageTime& time, double incumbent);
  void list_undercutting();
  // Offers in the order in which they were added, which is by option; by class then.
  void sort_by_class(const RunClasses& classes);
  std::size_t drop_dominated(std::span<StageOffer> offers, bool last,
                             std::vector<StageOffer>& kept) const;

  std::size_t pools_;
  bool may_be_single_;         // a plan of one stage
  std::vector<int> devices_;   // [option * pools + pool]
  std::vector<double> sends_;  // by option
  std::vector<double> tied_;   // the same
  // By option: the others that take no more but time; the same as a last stage.
  std::vector<std::vector<int>> undercuts_;
  std::vector<std::vector<int>> last_undercuts_;
  std::vector<StageOffer> offers_;
  std::vector<int> class_of_;  // of offers_ before they are sorted
  std::vector<StageOffers> by_class_;
  int longest_run_ = 0;
  double single_ = HUGE_VAL;
  bool complete_ = true;
};

}  // namespace plait
