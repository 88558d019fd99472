#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "search/hand_over_floor.h"
#include "search/space.h"
#include "search/stage_costs.h"
#include "search/tail.h"

namespace plait {

// A lower bound on steps, by pricing the devices instead of counting them; docs/planners.md#bounds
// derives it. Let s be the slowest stage of a plan, of x seconds for a micro-batch, L and F the
// round trip and the way forward through the stages before it and R the round trip through those
// after it. The step takes at least as long as each of
//   L + m x                 s has all micro-batches to do
//   F + m x + finish        and then its gradients to sum
//   L + 2 R + (m - k + 1) x if k < m,  L + R + (m + 1) x / 2 if k >= m (k counts from s to the end)
// and as any mean of them, which is a sum over stages. If every device of pool p costs u_p, the
// least sum over all ways to cut the units into stages that are not slower, less what all devices
// cost, is a lower bound, whatever the prices are; a dynamic program over the units finds it. That
// k < m or k >= m has a price, too. Prices and weights of the mean are moved uphill, and the range
// of what the slowest stage may take is cut into cells until the lowest cell is high enough.
// `Slowest` is by x, or by m x + finish; both give a bound.
//
// Only plans faster than `incumbent` count: stages that make the step longer are left out.
class Relaxation {
 public:
  Relaxation(const Space& space, const PlanSettings& settings, Schedule schedule, StageCosts& costs,
             const HandOverFloor& sends, Seconds incumbent);

  // No plan is faster than this, or than the incumbent. `worth`: of a device of each pool, to begin
  // with; `least`: of the slowest stage.
  Seconds tighten(std::span<const double> worth, Seconds least, double work);
  // No plan with these last stages and units [0, left) still open is faster, likewise.
  Seconds step(const Tail& tail, int left, std::span<const int> used) const;
  // The same when one more stage, of which nothing is known but its devices, is part of `used`.
  Seconds open_units(const Tail& tail, int left, std::span<const int> used) const;

 private:
  enum class Path { filled, filling, gpipe };  // k < m, k >= m
  enum class Slowest { by_time, by_step };
  struct Entry {
    double time = 0;
    double forward = 0;
    double finish = 0;
    double send = 0;
    double tied = 0;  // of the last stage
    int option = 0;
  };
  // Stages of a class that may be of use, ascending in time.
  struct Offers {
    std::vector<Entry> entries;
    bool first = false;  // begins the model
    bool last = false;
  };
  struct Cell {
    Path path = Path::filled;
    Slowest slowest = Slowest::by_time;
    double low = 0;  // of what the slowest stage takes: m x, or m x + finish
    double high = 0;
    double value = -HUGE_VAL;
    bool stuck = false;           // the prices are as good as they get
    double share = 0.5;           // weight of the third path
    double late = 0;              // of the second
    double count = 0;             // price of having k on the wrong side of m, per stage
    std::vector<double> price;    // by pool, of one device
    std::vector<double> before;   // [u] = least cost of units [0, u) before the slowest stage
    std::vector<double> through;  // the same with the slowest stage among them
    std::vector<double> ahead;    // [u] = least round trip through units [0, u), devices included
  };
  // Uphill direction of a cell's value.
  struct Slope {
    std::vector<double> devices;  // by pool: used beyond what there are
    double share = 0;
    double late = 0;
    double count = 0;
  };
  // What a stage after the slowest one counts for its time and for being there, what the slowest
  // one counts for its time, and what does not depend on any.
  struct Weights {
    double time = 0;
    double each = 0;
    double slowest = 0;
    double fixed = 0;
  };
  static Weights weights_of(const Cell& cell, double micro_batches);

  void list_offers(StageCosts& costs, const HandOverFloor& sends);
  void drop_dominated(std::vector<Entry>& entries) const;
  void evaluate(Cell& cell, Slope* slope);
  void trace(const Cell& cell, Slope& slope) const;
  double spent(const Cell& cell, std::span<const int> used) const;
  std::vector<double> uphill(const Cell& cell, const Slope& slope) const;
  void move(Cell& cell, const std::vector<double>& by, double length) const;
  void climb(Cell& cell, int evaluations);
  void cut_cells(Slowest slowest, std::span<const double> worth, double least);
  double lowest(Slowest slowest) const;
  void look_ahead(Cell& cell);

  const Space& space_;
  const RunClasses& classes_;
  Schedule schedule_;
  double m_;
  int units_;
  int max_stages_;
  double incumbent_;
  double single_ = HUGE_VAL;  // least step of a plan of one stage
  int longest_run_ = 0;
  std::vector<int> devices_;  // [option * pools + pool]
  std::vector<Offers> offers_;
  std::vector<Cell> cells_;
  bool by_step_ = false;  // there are cells by m x + finish
  double work_left_ = 0;  // entries and runs that may still be looked at
  double work_each_ = 0;  // of one evaluation

  // Of the evaluation under way: best entry of each class in each role, and the chain.
  struct Role {
    double cost = HUGE_VAL;
    int entry = -1;
  };
  std::vector<double> option_price_;
  std::vector<Role> before_, slowest_, after_;
  struct Link {
    int from = 0;
    int role = 0;  // 0 before, 1 slowest, 2 after
  };
  std::vector<Link> before_links_, through_links_;
};

}  // namespace plait
