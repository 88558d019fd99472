#pragma once

#include <array>
#include <vector>

#include "search/run_classes.h"
#include "search/stage_offers.h"
#include "search/step_paths.h"
#include "search/tail_bounds.h"

namespace plait {

// One number for each number of pivots that have been passed, computed with side by side.
using Lanes = double __attribute__((vector_size(kChains * sizeof(double))));

// What stages cost in a Relaxation: by the time of the slowest stage and by the pivots that are
// passed with them.
//
// A stage of band b takes less than kPivots[b - 1] times the slowest and at least kPivots[b] times
// (the last band: any less). So it may follow b pivots or fewer and be none itself, or follow b and
// be the next and any after that: one way for each number i of pivots then passed, from min(i, b).
struct StagePrices {
  bool by_step = false;  // the slowest stage is that of most m x + finish, not of most x
  double low = 0;        // of what it takes
  double high = 0;
  std::vector<double> device;                            // by pool
  double stage = 0;                                      // of any stage
  std::array<std::array<Part, kChains>, kChains> parts;  // [band][pivots then passed]
};

// The cheapest ways to cut the first units of a model into stages, for every number of units and of
// pivots passed: a dynamic program over the runs of units, each on the offer that is cheapest.
class Chains {
 public:
  Chains(const OfferTable& table, const RunClasses& classes, int units, double micro_batches);

  // [u][i] = least cost of units [0, u) with i pivots; infinite where there is none.
  const std::vector<Lanes>& price(const StagePrices& prices);

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
  double seconds(const Link& link, const Part& part) const;

  // Offers and runs that one pricing looks at.
  double work() const { return work_; }

 private:
  // By pivots passed, per second of the offer's times.
  struct Rates {
    Lanes time, forward, longer, finish, send, each;
    void set(int i, const Part& part, const StageOffers& own, double most);
    void cost(const StageOffer& offer, Lanes& cost) const {
      cost = time * offer.time + forward * offer.forward + longer * offer.longer +
             finish * offer.finish + send * offer.send + each;
    }
  };
  // Least cost of a stage by the pivots passed before it and after it.
  struct RunPrice {
    std::array<Lanes, kChains> from;
    Lanes stay;             // from[i][i]
    bool pivotal = false;   // may be a pivot
    bool possible = false;  // there is an offer at all
  };
  void set_rates();
  void price_run(const StageOffers& own, RunPrice& run) const;
  static int position(bool first, bool last) { return (first ? 2 : 0) + (last ? 1 : 0); }
  const Rates& rates(const StageOffers& own, int band) const {
    return rates_[position(own.first, own.last)][band];
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
  StagePrices prices_;
  std::array<double, kPivotCount> limits_{};           // of the bands
  std::array<std::array<Rates, kChains>, 4> rates_{};  // [first, last][band]
  std::vector<double> option_price_;
  std::vector<RunPrice> runs_;  // by class
  std::vector<Lanes> chains_;
};

}  // namespace plait
