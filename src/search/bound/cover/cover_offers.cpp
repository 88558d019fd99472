#include <algorithm>
#include <cmath>

#include "search/bound/cover/cover_bound.h"

// Which stages the bound of all plans looks at.
namespace plait {
namespace {

constexpr int kLevels = 4;  // numbers of replicas that are looked at differ by a quarter
constexpr double kSharing[] = {0.95, 0.75, 0};  // of the tensor degree

}  // namespace

int CoverBound::replicas_for(double samples, double cap) const {
  return static_cast<int>(std::ceil((1 - kRounding) * samples / cap));
}

// Of the way through a stage: the slowest replica takes X at least, what the mean one
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

std::vector<double> CoverBound::add_offers(Question question, std::span<ReplicaKind*> kinds) {
  const int devices = kinds.front()->devices();
  int most = std::min(samples_, problem_.cluster.device_count() / devices);
  Offer offer{devices, 1, std::vector<double>(devices_.size()), {}};
  // The copies of a stage are a multiple of the expert degree.
  const ReplicaKind& kind = *kinds.front();
  question.replicas = std::max(question.mode.sync == Sync::alone ? 1 : 2,
                               (kind.expert + kind.context - 1) / kind.context);
  // Rings are of the first devices of tensor groups, whose others may be elsewhere.
  if (question.mode.sync == Sync::near) most = std::min(most, needs_.links(kind.type).together);
  if (question.mode.sync == Sync::alone) most = 1;
  // The more replicas there must be, the more is sent.
  for (bool more = true; more;) {
    if (most < question.replicas) return {};
    offer.caps = caps_of(question, kinds);
    const double best = std::ranges::max(offer.caps);
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
      offer.need = {way.path + 2 * nodes * send_, way.path, nodes};
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
  std::vector<Mode> modes;
  const auto add = [&](Sync sync, double sharing, double across) {
    modes.push_back({static_cast<int>(modes.size()), sync, false, sharing, across});
  };
  add(Sync::alone, 1, 0);
  add(Sync::near, 1, 0);
  if (problem_.cluster.nodes.size() == 1) return modes;
  if (tensor > 1) add(Sync::alone, 1, 1);
  double above = 1;
  for (const double sharing : kSharing) {
    const double least = std::max(sharing, 1.0 / tensor);
    const double across = tensor == 1 ? 0 : tensor * (1 - above) / (tensor - 1);
    add(Sync::far, least, across);
    if (least > sharing || tensor == 1) break;
    above = sharing;
  }
  return modes;
}

void CoverBound::list_offers(int mix) {
  for (std::vector<ReplicaKind*>& kinds : cuts_) {
    if (kinds.front()->expert != expert_) continue;
    for (int delay = static_cast<int>(delays_.size()); delay >= 0; --delay)
      for (const Mode& mode : modes_of(kinds.front()->tensor)) {
        list_depths({mix, mode, {delay, 0}}, kinds);
        if (mix != mixes_.whole() || !may_cut_weights_ || mode.sync == Sync::alone) continue;
        Mode cut = mode;
        cut.cuts_weights = true;
        list_depths({mix, cut, {delay, 0}}, kinds);
      }
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
