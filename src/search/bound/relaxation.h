#pragma once

#include <array>
#include <cmath>
#include <functional>
#include <span>
#include <vector>

#include "search/bound/priced_partition.h"
#include "search/bound/send_lower_bound.h"
#include "search/bound/stage_offers.h"
#include "search/bound/step_paths.h"
#include "search/bound/suffix_bounds.h"
#include "search/space/space.h"
#include "search/space/stage_costs.h"

namespace plait {

// What a bound may cost, in offers and runs that are looked at, and what it need not exceed.
struct BoundWork {
  double work = 0;
  Seconds enough = Seconds(HUGE_VAL);
};

// A lower bound on steps, by pricing the devices instead of counting them; docs/planners.md#bounds
// derives it.
//
// A plan has pivots: the last stages that take at least 1, 0.9, .. times what the slowest stage
// takes at least (kPivots). A step is at least as long as each path of step_paths() at each pivot,
// whatever stage that is, and as any mean of these paths, which is a sum over stages: a stage
// counts for what the paths say of stages before, at and after their pivots. If every device of
// pool p costs u_p, the least sum over all ways to cut the units into stages, less what all devices
// cost, is a lower bound, whatever the prices and the weights of the mean are; a dynamic program
// over the units and the pivots passed finds it. Stages after a pivot take less than it must, so
// that a plan cannot have its slow stages where the mean does not look. The number of stages is
// priced as well: fewer than m, or not. Prices and weights are moved uphill, and the range of what
// the slowest stage may take is cut into cells until the lowest cell is high enough.
// `Slowest` is by m x, or by m x + finish; both give a bound.
//
// A stage is replaced by its offer, which takes no longer in any respect; so may be the pivots. All
// paths shrink with their stages, so that the bound of the replaced plan holds for the plan.
//
// Only plans faster than `incumbent` count: stages that make the step longer are left out.
class Relaxation {
 public:
  Relaxation(const Space& space, const PlanSettings& settings, Schedule schedule, StageCosts& costs,
             const SendLowerBound& sends, Seconds incumbent, std::function<bool()> stop);

  // False when it was stopped before it could say anything, and when the model is so long, and its
  // stages may be, that nothing could be said in any useful time.
  bool usable() const { return table_.complete() && chains_.work() <= kMostWork; }
  // No plan is faster than this, or than the incumbent. `worth`: of a device of each pool, to begin
  // with; `least`: of the slowest stage. Being stopped, or told what is enough, leaves it looser;
  // being asked again goes on where it ended.
  Seconds tighten(std::span<const double> worth, Seconds least, const BoundWork& work);
  // Whether it is about as tight for plans faster than this as another one would be.
  bool serves(Seconds incumbent) const { return incumbent.value > kStale * incumbent_; }
  // The same for plans of which the last stages are known.
  const SuffixBounds& tails() const { return tails_; }

 private:
  static constexpr double kStale = 0.98;
  static constexpr double kMostWork = 4e6;  // of one evaluation
  enum class Slowest { by_time, by_step };
  struct Cell {
    PathFamily fill = PathFamily::filled;
    Slowest slowest = Slowest::by_time;
    double low = 0;  // of what the slowest stage takes: m x, or m x + finish
    double high = 0;
    int fewest = 0;  // stages
    int most = 0;
    double value = -HUGE_VAL;
    bool stuck = false;           // the prices are as good as they get
    std::vector<double> price;    // by pool, of one device
    std::vector<double> weights;  // of the paths but the first
    double count = 0;             // price of a stage
    std::vector<double> chains;   // PricedCell
  };
  // The open cells for one way to be slowest.
  struct Front {
    Slowest slowest;
    std::vector<Cell> cells;
    bool begun = false;
    double first_bound = 0;  // before any cell was cut
  };

  const std::vector<PivotPath>& paths(const Cell& cell) const {
    return paths_[static_cast<int>(cell.fill)];
  }
  static const PathWeights& part_of(const PivotPath& path, int before, int after);
  StageWeights prices(const Cell& cell) const;
  void evaluate(Cell& cell);
  std::vector<double> slope(const Cell& cell) const;
  std::vector<double> variables(const Cell& cell) const;
  void set(Cell& cell, const std::vector<double>& at) const;
  void improve(Cell& cell, int evaluations);
  double fixed(const Cell& cell) const;
  double spent(const Cell& cell) const;
  bool is_open(const Cell& cell) const { return cell.value < incumbent_; }
  void begin(Front& front, std::span<const double> worth, double least);
  void cut_cells(std::vector<Cell>& cells);
  bool is_worth_cutting(const Front& front) const;
  double bound(const Front& front) const;
  PricedCell priced(const Cell& cell);

  const Space& space_;
  Schedule schedule_;
  double m_;
  int units_;
  int max_stages_;
  double incumbent_;
  std::function<bool()> stop_;
  OfferTable table_;
  PricedPartition chains_;
  std::array<std::vector<PivotPath>, 3> paths_;  // by PathFamily
  std::array<Front, 2> fronts_{Front{Slowest::by_time, {}}, Front{Slowest::by_step, {}}};
  SuffixBounds tails_;
  Seconds said_;          // by tighten()
  bool settled_ = false;  // more work would not change it

  double enough_ = HUGE_VAL;
  double work_left_ = 0;  // offers and runs that may still be looked at
};

}  // namespace plait
