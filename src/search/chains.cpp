#include "search/chains.h"

#include <algorithm>
#include <cmath>

namespace plait {
namespace {

constexpr Lanes kNever{HUGE_VAL, HUGE_VAL, HUGE_VAL, HUGE_VAL};

void lower(Lanes& to, const Lanes& by) { to = by < to ? by : to; }

}  // namespace

Chains::Chains(const OfferTable& table, const RunClasses& classes, int units, double micro_batches)
    : table_(table),
      classes_(classes),
      units_(units),
      m_(micro_batches),
      work_(2.0 * static_cast<double>(table.size()) + 1.0 * units * table.longest_run()),
      runs_(table.by_class().size()) {}

// `most`: that a stage takes.
void Chains::Rates::set(int i, const Part& part, const StageOffers& own, double most) {
  time[i] = part.time;
  forward[i] = part.forward;
  longer[i] = part.longer;
  finish[i] = part.finish + (own.first ? part.closing : 0);
  send[i] = (own.first ? 0 : part.in) + (own.last ? 0 : part.out);
  each[i] = part.each * most;
}

double Chains::seconds(const Link& link, const Part& part) const {
  Rates rates{};
  rates.set(0, part, *link.among, prices_.high / m_);
  Lanes cost;
  rates.cost(*link.offer, cost);
  return cost[0];
}

void Chains::set_rates() {
  for (int b = 0; b < kPivotCount; ++b) limits_[b] = kPivots[b] * prices_.low;
  for (const bool first : {false, true})
    for (const bool last : {false, true})
      for (int band = 0; band < kChains; ++band)
        for (int i = 0; i < kChains; ++i)
          rates_[position(first, last)][band].set(i, prices_.parts[band][i], {{}, first, last},
                                                  prices_.high / m_);
  option_price_.assign(table_.option_count(), prices_.stage);
  for (int o = 0; o < table_.option_count(); ++o)
    for (std::size_t p = 0; p < prices_.device.size(); ++p)
      option_price_[o] += table_.devices(o, p) * prices_.device[p];
}

void Chains::price_run(const StageOffers& own, RunPrice& run) const {
  std::array<Lanes, kChains> least{kNever, kNever, kNever, kNever};  // by band
  int highest = kChains;
  for (const StageOffer& offer : own.offers) {
    if (m_ * offer.time > prices_.high) break;
    const double taken = takes(offer);
    if (taken > prices_.high) continue;
    const int band = band_of(taken);
    highest = std::min(highest, band);
    const Rates& rates = this->rates(own, band);
    const double price = option_price_[offer.option] + offer.tied;
    Lanes cost;
    rates.cost(offer, cost);
    lower(least[band], cost + price);
  }
  run.possible = highest < kChains;
  run.pivotal = highest < kPivotCount;
  run.stay = kNever;
  run.from.fill(kNever);
  if (!run.possible) return;
  for (int band = 0; band < kChains; ++band)
    for (int i = 0; i < kChains; ++i) {
      Lanes& known = run.from[std::min(i, band)];
      known[i] = std::min<double>(known[i], least[band][i]);
    }
  for (int i = 0; i < kChains; ++i) run.stay[i] = run.from[i][i];
}

const std::vector<Lanes>& Chains::price(const StagePrices& prices) {
  prices_ = prices;
  set_rates();
  for (std::size_t c = 0; c < runs_.size(); ++c) price_run(table_.by_class()[c], runs_[c]);
  chains_.assign(units_ + 1, kNever);
  chains_[0][0] = 0;
  for (int end = 1; end <= units_; ++end) {
    Lanes best = kNever;
    for (int begin = std::max(0, end - table_.longest_run()); begin < end; ++begin) {
      const RunPrice& run = runs_[classes_.of({begin, end})];
      if (!run.possible) continue;
      const Lanes& so_far = chains_[begin];
      lower(best, so_far + run.stay);
      if (!run.pivotal) continue;
      for (int from = 0; from < kPivotCount; ++from) lower(best, so_far[from] + run.from[from]);
    }
    chains_[end] = best;
  }
  return chains_;
}

const StageOffer* Chains::cheapest_offer(const StageOffers& own, int before, int after) const {
  const StageOffer* cheapest = nullptr;
  double least = HUGE_VAL;
  for (const StageOffer& offer : own.offers) {
    const double taken = takes(offer);
    if (taken > prices_.high) continue;
    const int band = band_of(taken);
    if (before != std::min(after, band)) continue;
    Lanes cost;
    rates(own, band).cost(offer, cost);
    cost += option_price_[offer.option] + offer.tied;
    if (cost[after] >= least) continue;
    least = cost[after];
    cheapest = &offer;
  }
  return cheapest;
}

std::vector<Chains::Link> Chains::cheapest() const {
  std::vector<Link> links;
  for (int end = units_, pivots = kPivotCount; end > 0;) {
    double least = HUGE_VAL;
    int begin_of_best = 0;
    int from_of_best = 0;
    for (int begin = std::max(0, end - table_.longest_run()); begin < end; ++begin) {
      const RunPrice& run = runs_[classes_.of({begin, end})];
      for (int from = pivots; from >= 0; --from) {
        const double sum = chains_[begin][from] + run.from[from][pivots];
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
