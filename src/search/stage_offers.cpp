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
  by_class_.resize(classes.count());
  for (int c = 0; c < classes.count(); ++c) {
    by_class_[c].first = classes.firsts()[c].begin == 0;
    by_class_[c].last = classes.firsts()[c].end == units;
  }
  const bool one_stage = space.max_stages(settings) == 1;
  for (int o = 0; o < costs.option_count(); ++o) {
    if (stop()) {
      complete_ = false;
      return;
    }
    sends_.push_back(sends.beside(costs.option_at(o)).value);
    tied_.push_back(costs.tied_to(o).value);
    int too_long_from = -1;  // runs that begin here and end no earlier than the last are too long
    for (int c = 0; c < classes.count(); ++c) {
      const UnitRange& run = classes.firsts()[c];
      StageOffers& own = by_class_[c];
      const bool whole = own.first && own.last;
      if (run.begin == too_long_from || (one_stage && !whole)) continue;
      const StageTime time = costs.last_time(o, run);
      const double all = settings.micro_batches * time.total().value + time.finish.value;
      const double tied = own.last && !whole ? tied_[o] : 0;
      if (!(all + tied < incumbent))
        too_long_from = run.begin;  // more units take longer, and more memory
      else if (!whole)
        own.offers.push_back({time.total().value, time.forward.value,
                              std::max(time.forward, time.backward).value, time.finish.value, o});
      else if (space.min_stages() <= 1)
        single_ = std::min(single_, all);
    }
  }
  for (int c = 0; c < classes.count(); ++c) {
    if (by_class_[c].offers.empty()) continue;
    longest_run_ = std::max(longest_run_, classes.firsts()[c].size());
    drop_dominated(by_class_[c]);
  }
}

// Keeps those that are better than each of the others in something.
void OfferTable::drop_dominated(StageOffers& own) const {
  std::ranges::sort(own.offers, [](const StageOffer& a, const StageOffer& b) {
    return a.time != b.time ? a.time < b.time : a.option < b.option;
  });
  std::vector<StageOffer> kept;
  for (const StageOffer& offer : own.offers) {
    const bool beaten = std::ranges::any_of(kept, [&](const StageOffer& other) {
      if (other.finish > offer.finish || other.forward > offer.forward ||
          other.longer > offer.longer || sends_[other.option] > sends_[offer.option] ||
          (own.last && tied_[other.option] > tied_[offer.option]))
        return false;
      for (std::size_t p = 0; p < pools_; ++p)
        if (devices(other.option, p) > devices(offer.option, p)) return false;
      return true;
    });
    if (!beaten) kept.push_back(offer);
  }
  own.offers = std::move(kept);
}

}  // namespace plait
