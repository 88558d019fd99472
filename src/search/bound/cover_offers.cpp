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

bool CoverBound::fits(const Question& question, const ReplicaKind& kind,
                      const std::vector<UnitNeed>& needs, int recompute) const {
  if (problem_.job.adapters) return true;
  double parameters = 0;
  double saved = 0;
  double loss = 0;
  for (int k = 0; k < mixes_.kind_count(); ++k) {
    const int units = mixes_.units_of(question.mix, k);
    parameters += units * (kind.parameters[k].plain + kind.parameters[k].experts);
    saved += units * needs[k].saved[recompute];
    loss += units * needs[k].loss;
  }
  const int depth = question.place.depth;
  const int live = std::min(m_, depth < std::ssize(depths_) ? depths_[depth] + 1 : 1);
  const int most_copies = std::max(
      1, std::min(samples_, problem_.cluster.device_count() / kind.devices()) * kind.context);
  const double shard = parameters / most_copies;
  const bool cut = question.mode.cuts_weights || always_cuts_weights_;
  const bool cut_gradients = cut || cuts_gradients_;
  const StateBytes& state = cut ? cut_state_ : state_;
  double bytes = traits_.workspace.value + live * saved + loss;
  bytes += state.weight * (cut ? shard : parameters);
  if (traits_.keeps_gradients || m_ > 1)
    bytes += state.gradient * (cut_gradients ? shard : parameters);
  bytes += state.optimizer * (cuts_optimizer_ ? shard : parameters);
  const double capacity = problem_.cluster.device_types[kind.type].memory.value;
  return bytes <= (1 + kRounding) * capacity * (1 - problem_.job.reserve);
}

double CoverBound::of_byte(const ReplicaKind& kind, const Question& question) const {
  const Sync sync = question.mode.sync;
  if (sync == Sync::alone || problem_.job.adapters || !problem_.profile.collectives.empty())
    return 0;
  const BestLinks& links = needs_.links(kind.type);
  const double part = (question.replicas - 1.0) / question.replicas;
  if (sync == Sync::near) return part / links.any;
  return part * std::max(1.0, question.mode.sharing * kind.tensor) / links.between;
}

// Whether a replica can do so many samples of each micro-batch in the time of the step.
bool CoverBound::is_possible(const Question& question, ReplicaKind& kind, int count) {
  const std::vector<UnitNeed>& needs =
      question.across ? needs_.needs_across(kind, count) : needs_.needs(kind, count);
  const double byte = of_byte(kind, question);
  const bool cuts_weights = question.mode.cuts_weights;
  double parameters = 0;
  double all = 0;
  for (int k = 0; k < mixes_.kind_count(); ++k) {
    const int units = mixes_.units_of(question.mix, k);
    parameters += units * kind.parameters[k].plain;
    all += units * (kind.parameters[k].plain + kind.parameters[k].experts);
  }
  const double ways =
      cuts_optimizer_ ? std::min(2 * state_.sent_gradient, state_.sent_gradient + state_.gathered)
                      : 2 * state_.sent_gradient;
  const double sync = cuts_weights || always_cuts_weights_ ? 0 : ways * byte * parameters;
  const DeviceType& type = problem_.cluster.device_types[kind.type];
  const double copies = cuts_optimizer_ ? std::max(1, samples_) * kind.context : 1;
  double optimizer = 0;
  if (!problem_.job.adapters && !measured_)
    optimizer = all / copies * traffic_ / (type.memory_bandwidth.value * type.efficiency.optimizer);
  const int delay = question.place.delay;
  const double late = (delay < std::ssize(delays_) ? delays_[delay] : 1) * step_;
  --questions_;
  for (const Recompute recompute : space_.recomputes()) {
    const int r = static_cast<int>(recompute);
    double forward = 0;
    double backward = 0;
    for (int k = 0; k < mixes_.kind_count(); ++k) {
      const int units = mixes_.units_of(question.mix, k);
      const bool gathers = cuts_weights && !kind.parameters[k].is_table;
      const double gather = gathers ? byte * kind.parameters[k].plain * cut_state_.gathered : 0;
      const double scatter =
          gathers ? byte * kind.parameters[k].plain * cut_state_.sent_gradient : 0;
      forward += units * std::max(needs[k].forward[r], gather);
      backward += units * std::max(needs[k].backward[r], gather + scatter);
    }
    const double time = forward + backward;
    const double finish = sync - (1 - traits_.data_exposed) * std::min(sync, time) + optimizer;
    if (m_ * time + finish > (1 + kRounding) * step_) continue;
    if (m_ * backward + finish > (1 + kRounding) * late) continue;
    if (fits(question, kind, needs, r)) return true;
  }
  return false;
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
    double path = HUGE_VAL;
    double forward = HUGE_VAL;
    for (ReplicaKind* kind : kinds) {
      if (offer.caps[kind->type] == 0) continue;
      const std::vector<UnitNeed>& needs = needs_.needs(*kind, static_cast<int>(count));
      double both = 0;
      double there = 0;
      for (int k = 0; k < mixes_.kind_count(); ++k) {
        both += mixes_.units_of(question.mix, k) * needs[k].path;
        there += mixes_.units_of(question.mix, k) * needs[k].forward[0];
      }
      path = std::min(path, both);
      forward = std::min(forward, there);
    }
    // Stages that are inside a node fill it, and then hand over to another one.
    const Mode& mode = question.mode;
    const int together = needs_.links(kinds.front()->type).together;
    const bool inside =
        (mode.sync == Sync::alone || (mode.sync == Sync::near && offer.devices == 1)) &&
        mode.across <= 0 && kinds.front()->context == 1 && offer.devices <= together;
    const double nodes =
        inside ? static_cast<double>(offer.fewest) * offer.devices / together : 0.0;
    path += 2 * nodes * send_;
    forward += nodes * send_;
    offer.need = {path, nodes};
    for (int i = 0; i < std::ssize(delays_); ++i)
      offer.need.push_back(i < question.place.delay ? forward : 0);
    for (int i = 0; i < std::ssize(depths_); ++i)
      offer.need.push_back(i < question.place.depth ? 1 : 0);
    offers_[question.mix].push_back(offer);
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
