#include <algorithm>
#include <cmath>

#include "search/bound/cover_bound.h"

// Which stages the bound of all plans looks at, and what each of their replicas can do.
namespace plait {
namespace {

constexpr int kLevels = 4;  // numbers of replicas that are looked at differ by a quarter
constexpr double kSharing[] = {0.95, 0.75, 0};  // of the tensor degree

}  // namespace

int CoverBound::replicas_for(double samples, double cap) const {
  return static_cast<int>(std::ceil((1 - kRounding) * samples / cap));
}

int CoverBound::live(const Question& question) const {
  const int depth = question.place.depth;
  return std::min(m_, depth < std::ssize(depths_) ? depths_[depth] + 1 : 1);
}

double CoverBound::overflow(const Question& question, const ReplicaKind& kind,
                            const std::vector<UnitNeed>& needs) const {
  double parameters = 0;
  double trained = 0;
  double saved = 0;
  double loss = 0;
  for (int k = 0; k < mixes_.kind_count(); ++k) {
    const int units = mixes_.units_of(question.mix, k);
    const UnitParameters& own = kind.parameters[k];
    parameters += units * (own.plain + own.experts);
    trained += units * (own.trained + own.trained_experts);
    saved += units * needs[k].saved[0];
    loss += units * needs[k].loss;
  }
  const int most_copies = std::max(
      1, std::min(samples_, problem_.cluster.device_count() / kind.devices()) * kind.context);
  const bool cut = question.mode.cuts_weights || always_cuts_weights_;
  const bool cut_gradients = cut || cuts_gradients_;
  const StateBytes& state = cut ? cut_state_ : state_;
  double bytes = traits_.workspace.value + live(question) * saved + loss;
  bytes += state.weight * parameters / (cut ? most_copies : 1);
  if (traits_.keeps_gradients || m_ > 1)
    bytes += state.gradient * trained / (cut_gradients ? most_copies : 1);
  bytes += kept_optimizer_ * state.optimizer * trained / (cuts_optimizer_ ? most_copies : 1);
  const double capacity = problem_.cluster.device_types[kind.type].memory.value;
  return bytes - (1 + kRounding) * capacity * (1 - problem_.job.reserve);
}

// Any units of a stage may be computed twice, and in any of the ways that are allowed. That is a
// knapsack of the bytes that are too many, filled with what costs least time a byte; parts of units
// count, so that no choice takes less.
CoverBound::Passes CoverBound::passes(const Question& question, const ReplicaKind& kind,
                                      const std::vector<UnitNeed>& needs, double byte) const {
  Passes out;
  struct Saving {
    double bytes = 0;  // of all units of a kind, at most
    double price = 0;  // seconds of a byte, at least
  };
  std::vector<Saving> savings;
  const int in_flight = live(question);
  for (int k = 0; k < mixes_.kind_count(); ++k) {
    const int units = mixes_.units_of(question.mix, k);
    if (units == 0) continue;
    const double gathered = kind.parameters[k].is_table ? 0 : byte * kind.parameters[k].plain;
    const double gather = gathered * cut_state_.gathered;
    const double exchange = gather + gathered * cut_state_.sent_gradient;
    double least = HUGE_VAL;
    for (const Recompute recompute : space_.recomputes())
      least = std::min(least, needs[k].total[static_cast<int>(recompute)]);
    out.total += units * std::max({least, needs[k].forward + exchange, gather + needs[k].backward,
                                   gather + exchange});
    out.backward += units * std::max(needs[k].backward, exchange);
    Saving saving{0, HUGE_VAL};
    for (const Recompute recompute : space_.recomputes()) {
      const int r = static_cast<int>(recompute);
      const double bytes = needs[k].saved[0] - needs[k].saved[r];
      if (bytes <= 0) continue;
      // Where weights are gathered, what is computed twice may hide behind that.
      const double time = byte > 0 ? 0 : needs[k].total[r] - least;
      saving.bytes = std::max(saving.bytes, in_flight * units * bytes);
      saving.price = std::min(saving.price, std::max(0.0, time) / (in_flight * bytes));
    }
    if (saving.bytes > 0) savings.push_back(saving);
  }
  double left = problem_.job.adapters ? 0 : overflow(question, kind, needs);
  if (left <= 0) return out;
  std::ranges::sort(savings, {}, &Saving::price);
  for (const Saving& saving : savings) {
    const double bytes = std::min(left, saving.bytes);
    out.total += bytes * saving.price;
    left -= bytes;
    if (left <= 0) return out;
  }
  out.fits = left <= 0;
  return out;
}

double CoverBound::of_byte(const ReplicaKind& kind, const Question& question) const {
  const Sync sync = question.mode.sync;
  if (sync == Sync::alone || problem_.job.adapters || !problem_.profile.collectives.empty())
    return 0;
  const BestLinks& links = needs_.links(kind.type);
  const double part = (question.replicas - 1.0) / question.replicas;
  // Hybrid sharding sums a part of the gradients in groups of the user's size, wherever these are.
  // A group of two or more carries half of them one way at least, groups of one all of them twice.
  if (problem_.job.zero_group > 0)
    return question.mode.cuts_weights ? 0 : std::min(part, 0.5) / links.any;
  if (sync == Sync::near) return part / links.any;
  return part * std::max(1.0, question.mode.sharing * kind.tensor) / links.between;
}

// Whether a replica can do so many samples of each micro-batch in the time of the step. Its stage
// takes as long as it does, or longer. Of its weights, what is gathered after the optimizer may
// hide behind any forward pass; so the end of its backward work counts the gradients alone.
bool CoverBound::is_possible(const Question& question, ReplicaKind& kind, int count) {
  const std::vector<UnitNeed>& needs =
      question.across ? needs_.needs_across(kind, count) : needs_.needs(kind, count);
  const double byte = of_byte(kind, question);
  const bool cuts_weights = question.mode.cuts_weights;
  double trained = 0;
  double all = 0;
  for (int k = 0; k < mixes_.kind_count(); ++k) {
    const int units = mixes_.units_of(question.mix, k);
    trained += units * kind.parameters[k].trained;
    all += units * (kind.parameters[k].trained + kind.parameters[k].trained_experts);
  }
  const double gradients = (cuts_optimizer_ ? 1 : 2) * state_.sent_gradient;
  const bool gathers = cuts_optimizer_ && problem_.job.zero_group == 0;
  const double weights = gathers ? std::min(gradients, state_.gathered) : 0;
  const bool is_cut = cuts_weights || always_cuts_weights_;
  const double sync = is_cut ? 0 : (gradients + weights) * byte * trained;
  const DeviceType& type = problem_.cluster.device_types[kind.type];
  const double copies = cuts_optimizer_ ? std::max(1, samples_) * kind.context : 1;
  double optimizer = 0;
  if (!problem_.job.adapters && !measured_)
    optimizer = kept_optimizer_ * all / copies * traffic_ /
                (type.memory_bandwidth.value * type.efficiency.optimizer);
  const int delay = question.place.delay;
  --questions_;
  const Passes own = passes(question, kind, needs, cuts_weights ? byte : 0);
  if (!own.fits) return false;
  const double time = own.total;
  const double hidden = 1 - traits_.data_exposed;
  const double finish = sync - hidden * std::min(sync, time) + optimizer;
  if (m_ * time + finish > (1 + kRounding) * step_) return false;
  if (delay == std::ssize(delays_)) return true;
  const double backward = devices_.size() > 1 ? least_backward(question.mix, kind) : own.backward;
  const double summed = is_cut ? 0 : gradients * byte * trained;
  const double after = traits_.data_exposed * sync + hidden * std::max(0.0, summed - backward);
  return m_ * backward + after + optimizer <= (1 + kRounding) * delays_[delay] * step_;
}

// A stage takes what its slowest replica takes, for all of its units forward and backward together.
// Where types differ, that may be one with few samples and a slow network: of its backward pass
// alone no more is known than that it has a sample.
double CoverBound::least_backward(int mix, const ReplicaKind& kind) {
  double least = HUGE_VAL;
  for (ReplicaKind& other : needs_.kinds()) {
    if (other.tensor != kind.tensor || other.context != kind.context) continue;
    const std::vector<UnitNeed>& needs = needs_.needs(other, 0);
    double sum = 0;
    for (int k = 0; k < mixes_.kind_count(); ++k)
      sum += mixes_.units_of(mix, k) * needs[k].backward;
    least = std::min(least, sum);
  }
  return least;
}

// The same of the way through a stage: the slowest replica takes X at least, what the mean one
// takes, and all of that but its weight gradient is on the way. Either it has the samples with
// which it would take X on the best links, or fewer, and then less to put aside.
CoverBound::Way CoverBound::way_through(const Question& question, std::span<ReplicaKind*> kinds,
                                        const Offer& offer, int count) {
  const bool mixed = devices_.size() > 1;
  const auto sum_of = [&](ReplicaKind& kind, int at, auto&& part) {
    const std::vector<UnitNeed>& needs = needs_.needs(kind, at);
    double sum = 0;
    for (int k = 0; k < mixes_.kind_count(); ++k)
      sum += mixes_.units_of(question.mix, k) * part(needs[k]);
    return sum;
  };
  const auto first = static_cast<std::size_t>(space_.recomputes().front());
  const auto total = [&](const UnitNeed& need) { return need.total[first]; };
  double slowest = HUGE_VAL;
  for (ReplicaKind* kind : kinds)
    if (offer.caps[kind->type] > 0) slowest = std::min(slowest, sum_of(*kind, count, total));
  Way way;
  for (ReplicaKind* kind : kinds) {
    if (offer.caps[kind->type] == 0) continue;
    const int fewest = mixed ? 0 : count;
    way.forward = std::min(
        way.forward, sum_of(*kind, fewest, [](const UnitNeed& need) { return need.forward; }));
    double path = sum_of(*kind, fewest, [](const UnitNeed& need) { return need.path; });
    if (mixed) {
      const std::vector<int>& counts = needs_.counts();
      int low = 0;
      int high = static_cast<int>(std::ranges::upper_bound(counts, samples_) - counts.begin()) - 1;
      while (low < high) {
        const int middle = (low + high) / 2;
        if (sum_of(*kind, middle, total) >= slowest)
          high = middle;
        else
          low = middle + 1;
      }
      const double aside = sum_of(*kind, low, [](const UnitNeed& need) { return need.aside; });
      path = std::max(path, slowest - aside);
    }
    way.path = std::min(way.path, path);
  }
  return way;
}

double CoverBound::cap(const Question& question, ReplicaKind& kind) {
  const int inside = whole_cap(question, kind);
  if (question.mode.across <= 0 || inside == 0) return inside;
  Question other = question;
  other.across = true;
  return question.mode.across * whole_cap(other, kind) + (1 - question.mode.across) * inside;
}

int CoverBound::whole_cap(const Question& question, ReplicaKind& kind) {
  const std::vector<int>& counts = needs_.counts();
  int low = -1;  // possible
  int high = static_cast<int>(std::ranges::upper_bound(counts, samples_) - counts.begin());
  const int end = high;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (is_possible(question, kind, middle) ? low : high) = middle;
  }
  if (low < 0) return 0;
  if (space_.pins().micro_batch) return counts[low];
  return low + 1 == end ? samples_ : counts[low + 1] - 1;
}

std::vector<double> CoverBound::add_offers(Question question, std::span<ReplicaKind*> kinds) {
  const int devices = kinds.front()->devices();
  int most = std::min(samples_, problem_.cluster.device_count() / devices);
  Offer offer{devices, 1, std::vector<double>(devices_.size()), {}};
  if (question.mode.sync == Sync::near) {
    // Rings are of the first devices of tensor groups, whose others may be elsewhere.
    most = std::min(most, needs_.links(kinds.front()->type).together);
    question.replicas = 2;
  } else if (question.mode.sync == Sync::far) {
    question.replicas = 2;
  } else {
    most = 1;
  }
  // The more replicas there must be, the more is sent.
  for (bool more = true; more;) {
    if (most < question.replicas) return {};
    double best = 0;
    for (ReplicaKind* kind : kinds) {
      offer.caps[kind->type] = cap(question, *kind);
      best = std::max(best, offer.caps[kind->type]);
    }
    if (best == 0) return {};
    const int needed = replicas_for(samples_, best);
    more = needed > question.replicas;
    question.replicas = std::max(question.replicas, needed);
  }
  offer.fewest = question.replicas;
  std::vector<double> caps = offer.caps;
  add_levels(question, kinds, std::move(offer), most);
  return caps;
}

// Nodes that a stage fills, one number for each way to place it. A stage that is inside a node
// fills a part of it, and the pipeline leaves a node for the next by a hand-over of all samples
// through one adapter. Unless it does so between two stages whose tensor or context groups extend
// over several nodes, of which only the first devices send: each of them saves half a hand-over at
// most.
std::vector<double> CoverBound::nodes_filled(const Question& question,
                                             std::span<ReplicaKind*> kinds, const Offer& offer) {
  const Mode& mode = question.mode;
  const int together = needs_.links(kinds.front()->type).together;
  const double part = static_cast<double>(offer.fewest) * offer.devices / together;
  if (mode.sync == Sync::far) return {0};
  if (mode.across > 0 || kinds.front()->context > 1) return {-0.5};
  std::vector<double> out;
  if (part <= 1) out.push_back(part);
  if (offer.devices == 1 || problem_.cluster.nodes.size() == 1)
    return part <= 1 ? out : std::vector{0.0};
  Question across = question;
  across.across = true;
  const bool may_extend =
      part > 1 || (mode.sync == Sync::near && std::ranges::any_of(kinds, [&](ReplicaKind* kind) {
                     return offer.caps[kind->type] > 0 && is_possible(across, *kind, 0);
                   }));
  if (may_extend) out.push_back(-0.5);
  return out;
}

void CoverBound::add_levels(const Question& question, std::span<ReplicaKind*> kinds, Offer offer,
                            int most) {
  const std::vector<int>& counts = needs_.counts();
  for (int next = 0; offer.fewest <= most; offer.fewest = next) {
    next = offer.fewest + std::max(1, offer.fewest / kLevels);
    // Some replica has as many samples as the mean, at least.
    const int replicas = std::min(most, next - 1);
    const int share = (samples_ + replicas - 1) / replicas;
    const auto count =
        std::max<std::ptrdiff_t>(1, std::ranges::upper_bound(counts, share) - counts.begin()) - 1;
    const Way way = way_through(question, kinds, offer, static_cast<int>(count));
    for (const double nodes : nodes_filled(question, kinds, offer)) {
      offer.need = {way.path + 2 * nodes * send_, nodes};
      for (int i = 0; i < std::ssize(delays_); ++i)
        offer.need.push_back(i < question.place.delay ? way.forward + nodes * send_ : 0);
      for (int i = 0; i < std::ssize(depths_); ++i)
        offer.need.push_back(i < question.place.depth ? 1 : 0);
      offers_[question.mix].push_back(offer);
    }
    if (!needs_way_) return;
  }
}

// Offers that another one of the same cut undercuts in every respect.
void CoverBound::drop_dominated(std::vector<Offer>& offers) const {
  std::vector<Offer> kept;
  const bool one_type = devices_.size() == 1;
  const auto total = [&](const Offer& offer) {
    return offer.devices * std::max(offer.fewest, replicas_for(samples_, offer.caps.front()));
  };
  const auto undercuts = [&](const Offer& a, const Offer& b) {
    if (one_type ? total(a) > total(b) : a.devices != b.devices || a.fewest > b.fewest)
      return false;
    for (std::size_t p = 0; p < a.caps.size() && !one_type; ++p)
      if (a.caps[p] < b.caps[p]) return false;
    for (std::size_t i = 0; i < a.need.size(); ++i)
      if (a.need[i] > b.need[i]) return false;
    return true;
  };
  for (const Offer& offer : offers) {
    if (std::ranges::any_of(kept, [&](const Offer& own) { return undercuts(own, offer); }))
      continue;
    std::erase_if(kept, [&](const Offer& own) { return undercuts(offer, own); });
    kept.push_back(offer);
  }
  offers = std::move(kept);
}

// The devices of a stage on a node are as many times those of one ring there as the tensor degree
// says, or more, unless tensor groups extend over several nodes: if it is s times instead of t, at
// least (t - s) / (t - 1) of them do.
std::vector<CoverBound::Mode> CoverBound::modes_of(int tensor) const {
  std::vector<Mode> modes{{Sync::alone}, {Sync::near}};
  if (problem_.cluster.nodes.size() == 1) return modes;
  if (tensor > 1) modes.push_back({Sync::alone, false, 1, 1});
  double above = 1;
  for (const double sharing : kSharing) {
    const double least = std::max(sharing, 1.0 / tensor);
    const double across = tensor == 1 ? 0 : tensor * (1 - above) / (tensor - 1);
    modes.push_back({Sync::far, false, least, across});
    if (least > sharing || tensor == 1) break;
    above = sharing;
  }
  return modes;
}

void CoverBound::list_offers(int mix) {
  for (std::vector<ReplicaKind*>& kinds : cuts_)
    for (int delay = 0; delay <= std::ssize(delays_); ++delay)
      for (const Mode& mode : modes_of(kinds.front()->tensor)) {
        list_depths({mix, mode, {delay, 0}}, kinds);
        if (mix != mixes_.whole() || !may_cut_weights_ || mode.sync == Sync::alone) continue;
        Mode cut = mode;
        cut.cuts_weights = true;
        list_depths({mix, cut, {delay, 0}}, kinds);
      }
  drop_dominated(offers_[mix]);
}

// Where memory is not short all depths are alike.
void CoverBound::list_depths(Question question, std::span<ReplicaKind*> kinds) {
  const int depths = static_cast<int>(depths_.size());
  const std::vector<double> outside = add_offers(question, kinds);
  if (depths == 0) return;
  question.place.depth = depths;
  if (add_offers(question, kinds) == outside) return;
  for (question.place.depth = 1; question.place.depth < depths; ++question.place.depth)
    add_offers(question, kinds);
}

}  // namespace plait
