#pragma once

#include <array>
#include <vector>

#include "search/bound/stage_offers.h"
#include "search/bound/step_paths.h"
#include "search/bound/suffix_bounds.h"
#include "search/space/units/run_classes.h"

namespace plait {

// One number for each number of pivots that have been passed, computed with side by side, two at a
// time.
struct PivotLanes {
  using Pair = double __attribute__((vector_size(2 * sizeof(double))));
  std::array<Pair, kPivotStates / 2> pairs;

  static PivotLanes all(double x) {
    PivotLanes lanes;
    for (Pair& pair : lanes.pairs) pair = Pair{x, x};
    return lanes;
  }
  double operator[](int i) const { return pairs[i / 2][i % 2]; }
  void set(int i, double x) { pairs[i / 2][i % 2] = x; }

  void add(const PivotLanes& other) {
    for (std::size_t i = 0; i < pairs.size(); ++i) pairs[i] += other.pairs[i];
  }
  void add(double factor, const PivotLanes& other) {
    for (std::size_t i = 0; i < pairs.size(); ++i) pairs[i] += factor * other.pairs[i];
  }
  // To the other's where these are higher.
  void lower(const PivotLanes& other) {
    for (std::size_t i = 0; i < pairs.size(); ++i)
      pairs[i] = other.pairs[i] < pairs[i] ? other.pairs[i] : pairs[i];
  }
  friend PivotLanes operator+(PivotLanes a, const PivotLanes& b) {
    a.add(b);
    return a;
  }
};
static_assert(kPivotStates % 2 == 0);

// What stages cost in a Relaxation: by the time of the slowest stage and by the pivots that are
// passed with them.
//
// A stage of band b takes less than kPivots[b - 1] times the slowest and at least kPivots[b] times
// (the last band: any less). So it may follow b pivots or fewer and be none itself, or follow b and
// be the next and any after that: one way for each number i of pivots then passed, from min(i, b).
struct StageWeights {
  bool by_step = false;  // the slowest stage is that of most m x + finish, not of most x
  double low = 0;        // of what it takes
  double high = 0;
  std::vector<double> device;  // by pool
  double stage = 0;            // of any stage
  std::array<std::array<PathWeights, kPivotStates>, kPivotStates>
      parts;  // [band][pivots then passed]
};

// The cheapest ways to cut the first units of a model into stages, for every number of units and of
// pivots passed: a dynamic program over the runs of units, each on the offer that is cheapest.
class PricedPartition {
 public:
  PricedPartition(const OfferTable& table, const RunClasses& classes, int units,
                  double micro_batches);

  // [u][i] = least cost of units [0, u) with i pivots; infinite where there is none.
  const std::vector<PivotLanes>& price(const StageWeights& prices);

  // A stage of the cheapest chain of all units with all pivots.
  struct Link {
    int pivots_before = 0;
    int pivots_after = 0;
    const StageOffers* among = nullptr;
    const StageOffer* offer = nullptr;
  };
  // As priced last; the last stage first. The chain must exist.
  std::vector<Link> cheapest() const;

  // What a path counts its stage for, prices apart.
  double seconds(const Link& link, const PathWeights& part) const;

  // Offers and runs that one pricing looks at.
  double work() const { return work_; }

 private:
  // What a stage counts for in a band, by pivots passed, per second of the offer's times.
  struct Rates {
    PivotLanes time;
    PivotLanes forward;
    PivotLanes longer;
    PivotLanes finish;
    const PivotLanes* option = nullptr;  // [option]: what does not depend on the units
    PivotLanes cost(const StageOffer& offer) const {
      PivotLanes cost = option[offer.option];
      cost.add(offer.time, time);
      cost.add(offer.forward, forward);
      cost.add(offer.longer, longer);
      cost.add(offer.finish, finish);
      return cost;
    }
  };
  // Least cost of a stage by the pivots passed after it.
  struct RunPrice {
    PivotLanes stay;  // and as many before it
    std::array<PivotLanes, kPivotCount>
        leave;              // [i]: and i before it; or as many, not always the least
    bool pivotal = false;   // may be a pivot
    bool possible = false;  // there is an offer at all
  };
  void set_rates();
  void set_rates(bool first, bool last);
  void price_run(const StageOffers& own, RunPrice& run) const;
  // The least costs, by band.
  void price_in_order(const StageOffers& own, std::array<PivotLanes, kPivotStates>& least) const;
  void price_by_band(const StageOffers& own, std::array<PivotLanes, kPivotStates>& least) const;
  static double from_to(const RunPrice& run, int from, int to) {
    return from == to ? run.stay[to] : run.leave[from][to];
  }
  static int position(bool first, bool last) { return (first ? 2 : 0) + (last ? 1 : 0); }
  const std::array<Rates, kPivotStates>& rates(const StageOffers& own) const {
    return rates_[position(own.first, own.last)];
  }
  double takes(const StageOffer& offer) const {
    return m_ * offer.time + (prices_.by_step ? offer.finish : 0);
  }
  int band_of(double takes) const {
    int band = 0;
    for (const double limit : limits_) band += takes < limit ? 1 : 0;
    return band;
  }
  const StageOffer* cheapest_offer(const StageOffers& own, int before, int after) const;

  const OfferTable& table_;
  const RunClasses& classes_;
  int units_;
  double m_;
  double work_;
  StageWeights prices_;
  std::array<double, kPivotCount> limits_{};                // of the bands
  std::array<std::array<Rates, kPivotStates>, 4> rates_{};  // [first, last][band]
  std::vector<double> option_price_;
  std::vector<PivotLanes> option_rates_;        // what rates_ point to
  std::array<PivotLanes, kPivotStates> up_to_;  // nothing for up to i pivots, infinite for more
  std::array<PivotLanes, kPivotCount> from_;    // nothing for i pivots or more, infinite for fewer
  std::vector<RunPrice> runs_;                  // by class
  std::vector<PivotLanes> chains_;
};

}  // namespace plait
