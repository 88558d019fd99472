#include "search/stage_offers.h"

#include <algorithm>
#include <cmath>

namespace plait {

OfferTable::OfferTable(const Space& space, const PlanSettings& settings, StageCosts& costs,
                       const HandOverFloor& sends, Seconds incumbent,
                       const std::function<bool()>& stop)
    : pools_(space.pools().size()), may_be_single_(space.min_stages() <= 1) {
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
  std::vector<int> ends;  // of the first runs of all classes
  for (const UnitRange& run : classes.firsts()) ends.push_back(run.end);
  std::vector<StageTime> times;
  for (int o = 0; o < costs.option_count(); ++o) {
    if (stop()) {
      complete_ = false;
      return;
    }
    sends_.push_back(sends.beside(costs.option_at(o)).value);
    tied_.push_back(costs.tied_to(o).value);
    for (int c = 0; c < classes.count();) {
      const int begin = classes.firsts()[c].begin;
      int next = c;  // where runs begin later
      while (next < classes.count() && classes.firsts()[next].begin == begin) ++next;
      if (one_stage) c = next - 1;
      costs.last_times(o, begin, std::span(ends).subspan(c, next - c), Seconds(incumbent), times);
      for (const StageTime& time : times) {
        if (!add(c, o, settings.micro_batches, time, incumbent)) break;
        ++c;
      }
      c = next;
      if (one_stage) break;
    }
  }
  list_undercutting();
  for (int c = 0; c < classes.count(); ++c) {
    if (by_class_[c].offers.empty()) continue;
    longest_run_ = std::max(longest_run_, classes.firsts()[c].size());
    drop_dominated(by_class_[c]);
  }
}

// False when it takes too long: more units take longer, and more memory.
bool OfferTable::add(int c, int o, int micro_batches, const StageTime& time, double incumbent) {
  StageOffers& own = by_class_[c];
  const bool whole = own.first && own.last;
  const double all = micro_batches * time.total().value + time.finish.value;
  if (!(all + (own.last && !whole ? tied_[o] : 0) < incumbent)) return false;
  if (!whole)
    own.offers.push_back({time.total().value, time.forward.value,
                          std::max(time.forward, time.backward).value, time.finish.value, o});
  else if (may_be_single_)
    single_ = std::min(single_, all);
  return true;
}

// Which options take no more devices than another, and no longer to hand over.
void OfferTable::list_undercutting() {
  const int count = option_count();
  undercuts_.assign(static_cast<std::size_t>(count) * count, 0);
  last_undercuts_ = undercuts_;
  for (int o = 0; o < count; ++o) {
    for (int other = 0; other < count; ++other) {
      bool no_more = sends_[other] <= sends_[o];
      for (std::size_t p = 0; p < pools_ && no_more; ++p)
        no_more = devices(other, p) <= devices(o, p);
      const std::size_t at = static_cast<std::size_t>(o) * count + other;
      undercuts_[at] = no_more ? 1 : 0;
      last_undercuts_[at] = no_more && tied_[other] <= tied_[o] ? 1 : 0;
    }
  }
}

// Keeps those that are better than each of the others in something.
void OfferTable::drop_dominated(StageOffers& own) const {
  std::ranges::sort(own.offers, [](const StageOffer& a, const StageOffer& b) {
    return a.time != b.time ? a.time < b.time : a.option < b.option;
  });
  std::vector<StageOffer> kept;
  const std::vector<char>& undercuts = own.last ? last_undercuts_ : undercuts_;
  for (const StageOffer& offer : own.offers) {
    const std::size_t row = static_cast<std::size_t>(offer.option) * option_count();
    const bool beaten = std::ranges::any_of(kept, [&](const StageOffer& other) {
      return other.finish <= offer.finish && other.forward <= offer.forward &&
             other.longer <= offer.longer && undercuts[row + other.option] != 0;
    });
    if (!beaten) kept.push_back(offer);
  }
  own.offers = std::move(kept);
}

}  // namespace plait
