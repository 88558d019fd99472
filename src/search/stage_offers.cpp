#include "search/stage_offers.h"

#include <algorithm>
#include <cmath>

namespace plait {

OfferTable::OfferTable(const Space& space, const PlanSettings& settings, StageCosts& costs,
                       const HandOverFloor& sends, Seconds incumbent,
                       const std::function<bool()>& stop)
    : pools_(space.pools().size()) {
  devices_.assign(costs.option_count() * pools_, 0);
  for (int o = 0; o < costs.option_count(); ++o)
    for (const Take& take : costs.option_at(o).takes)
      devices_[o * pools_ + take.pool] += take.devices;
  list(space, settings, costs, sends, incumbent.value, stop);
}

std::size_t OfferTable::size() const {
  std::size_t sum = 0;
  for (const StageOffers& own : by_class_) sum += own.offers.size();
  return sum;
}

void OfferTable::list(const Space& space, const PlanSettings& settings, StageCosts& costs,
                      const HandOverFloor& sends, double incumbent,
                      const std::function<bool()>& stop) {
  const RunClasses& classes = space.run_classes();
  const int units = space.problem().model.unit_count();
  const int options = costs.option_count();
  const double m = settings.micro_batches;
  const bool one_stage = space.max_stages(settings) == 1;
  std::vector<double> send(options);
  for (int o = 0; o < options; ++o) send[o] = sends.beside(costs.option_at(o)).value;
  by_class_.resize(classes.count());
  std::vector<char> alive(options, 1);  // not yet too slow, for runs that begin where they do
  int begin = -1;
  for (int c = 0; c < classes.count(); ++c) {
    const UnitRange& run = classes.firsts()[c];
    if (run.begin != begin) {
      alive.assign(options, 1);
      if (stop()) {
        complete_ = false;
        return;
      }
    }
    begin = run.begin;
    StageOffers& own = by_class_[c];
    own.first = run.begin == 0;
    own.last = run.end == units;
    const bool whole = own.first && own.last;
    if (one_stage && !whole) continue;
    for (int o = 0; o < options; ++o) {
      if (alive[o] == 0) continue;
      const StageTime time = costs.run_time(o, run, 0);
      const double total = time.total().value;
      const double tied = own.last && !whole ? costs.tied_to(o).value : 0;
      if (!(m * total + time.finish.value + tied < incumbent)) {
        alive[o] = 0;  // more units take longer, and more memory
        continue;
      }
      if (whole && space.min_stages() <= 1)
        single_ = std::min(single_, m * total + time.finish.value);
      else if (!whole)
        own.offers.push_back({total, time.forward.value,
                              std::max(time.forward, time.backward).value, time.finish.value,
                              send[o], tied, o});
    }
    if (whole || own.offers.empty()) continue;
    longest_run_ = std::max(longest_run_, run.size());
    drop_dominated(own.offers);
  }
}

// Keeps those that are better than each of the others in something.
void OfferTable::drop_dominated(std::vector<StageOffer>& offers) const {
  std::ranges::stable_sort(offers, {}, &StageOffer::time);
  std::vector<StageOffer> kept;
  for (const StageOffer& offer : offers) {
    const bool beaten = std::ranges::any_of(kept, [&](const StageOffer& other) {
      if (other.finish > offer.finish || other.send > offer.send || other.forward > offer.forward ||
          other.longer > offer.longer || other.tied > offer.tied)
        return false;
      for (std::size_t p = 0; p < pools_; ++p)
        if (devices(other.option, p) > devices(offer.option, p)) return false;
      return true;
    });
    if (!beaten) kept.push_back(offer);
  }
  offers = std::move(kept);
}

}  // namespace plait
