#include "search/moves/draft.h"

#include <algorithm>
#include <numeric>

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
    DraftStage made{std::vector<int>(chunk_count(stage)),
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

std::vector<int> apportioned(int sum, const std::vector<double>& weights) {
  const int count = static_cast<int>(weights.size());
  if (count == 0 || count > sum) return {};
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<int> out;
  for (const double weight : weights)
    out.push_back(std::max(1, static_cast<int>(sum * weight / total)));
  int rest = sum - std::accumulate(out.begin(), out.end(), 0);
  // One by one to where the next costs least, or back from where the last costs most.
  while (rest != 0) {
    const int by = rest > 0 ? 1 : -1;
    int chosen = -1;
    double least = 0;
    for (int i = 0; i < count; ++i) {
      if (out[i] + by < 1) continue;
      const double load = rest > 0 ? (out[i] + 1) / weights[i] : -out[i] / weights[i];
      if (chosen < 0 || load < least) chosen = i, least = load;
    }
    out[chosen] += by;
    rest -= by;
  }
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
  int begin = 0;
  for (int k = 0; k < stages * chunks; ++k)
    for (int s = 0; s < stages; ++s)
      for (int c = 0; c < chunks; ++c)
        if (chunk_position(draft.settings.schedule, stages, s, c) == k) {
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
