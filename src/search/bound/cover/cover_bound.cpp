#include "search/bound/cover/cover_bound.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

namespace plait {
namespace {

constexpr double kMostPairs = 4e5;   // of mixes
constexpr int kPrices = 30;          // that are tried
constexpr int kCounted = 16;         // replicas of a stage of two types up to which all are counted
constexpr int kCountedOfMany = 6;    // the same of more types ..
constexpr int kMostCounts = 50'000;  // .. where there are not more ways to count them
constexpr double kFewStages = 0.7;   // relative to micro-batches, for which the way is short
constexpr double kDelays[] = {0.2, 0.35, 0.48, 0.57, 0.63, 0.67};  // of the step
constexpr double kFewDelays[] = {0.35, 0.57, 0.65};
constexpr int kFewPrices = 8;
constexpr double kFirstShare = 0.02;
constexpr double kWideGap = 1.25;
// Of sums in another order.
constexpr double kNoise = 1e-9;

}  // namespace

CoverBound::CoverBound(const CostEngine& engine, const Space& space)
    : problem_(engine.problem()),
      space_(space),
      mixes_(engine.problem().model.units),
      needs_(engine, space, mixes_),
      traits_(traits_of(problem_.job)),
      state_(state_bytes(problem_.job)),
      cut_state_(state_bytes(problem_.job, true)),
      traffic_(optimizer_traffic(problem_.job)),
      measured_(problem_.profile != Profile{}) {
  const Pins& pins = space.pins();
  const auto has = [&](ZeroStage zero) {
    return std::ranges::any_of(space.settings(),
                               [&](const PlanSettings& own) { return own.zero == zero; });
  };
  cuts_gradients_ = has(ZeroStage::gradients);
  cuts_optimizer_ = cuts_gradients_ || has(ZeroStage::optimizer) || has(ZeroStage::parameters);
  always_cuts_weights_ =
      pins.zero == ZeroStage::parameters ||
      (pins.zero == ZeroStage::gradients && problem_.job.framework.fully_sharded);
  may_cut_weights_ = !pins.zero && has(ZeroStage::parameters);
  for (const PlanSettings& settings : space.settings())
    kept_optimizer_ = std::min(kept_optimizer_, 1 - settings.offload);
  devices_.resize(problem_.cluster.device_types.size());
  for (const Device& device : problem_.cluster.devices) ++devices_[device.type];
  std::map<std::tuple<int, int, int>, std::vector<ReplicaKind*>> cuts;
  for (ReplicaKind& kind : needs_.kinds())
    cuts[{kind.tensor, kind.context, kind.expert}].push_back(&kind);
  for (auto& [degrees, kinds] : cuts) cuts_.push_back(std::move(kinds));
}

bool CoverBound::is_usable(const Model& model) {
  return UnitMixes(model.units).pairs() <= kMostPairs;
}

// Whole replicas of one type after the other; of the last one, as few as are enough. `spent` is the
// cost of those that are chosen.
void CoverBound::cover(const Offer& offer, std::span<const double> price, std::size_t type,
                       double left, double spent, std::vector<int>& counts, Cover& best) const {
  if (spent >= best.cost || --best.counts_left < 0) return;
  if (type == devices_.size()) {
    if (left > kRounding || std::accumulate(counts.begin(), counts.end(), 0) < offer.fewest) return;
    best.cost = spent;
    for (std::size_t p = 0; p < counts.size(); ++p) best.used[p] = counts[p] * offer.devices;
    return;
  }
  const double cap = offer.caps[type];
  if (cap <= 0) return cover(offer, price, type + 1, left, spent, counts, best);
  const int enough = replicas_for(std::max(0.0, left), cap);
  const int needed = std::max(enough, offer.fewest);
  const int most = std::min(needed, devices_[type] / offer.devices);
  const bool last = std::all_of(offer.caps.begin() + static_cast<std::ptrdiff_t>(type) + 1,
                                offer.caps.end(), [](double other) { return other <= 0; });
  const int chosen = std::accumulate(counts.begin(), counts.end(), 0);
  for (counts[type] = last ? std::max(enough, offer.fewest - chosen) : 0; counts[type] <= most;
       ++counts[type]) {
    const double own = counts[type] * offer.devices * price[type];
    if (spent + own >= best.cost) break;
    cover(offer, price, type + 1, left - counts[type] * cap, spent + own, counts, best);
    if (last) break;
  }
  counts[type] = 0;
}

void CoverBound::cheapest(const Offer& offer, std::span<const double> price, Cover& best) const {
  const std::size_t types = devices_.size();
  best.cost = HUGE_VAL;
  best.counts_left = 0;
  best.used.assign(price.size(), 0);
  int able = 0;
  std::size_t cheapest = 0;
  double least = HUGE_VAL;   // of one sample
  double lowest = HUGE_VAL;  // of one device
  for (std::size_t p = 0; p < types; ++p) {
    if (offer.caps[p] == 0) continue;
    ++able;
    lowest = std::min(lowest, price[p]);
    const double each = offer.devices * price[p] / offer.caps[p];
    if (each < least) least = each, cheapest = p;
  }
  const int needed = std::max(offer.fewest, replicas_for(samples_, std::ranges::max(offer.caps)));
  if (able == 1) {
    best.used[cheapest] = needed * offer.devices;
    best.cost = best.used[cheapest] * price[cheapest];
  } else if (needed <= (able == 2 ? kCounted : kCountedOfMany)) {
    std::vector<int> counts(types);
    best.counts_left = kMostCounts;
    cover(offer, price, 0, samples_, 0, counts, best);
  }
  // The cheapest type and the fewest replicas cost no more than any cover.
  if (able > 1 && best.counts_left <= 0) {
    std::ranges::fill(best.used, 0);
    best.used[cheapest] = samples_ / offer.caps[cheapest] * offer.devices;
    best.cost = std::max(samples_ * least, needed * offer.devices * lowest);
  }
  for (std::size_t i = 0; i < offer.need.size(); ++i) {
    best.used[types + i] = offer.need[i];
    best.cost += offer.need[i] * price[types + i];
  }
}

bool CoverBound::too_dear(std::span<const double> price, std::vector<double>& used) {
  std::vector<double> cost(mixes_.mix_count(), HUGE_VAL);
  std::vector<Cover> covers(mixes_.mix_count());
  Cover cover;
  for (int mix = 1; mix < mixes_.mix_count() && !stop_(); ++mix)
    for (const Offer& offer : offers_[mix]) {
      if (stop_()) return false;
      cheapest(offer, price, cover);
      if (cover.cost >= cost[mix]) continue;
      cost[mix] = cover.cost;
      std::swap(covers[mix], cover);
    }
  if (stop_()) return false;
  std::vector<int> parts;
  const double least = mixes_.partition(cost, &parts);
  double all = 0;
  for (std::size_t p = 0; p < price.size(); ++p) all += price[p] * limits_[p];
  if (least > (1 + kRounding) * all) return true;
  used.assign(price.size(), 0);
  for (const int part : parts)
    for (std::size_t p = 0; p < price.size(); ++p) used[p] += covers[part].used[p];
  return false;
}

// A device is worth what it does of the model in a second.
std::vector<double> CoverBound::first_prices() {
  std::vector<double> price(devices_.size());
  for (ReplicaKind& kind : needs_.kinds()) {
    if (kind.tensor > 1 || kind.context > 1 || kind.expert != expert_) continue;
    const std::vector<UnitNeed>& needs = needs_.needs(kind, 0);
    double time = 0;
    for (int k = 0; k < mixes_.kind_count(); ++k)
      time += mixes_.units_of(mixes_.whole(), k) * needs[k].total[0];
    price[kind.type] = time > 0 ? 1 / time : 0;
  }
  const double most = std::ranges::max(price);
  for (double& each : price)
    if (each <= 0) each = most > 0 ? most : 1;
  return price;
}

// A plan of many more micro-batches than stages is short of neither time nor depth.
void CoverBound::set_places() {
  delays_.clear();
  depths_.clear();
  const int stages = std::min(problem_.model.unit_count(), problem_.cluster.device_count());
  needs_way_ = stages > kFewStages * m_;
  if (needs_way_ && fine_) delays_.assign(std::begin(kDelays), std::end(kDelays));
  if (needs_way_ && !fine_) delays_.assign(std::begin(kFewDelays), std::end(kFewDelays));
  for (int depth = std::min(m_ - 1, stages - 1); depth >= 1; depth /= fine_ ? 2 : 4)
    depths_.push_back(depth);
}

// A hand-over from a node to another takes all that crosses the cut through one adapter. The nodes
// of the ends send in one direction, all others in both.
void CoverBound::set_sends() {
  const Model& model = problem_.model;
  send_ = 0;
  crossings_ = model.unit_count();
  if (problem_.cluster.nodes.size() == 1 || !problem_.profile.collectives.empty()) return;
  double output = HUGE_VAL;
  for (int u = 0; u + 1 < model.unit_count(); ++u)
    output = std::min<double>(output, model.unit(u).output);
  int context = 1;
  for (const PlanSettings& settings : space_.settings())
    context = std::max(context, settings.context);
  double rate = 0;
  for (std::size_t type = 0; type < devices_.size(); ++type)
    rate = std::max(rate, needs_.links(static_cast<int>(type)).between);
  send_ = activation_bytes(problem_.job.precision) * output * samples_ / context / rate;
  if (m_ * send_ > step_)
    crossings_ = 0;
  else if (2 * m_ * send_ > step_)
    crossings_ = 1;
}

bool CoverBound::refutes(const Setting& setting, double step) {
  m_ = setting.micro_batches;
  expert_ = setting.expert;
  samples_ = problem_.job.global_batch / m_;
  step_ = step;
  set_places();
  set_sends();
  limits_.assign(devices_.begin(), devices_.end());
  limits_.push_back(step_ + 2 * send_);
  limits_.push_back(step_);
  limits_.push_back(crossings_ + 1);
  for (const double delay : delays_) limits_.push_back((1 - delay) * step_ + send_);
  for (const int depth : depths_) limits_.push_back(depth);
  offers_.assign(mixes_.mix_count(), {});
  caps_.clear();
  for (int mix = 1; mix < mixes_.mix_count(); ++mix) {
    if (stop_()) return false;
    list_offers(mix);
  }
  std::vector<double> price = first_prices();
  double all = 0;
  for (std::size_t p = 0; p < devices_.size(); ++p) all += price[p] * devices_[p];
  while (price.size() < limits_.size()) price.push_back(kFirstShare * all / limits_[price.size()]);
  std::vector<double> used;
  double stride = 1;
  for (int i = 0; i < (fine_ ? kPrices : kFewPrices); ++i, stride *= 0.92) {
    if (too_dear(price, used)) return true;
    if (stop_()) return false;
    bool enough = true;
    for (std::size_t p = 0; p < price.size(); ++p) enough = enough && used[p] <= limits_[p];
    if (enough) return false;
    for (std::size_t p = 0; p < price.size(); ++p)
      price[p] *= std::exp(stride * std::clamp(used[p] / limits_[p] - 1, -1.0, 1.0));
  }
  return false;
}

Seconds CoverBound::step(Range range, const Work& work, const MayTake& may_take,
                         const std::function<bool()>& stop) {
  struct Open {
    Setting setting;
    double refuted = 0;
  };
  std::vector<Open> open;
  for (const int m : divisors_of(problem_.job.global_batch))
    for (const int expert : needs_.expert_degrees())
      if (space_.pins().micro_batches.value_or(m) == m) open.push_back({{m, expert}, 0});
  stop_ = stop;
  fine_ = work.fine;
  questions_ = work.questions * static_cast<double>(needs_.expert_degrees().size());
  const auto is_over = [&] { return questions_ <= 0 || stop(); };
  double low = range.least.value;
  double high = range.most.value;
  // Where the gap is wide the first question would only show that the plan is not the fastest.
  const double first = high > kWideGap * low ? std::sqrt(low * high) : (1 - work.precision) * high;
  for (double asked = first; asked > low && !is_over(); asked = std::sqrt(low * high)) {
    const auto stays = std::ranges::find_if(open, [&](Open& own) {
      if (own.refuted >= asked || !may_take(own.setting.micro_batches, Seconds(asked)))
        return false;
      if (is_over() || !refutes(own.setting, asked)) return true;
      own.refuted = asked;
      return false;
    });
    if (stays == open.end()) {
      low = asked;
    } else {
      // What holds the bound down is asked first the next time.
      std::rotate(open.begin(), stays, stays + 1);
      high = asked;
    }
    if (high - low <= std::max(work.precision * high, work.of_gap * (range.most.value - high)))
      break;
  }
  // What was refuted for all of them before the work came to an end.
  double refuted = high;
  for (const Open& own : open)
    if (may_take(own.setting.micro_batches, Seconds(refuted)))
      refuted = std::min(refuted, own.refuted);
  return (1 - kNoise) * Seconds(std::max(low, refuted));
}

}  // namespace plait
