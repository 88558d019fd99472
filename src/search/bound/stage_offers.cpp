#include "search/bound/stage_offers.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace plait {

OfferTable::OfferTable(const Space& space, const PlanSettings& settings, StageCosts& costs,
                       const SendLowerBound& sends, Seconds incumbent,
                       const std::function<bool()>& stop)
    : pools_(space.pools().size()), may_be_single_(space.min_stages() <= 1) {
  devices_.assign(costs.option_count() * pools_, 0);
  for (int o = 0; o < costs.option_count(); ++o)
    for (const Take& take : costs.option_at(o).takes)
      devices_[o * pools_ + take.pool] += take.devices;
  list(space, settings, costs, sends, incumbent.value, stop);
}

void OfferTable::list(const Space& space, const PlanSettings& settings, StageCosts& costs,
                      const SendLowerBound& sends, double incumbent,
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
  sort_by_class(classes);
}

void OfferTable::sort_by_class(const RunClasses& classes) {
  std::vector<std::size_t> begin(classes.count() + 1, 0);
  for (const int c : class_of_) ++begin[c + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<StageOffer> sorted(offers_.size());
  std::vector<std::size_t> next = begin;
  for (std::size_t i = 0; i < offers_.size(); ++i) sorted[next[class_of_[i]]++] = offers_[i];
  class_of_ = {};
  offers_.clear();
  std::vector<StageOffer> kept(option_count());
  for (int c = 0; c < classes.count(); ++c) {
    const std::span<StageOffer> own = std::span(sorted).subspan(begin[c], begin[c + 1] - begin[c]);
    begin[c] = offers_.size();
    if (own.empty()) continue;
    longest_run_ = std::max(longest_run_, classes.firsts()[c].size());
    const std::size_t count = drop_dominated(own, by_class_[c].last, kept);
    offers_.insert(offers_.end(), own.begin(), own.begin() + static_cast<std::ptrdiff_t>(count));
  }
  begin.back() = offers_.size();
  for (int c = 0; c < classes.count(); ++c)
    by_class_[c].offers = std::span(offers_).subspan(begin[c], begin[c + 1] - begin[c]);
}

// False when it takes too long: more units take longer, and more memory.
bool OfferTable::add(int c, int o, int micro_batches, const StageTime& time, double incumbent) {
  const StageOffers& own = by_class_[c];
  const bool whole = own.first && own.last;
  const double all = micro_batches * time.total().value + time.finish.value;
  if (!(all + (own.last && !whole ? tied_[o] : 0) < incumbent)) return false;
  if (!whole) {
    offers_.push_back({time.total().value, time.forward.value,
                       std::max(time.forward, time.backward).value, time.finish.value, o});
    class_of_.push_back(c);
  } else if (may_be_single_) {
    single_ = std::min(single_, all);
  }
  return true;
}

// Which options take no more devices than another, and no longer to hand over.
void OfferTable::list_undercutting() {
  undercuts_.resize(option_count());
  last_undercuts_.resize(option_count());
  for (int o = 0; o < option_count(); ++o) {
    for (int other = 0; other < option_count(); ++other) {
      bool no_more = other != o && sends_[other] <= sends_[o];
      for (std::size_t p = 0; p < pools_ && no_more; ++p)
        no_more = devices(other, p) <= devices(o, p);
      if (!no_more) continue;
      undercuts_[o].push_back(other);
      if (tied_[other] <= tied_[o]) last_undercuts_[o].push_back(other);
    }
  }
}

// Brings those to the front that are better than each of the others in something; how many.
// `kept` is by option.
std::size_t OfferTable::drop_dominated(std::span<StageOffer> offers, bool last,
                                       std::vector<StageOffer>& kept) const {
  std::ranges::sort(offers, [](const StageOffer& a, const StageOffer& b) {
    return a.time != b.time ? a.time < b.time : a.option < b.option;
  });
  std::ranges::fill(kept, StageOffer{.finish = HUGE_VAL});
  const auto& undercuts = last ? last_undercuts_ : undercuts_;
  std::size_t count = 0;
  for (const StageOffer& offer : offers) {
    const bool beaten = std::ranges::any_of(undercuts[offer.option], [&](int o) {
      const StageOffer& other = kept[o];  // which takes no longer
      return other.finish <= offer.finish && other.forward <= offer.forward &&
             other.longer <= offer.longer;
    });
    if (beaten) continue;
    kept[offer.option] = offer;
    offers[count++] = offer;
  }
  return count;
}

}  // namespace plait
