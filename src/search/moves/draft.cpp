#include "search/moves/draft.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace plait {

int DraftStage::unit_count() const { return std::accumulate(units.begin(), units.end(), 0); }

namespace {

// What covers all that the chunks of a stage recompute.
UnitsRecomputed recompute_of(const Stage& stage) {
  UnitsRecomputed most;
  for (std::size_t i = 0; i < stage.spans.size();) {
    const int chunk = stage.spans[i].chunk;
    const int begin = stage.spans[i].units.begin;
    int end = begin;
    int full = begin;
    int selective = begin;
    for (; i < stage.spans.size() && stage.spans[i].chunk == chunk; ++i) {
      const Span& span = stage.spans[i];
      end = span.units.end;
      if (span.recompute == Recompute::full) full = end;
      if (span.recompute == Recompute::selective) selective = end;
    }
    const UnitsRecomputed own{
        full == end ? UnitsRecomputed::kAll : full - begin,
        selective == end ? UnitsRecomputed::kAll : std::max(0, selective - full)};
    most = most_of(most, own);
  }
  return most;
}

}  // namespace

Draft draft_of(const Plan& plan) {
  Draft draft;
  draft.settings = plan;
  draft.settings.stages.clear();
  for (const Stage& stage : plan.stages) {
    const Span& span = stage.spans.front();
    DraftStage made{ShortList<int, 4>(chunk_count(stage), 0),
                    span.tensor,
                    span.data,
                    recompute_of(stage),
                    stage.devices,
                    stage.shares};
    for (const Span& own : stage.spans) made.units[own.chunk] += own.units.size();
    draft.stages.push_back(std::move(made));
  }
  return draft;
}

namespace {

// Replicas of one weight, in order; they had the same share, and those before `next` one more.
struct Alike {
  double weight = 0;
  int share = 0;
  std::vector<int> members;
  std::size_t next = 0;

  double load() const { return (share + 1) / weight; }
};

std::vector<Alike> groups_of(const std::vector<double>& weights, const std::vector<int>& shares) {
  std::vector<Alike> groups;
  for (int i = 0; i < static_cast<int>(weights.size()); ++i) {
    auto own = std::ranges::find(groups, weights[i], &Alike::weight);
    if (own == groups.end())
      own = groups.insert(groups.end(), {.weight = weights[i], .share = shares[i]});
    own->members.push_back(i);
  }
  return groups;
}

// One by one to where the next costs least, of equals to the first.
void hand_out(int rest, const std::vector<double>& weights, std::vector<int>& shares) {
  if (rest <= 0) return;
  std::vector<Alike> groups = groups_of(weights, shares);
  for (; rest > 0; --rest) {
    Alike& own = *std::ranges::min_element(groups, {}, [](const Alike& group) {
      return std::pair(group.load(), group.members[group.next]);
    });
    ++shares[own.members[own.next]];
    if (++own.next < own.members.size()) continue;
    own.next = 0;
    ++own.share;  // of all of them
  }
}

// One by one from where the last costs most, of equals from the first.
void take_back(int rest, const std::vector<double>& weights, std::vector<int>& shares) {
  for (; rest > 0; --rest) {
    int chosen = -1;
    double most = 0;
    for (int i = 0; i < static_cast<int>(shares.size()); ++i) {
      const double load = shares[i] / weights[i];
      if (shares[i] > 1 && (chosen < 0 || load > most)) chosen = i, most = load;
    }
    --shares[chosen];
  }
}

}  // namespace

std::vector<int> apportioned(int sum, const std::vector<double>& weights) {
  const int count = static_cast<int>(weights.size());
  if (count == 0 || count > sum) return {};
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<int> out;
  out.reserve(count);
  for (const double weight : weights)
    out.push_back(std::max(1, static_cast<int>(sum * weight / total)));
  const int rest = sum - std::accumulate(out.begin(), out.end(), 0);
  hand_out(rest, weights, out);
  take_back(-rest, weights, out);
  return out;
}

bool cut_units(Draft& draft, int chunks, const std::vector<double>& targets,
               const std::vector<double>& prefix) {
  const int stages = draft.stage_count();
  const int positions = stages * chunks;
  const int units = static_cast<int>(prefix.size()) - 1;
  if (units < positions) return false;
  std::vector<int*> sizes(positions);
  std::vector<double> share(positions);
  for (int s = 0; s < stages; ++s) {
    draft.stages[s].units.assign(chunks, 0);
    for (int c = 0; c < chunks; ++c) {
      const int at = chunk_position(draft.settings.schedule, stages, s, c);
      sizes[at] = &draft.stages[s].units[c];
      share[at] = targets[s] / chunks;
    }
  }
  const double total = std::accumulate(share.begin(), share.end(), 0.0);
  double wanted = 0;
  int begin = 0;
  for (int k = 0; k < positions; ++k) {
    wanted += share[k] / total * prefix.back();
    int end = static_cast<int>(std::ranges::lower_bound(prefix, wanted) - prefix.begin());
    if (end > 0 && end <= units && wanted - prefix[end - 1] < prefix[end] - wanted) --end;
    end = std::clamp(end, begin + 1, units - (positions - 1 - k));
    if (k + 1 == positions) end = units;
    *sizes[k] = end - begin;
    begin = end;
  }
  return true;
}

std::vector<double> balanced_weights(const Draft& draft, const Estimate& cost,
                                     const std::vector<double>& prefix) {
  const int stages = draft.stage_count();
  const int chunks = draft.chunks();
  std::vector<double> weight(stages);
  std::vector<std::pair<int, int>> at(static_cast<std::size_t>(stages) * chunks);  // stage, chunk
  for (int s = 0; s < stages; ++s)
    for (int c = 0; c < chunks; ++c)
      at[chunk_position(draft.settings.schedule, stages, s, c)] = {s, c};
  int begin = 0;
  for (const auto& [s, c] : at) {
    const int end = begin + draft.stages[s].units[c];
    weight[s] += prefix[end] - prefix[begin];
    begin = end;
  }
  // The level T at which sum over stages of (T - finish) / (time of a weight) is all there is.
  double speed = 0;
  double lost = 0;
  std::vector<double> rate(stages);
  std::vector<double> finish(stages);
  for (int s = 0; s < stages; ++s) {
    const StageCost& stage = cost.stages[s];
    const Seconds pass = stage.forward_total() + stage.backward_total();
    rate[s] = weight[s] / (draft.settings.micro_batches * std::max(pass.value, 1e-12));
    finish[s] = (stage.gradient_sync + stage.optimizer).value;
    speed += rate[s];
    lost += rate[s] * finish[s];
  }
  const double level = (prefix.back() + lost) / speed;
  for (int s = 0; s < stages; ++s)
    weight[s] = std::max(1e-3 * prefix.back() / stages, rate[s] * (level - finish[s]));
  return weight;
}

}  // namespace plait
