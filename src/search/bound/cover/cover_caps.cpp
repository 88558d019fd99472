#include <algorithm>
#include <cmath>

#include "cost/span_frame.h"
#include "search/bound/cover/cover_bound.h"

// What each replica of a stage can do at most, for the bound of all plans.
namespace plait {

int CoverBound::live(const Question& question) const {
  const int depth = question.place.depth;
  return std::min(m_, depth < std::ssize(depths_) ? depths_[depth] + 1 : 1);
}

double CoverBound::overflow(const Question& question, const ReplicaKind& kind,
                            const std::vector<UnitNeed>& needs, double again) const {
  const int most_copies = std::max(
      1, std::min(samples_, problem_.cluster.device_count() / kind.devices()) * kind.context);
  // Of experts there are fewer copies.
  const int most_of_experts = std::max(1, most_copies / kind.expert);
  const bool cut = question.mode.cuts_weights || always_cuts_weights_;
  const bool cut_gradients = cut || cuts_gradients_;
  const StateBytes& state = cut ? cut_state_ : state_;
  const auto kept = [&](bool is_cut, double plain, double experts) {
    return is_cut ? plain / most_copies + experts / most_of_experts : plain + experts;
  };
  double state_bytes = 0;
  double saved = 0;
  double loss = 0;
  double workspace = HUGE_VAL;  // of the last unit, when all is saved
  for (int k = 0; k < mixes_.kind_count(); ++k) {
    const int units = mixes_.units_of(question.mix, k);
    const UnitParameters& own = kind.parameters[k];
    double bytes = state.weight * kept(cut, own.plain, own.experts);
    if (traits_.keeps_gradients || m_ > 1)
      bytes += state.gradient * kept(cut_gradients, own.trained, own.trained_experts);
    bytes +=
        kept_optimizer_ * state.optimizer * kept(cuts_optimizer_, own.trained, own.trained_experts);
    state_bytes += units * bytes;
    saved += units * needs[k].saved[0];
    loss += units * needs[k].loss;
    if (units > 0) workspace = std::min(workspace, needs[k].workspace);
  }
  const double bytes = fixed_memory(traits_, problem_.cluster).value + live(question) * saved +
                       state_bytes + std::max(loss, again + workspace);
  const double capacity = problem_.cluster.device_types[kind.type].memory.value;
  return bytes - (1 + kRounding) * capacity * (1 - problem_.job.reserve);
}

// Any units of a stage may be computed twice, and in any of the ways that are allowed. That is a
// knapsack of the bytes that are too many, filled with what costs least time a byte; parts of units
// count, so that no choice takes less.
CoverBound::Passes CoverBound::passes(const Question& question, const ReplicaKind& kind,
                                      const std::vector<UnitNeed>& needs,
                                      const OfByte& byte) const {
  Passes out;
  struct Saving {
    double bytes = 0;  // of all units of a kind, at most
    double price = 0;  // seconds of a byte, at least
  };
  std::vector<Saving> savings;
  double again = HUGE_VAL;  // bytes of a unit that is computed twice, at least
  double beside = 0;  // where weights are gathered, what is computed twice may hide behind that
  const int in_flight = live(question);
  for (int k = 0; k < mixes_.kind_count(); ++k) {
    const int units = mixes_.units_of(question.mix, k);
    if (units == 0) continue;
    const UnitParameters& own = kind.parameters[k];
    const double gathered = own.is_table ? 0 : byte.of(own.plain, own.experts);
    const double gather = gathered * cut_state_.gathered;
    const double exchange = gather + gathered * cut_state_.sent_gradient;
    double least = HUGE_VAL;
    for (const Recompute recompute : space_.recomputes())
      least = std::min(least, needs[k].total[static_cast<int>(recompute)]);
    out.total += units * least;
    beside += units * std::max({least, needs[k].forward + exchange, gather + needs[k].backward,
                                gather + exchange});
    out.backward += units * std::max(needs[k].backward, exchange);
    Saving saving{0, HUGE_VAL};
    for (const Recompute recompute : space_.recomputes()) {
      const int r = static_cast<int>(recompute);
      const double bytes = needs[k].saved[0] - needs[k].saved[r];
      if (bytes <= 0) continue;
      const double time = needs[k].total[r] - least;
      again = std::min(again, needs[k].again[r]);
      saving.bytes = std::max(saving.bytes, in_flight * units * bytes);
      saving.price = std::min(saving.price, std::max(0.0, time) / (in_flight * bytes));
    }
    if (saving.bytes > 0) savings.push_back(saving);
  }
  double left = problem_.job.adapters ? 0 : overflow(question, kind, needs);
  if (left > 0) left = overflow(question, kind, needs, again);
  std::ranges::sort(savings, {}, &Saving::price);
  for (const Saving& saving : savings) {
    const double bytes = std::clamp(left, 0.0, saving.bytes);
    out.total += bytes * saving.price;
    left -= bytes;
  }
  out.fits = left <= 0;
  out.total = std::max(out.total, beside);
  return out;
}

CoverBound::OfByte CoverBound::of_byte(const ReplicaKind& kind, const Question& question) const {
  const double plain = of_plain_byte(kind, question);
  if (plain == 0 || kind.expert == 1) return {plain, plain};
  // Replicas that have the same experts may be anywhere.
  const int copies = question.replicas * kind.context / kind.expert;
  return {plain, (copies - 1.0) / copies / needs_.links(kind.type).any};
}

double CoverBound::of_plain_byte(const ReplicaKind& kind, const Question& question) const {
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
  const OfByte byte = of_byte(kind, question);
  const bool cuts_weights = question.mode.cuts_weights;
  double trained = 0;
  double experts = 0;
  for (int k = 0; k < mixes_.kind_count(); ++k) {
    const int units = mixes_.units_of(question.mix, k);
    trained += units * kind.parameters[k].trained;
    experts += units * kind.parameters[k].trained_experts;
  }
  const double gradients = (cuts_optimizer_ ? 1 : 2) * state_.sent_gradient;
  const bool gathers = cuts_optimizer_ && problem_.job.zero_group == 0;
  const double weights = gathers ? std::min(gradients, state_.gathered) : 0;
  const bool is_cut = cuts_weights || always_cuts_weights_;
  const double sync = is_cut ? 0 : (gradients + weights) * byte.of(trained, experts);
  const DeviceType& type = problem_.cluster.device_types[kind.type];
  const double copies = cuts_optimizer_ ? std::max(1, samples_) * kind.context : 1;
  double optimizer = 0;
  if (!problem_.job.adapters && !measured_)
    optimizer = kept_optimizer_ * (trained + experts) / copies * traffic_ /
                (type.memory_bandwidth.value * type.efficiency.optimizer);
  const int delay = question.place.delay;
  --questions_;
  const Passes own = passes(question, kind, needs, cuts_weights ? byte : OfByte{});
  if (!own.fits) return false;
  const double time = own.total;
  const double hidden = 1 - traits_.data_exposed;
  const double finish = sync - hidden * std::min(sync, time) + optimizer;
  if (m_ * time + finish > (1 + kRounding) * step_) return false;
  if (delay == std::ssize(delays_)) return true;
  const double backward = devices_.size() > 1 ? least_backward(question.mix, kind) : own.backward;
  const double summed = is_cut ? 0 : gradients * byte.of(trained, experts);
  const double after = traits_.data_exposed * sync + hidden * std::max(0.0, summed - backward);
  return m_ * backward + after + optimizer <= (1 + kRounding) * delays_[delay] * step_;
}

// A stage takes what its slowest replica takes, for all of its units forward and backward together.
// Where types differ, that may be one with few samples and a slow network: of its backward pass
// alone no more is known than that it has a sample.
double CoverBound::least_backward(int mix, const ReplicaKind& kind) {
  double least = HUGE_VAL;
  for (ReplicaKind& other : needs_.kinds()) {
    if (other.tensor != kind.tensor || other.context != kind.context || other.expert != kind.expert)
      continue;
    const std::vector<UnitNeed>& needs = needs_.needs(other, 0);
    double sum = 0;
    for (int k = 0; k < mixes_.kind_count(); ++k)
      sum += mixes_.units_of(mix, k) * needs[k].backward;
    least = std::min(least, sum);
  }
  return least;
}

// Which of a stage's replicas have tensor groups that extend over several nodes is not known where
// types differ: each of them does less by the least that it costs any type.
std::vector<double> CoverBound::caps_of(const Question& question, std::span<ReplicaKind*> kinds) {
  std::vector<double> caps(devices_.size());
  const int context = kinds.front()->context;
  const double groups = std::max(question.mode.across, least_across(question, *kinds.front()));
  // A replica takes what its first tensor group does; the others may be the ones that extend.
  const double across = 1 - context * (1 - groups);
  Question other = question;
  other.across = true;
  double lost = HUGE_VAL;
  bool none_extends = across > 0;
  for (ReplicaKind* kind : kinds) {
    double& cap = caps[kind->type];
    cap = whole_cap(question, *kind);
    if (across <= 0 || cap == 0) continue;
    const int extended = whole_cap(other, *kind);
    none_extends = none_extends && extended == 0;
    lost = std::min(lost, cap - extended);
  }
  // There is one that extends, and it has a sample.
  if (none_extends) return std::vector<double>(devices_.size());
  if (across > 0)
    for (double& cap : caps) cap = std::max(0.0, cap - across * lost);
  return caps;
}

// A ring inside a node has the first devices of all tensor groups there, of which only so many have
// room for their other devices.
double CoverBound::least_across(const Question& question, const ReplicaKind& kind) const {
  if (question.mode.sync != Sync::near || problem_.cluster.nodes.size() == 1) return 0;
  const int inside = needs_.links(kind.type).together / kind.devices();
  return std::max(0.0, 1 - static_cast<double>(inside) / question.replicas);
}

std::uint64_t CoverBound::key_of(int mix, const Question& question, const ReplicaKind& kind) {
  constexpr std::uint64_t kMostModes = 32;
  constexpr std::uint64_t kMostPlaces = 64;
  auto key = static_cast<std::uint64_t>(&kind - needs_.kinds().data());
  key = key * kMostModes + static_cast<std::uint64_t>(question.mode.row);
  key = key * kMostPlaces + static_cast<std::uint64_t>(question.place.delay);
  key = key * kMostPlaces + static_cast<std::uint64_t>(question.place.depth);
  key = 4 * key + (question.across ? 2 : 0) + (question.mode.cuts_weights ? 1 : 0);
  return key * static_cast<std::uint64_t>(mixes_.mix_count()) + static_cast<std::uint64_t>(mix);
}

// Mostly the cap is that of an easier question, and it is never above it: one unit less, fewer
// replicas, more time for the backward work, tensor groups inside nodes, gradients that are not
// summed.
int CoverBound::whole_cap(const Question& question, ReplicaKind& kind) {
  const std::vector<int>& counts = needs_.counts();
  const int end = static_cast<int>(std::ranges::upper_bound(counts, samples_) - counts.begin());
  int most = end - 1;
  const auto is_no_more_than = [&](int mix, const Question& other) {
    const auto known = caps_.find(key_of(mix, other, kind));
    if (known != caps_.end()) most = std::min(most, known->second);
  };
  is_no_more_than(question.mix, question);
  for (int k = 0; k < mixes_.kind_count(); ++k)
    if (mixes_.units_of(question.mix, k) > 0)
      is_no_more_than(mixes_.without(question.mix, k), question);
  Question easier = question;
  easier.across = false;
  if (question.across) is_no_more_than(question.mix, easier);
  ++easier.place.delay;
  is_no_more_than(question.mix, easier);
  --easier.place.delay;
  easier.mode.row = 0;
  if (question.mode.row > 0 && !question.mode.cuts_weights) is_no_more_than(question.mix, easier);
  int low = -1;  // possible
  int high = most + 1;
  for (int next = most; high - low > 1; next = (low + high) / 2)
    (is_possible(question, kind, next) ? low : high) = next;
  caps_.try_emplace(key_of(question.mix, question, kind), low);
  if (low < 0) return 0;
  if (space_.pins().micro_batch) return counts[low];
  return low + 1 == end ? samples_ : counts[low + 1] - 1;
}

}  // namespace plait
