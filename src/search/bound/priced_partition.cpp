#include "search/bound/priced_partition.h"

#include <algorithm>
#include <cmath>

namespace plait {
namespace {

// Of a hand-over to or from a stage that has these neighbours.
double send_part(const PathWeights& part, bool first, bool last) {
  return (first ? 0 : part.in) + (last ? 0 : part.out);
}
double finish_part(const PathWeights& part, bool first) {
  return part.finish + (first ? part.closing : 0);
}

// Infinite for fewer pivots, or for more; else nothing.
PivotLanes only(int fewest, int most) {
  PivotLanes lanes = PivotLanes::all(0);
  for (int i = 0; i < kPivotStates; ++i)
    if (i < fewest || i > most) lanes.set(i, HUGE_VAL);
  return lanes;
}

}  // namespace

PricedPartition::PricedPartition(const OfferTable& table, const RunClasses& classes, int units,
                                 double micro_batches)
    : table_(table),
      classes_(classes),
      units_(units),
      m_(micro_batches),
      work_(2.0 * static_cast<double>(table.size()) + 1.0 * units * table.longest_run()),
      runs_(table.by_class().size()) {
  for (int i = 0; i < kPivotStates; ++i) up_to_[i] = only(0, i);
  for (int i = 0; i < kPivotCount; ++i) from_[i] = only(i, kPivotCount);
}

double PricedPartition::seconds(const Link& link, const PathWeights& part) const {
  const StageOffer& offer = *link.offer;
  const StageOffers& among = *link.among;
  return part.time * offer.time + part.forward * offer.forward + part.longer * offer.longer +
         finish_part(part, among.first) * offer.finish +
         send_part(part, among.first, among.last) * table_.send(offer.option) +
         part.each * prices_.high / m_;
}

void PricedPartition::set_rates() {
  for (int b = 0; b < kPivotCount; ++b) limits_[b] = kPivots[b] * prices_.low;
  option_price_.assign(table_.option_count(), prices_.stage);
  for (int o = 0; o < table_.option_count(); ++o)
    for (std::size_t p = 0; p < prices_.device.size(); ++p)
      option_price_[o] += table_.devices(o, p) * prices_.device[p];
  option_rates_.resize(static_cast<std::size_t>(4 * kPivotStates) * table_.option_count());
  for (const bool first : {false, true})
    for (const bool last : {false, true}) set_rates(first, last);
}

void PricedPartition::set_rates(bool first, bool last) {
  const int at = position(first, last);
  for (int band = 0; band < kPivotStates; ++band) {
    Rates& rates = rates_[at][band];
    PivotLanes send = PivotLanes::all(0);
    PivotLanes each = PivotLanes::all(0);
    for (int i = 0; i < kPivotStates; ++i) {
      const PathWeights& part = prices_.parts[band][i];
      rates.time.set(i, part.time);
      rates.forward.set(i, part.forward);
      rates.longer.set(i, part.longer);
      rates.finish.set(i, finish_part(part, first));
      send.set(i, send_part(part, first, last));
      each.set(i, part.each * prices_.high / m_);
    }
    PivotLanes* option = &option_rates_[(at * kPivotStates + band) * option_price_.size()];
    rates.option = option;
    for (int o = 0; o < table_.option_count(); ++o) {
      option[o] = each + PivotLanes::all(option_price_[o] + (last ? table_.tied(o) : 0));
      option[o].add(table_.send(o), send);
    }
  }
}

// Where the slowest stage is that of most time, offers are in the order of their bands.
void PricedPartition::price_in_order(const StageOffers& own,
                                     std::array<PivotLanes, kPivotStates>& least) const {
  auto offer = own.offers.begin();
  for (int band = kPivotStates - 1; band >= 0 && offer != own.offers.end(); --band) {
    const double limit = band > 0 ? limits_[band - 1] : HUGE_VAL;
    const double taken_first = m_ * offer->time;
    if (taken_first > prices_.high) return;
    if (taken_first >= limit) continue;
    const Rates& rates = this->rates(own)[band];
    PivotLanes cheapest = PivotLanes::all(HUGE_VAL);
    for (; offer != own.offers.end(); ++offer) {
      const double taken = m_ * offer->time;
      if (taken >= limit || taken > prices_.high) break;
      cheapest.lower(rates.cost(*offer));
    }
    least[band] = cheapest;
  }
}

void PricedPartition::price_by_band(const StageOffers& own,
                                    std::array<PivotLanes, kPivotStates>& least) const {
  for (const StageOffer& offer : own.offers) {
    if (m_ * offer.time > prices_.high) break;
    const double taken = takes(offer);
    if (taken > prices_.high) continue;
    const int band = band_of(taken);
    least[band].lower(rates(own)[band].cost(offer));
  }
}

void PricedPartition::price_run(const StageOffers& own, RunPrice& run) const {
  run.possible = run.pivotal = false;
  if (own.offers.empty()) return;
  std::array<PivotLanes, kPivotStates> least;  // by band
  least.fill(PivotLanes::all(HUGE_VAL));
  if (prices_.by_step)
    price_by_band(own, least);
  else
    price_in_order(own, least);
  int highest = 0;
  while (highest < kPivotStates && least[highest][kPivotCount] == HUGE_VAL) ++highest;
  if (highest == kPivotStates) return;
  run.possible = true;
  run.pivotal = highest < kPivotCount;
  run.stay = least[0] + up_to_[0];
  for (int band = 1; band < kPivotStates; ++band) run.stay.lower(least[band] + up_to_[band]);
  for (int band = 0; band < kPivotCount; ++band) run.leave[band] = least[band] + from_[band];
}

const std::vector<PivotLanes>& PricedPartition::price(const StageWeights& prices) {
  prices_ = prices;
  set_rates();
  for (std::size_t c = 0; c < runs_.size(); ++c) price_run(table_.by_class()[c], runs_[c]);
  chains_.assign(units_ + 1, PivotLanes::all(HUGE_VAL));
  chains_[0].set(0, 0);
  for (int end = 1; end <= units_; ++end) {
    PivotLanes best = PivotLanes::all(HUGE_VAL);
    for (int begin = std::max(0, end - table_.longest_run()); begin < end; ++begin) {
      const RunPrice& run = runs_[classes_.of({begin, end})];
      if (!run.possible) continue;
      const PivotLanes& so_far = chains_[begin];
      best.lower(so_far + run.stay);
      if (!run.pivotal) continue;
      for (int i = 0; i < kPivotCount; ++i) best.lower(PivotLanes::all(so_far[i]) + run.leave[i]);
    }
    chains_[end] = best;
  }
  return chains_;
}

const StageOffer* PricedPartition::cheapest_offer(const StageOffers& own, int before,
                                                  int after) const {
  const StageOffer* cheapest = nullptr;
  double least = HUGE_VAL;
  for (const StageOffer& offer : own.offers) {
    const double taken = takes(offer);
    if (taken > prices_.high) continue;
    const int band = band_of(taken);
    if (before != std::min(after, band)) continue;
    const double cost = rates(own)[band].cost(offer)[after];
    if (cost >= least) continue;
    least = cost;
    cheapest = &offer;
  }
  return cheapest;
}

std::vector<PricedPartition::Link> PricedPartition::cheapest() const {
  std::vector<Link> links;
  for (int end = units_, pivots = kPivotCount; end > 0;) {
    double least = HUGE_VAL;
    int begin_of_best = 0;
    int from_of_best = 0;
    for (int begin = std::max(0, end - table_.longest_run()); begin < end; ++begin) {
      const RunPrice& run = runs_[classes_.of({begin, end})];
      if (!run.possible) continue;
      for (int from = pivots; from >= 0; --from) {
        const double sum = chains_[begin][from] + from_to(run, from, pivots);
        if (sum >= least) continue;
        least = sum;
        begin_of_best = begin;
        from_of_best = from;
      }
    }
    const StageOffers& own = table_.by_class()[classes_.of({begin_of_best, end})];
    links.push_back({from_of_best, pivots, &own, cheapest_offer(own, from_of_best, pivots)});
    pivots = from_of_best;
    end = begin_of_best;
  }
  return links;
}

}  // namespace plait
