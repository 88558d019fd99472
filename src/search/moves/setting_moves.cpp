#include <algorithm>

#include "search/moves/moves.h"

// Moves that change what stages do, not who does it.
namespace plait::moves_of {
namespace {

// The numbers of units in execution order.
std::vector<int*> in_order(Draft& draft) {
  const int stages = draft.stage_count();
  std::vector<int*> at(static_cast<std::size_t>(stages) * draft.chunks());
  for (int s = 0; s < stages; ++s)
    for (int c = 0; c < draft.chunks(); ++c)
      at[chunk_position(draft.settings.schedule, stages, s, c)] = &draft.stages[s].units[c];
  return at;
}

bool shift(const Place& place, int from, int to, int by, Visitor& visit) {
  if (visit.skips()) return false;
  Draft draft = place.draft;
  const std::vector<int*> at = in_order(draft);
  if (*at[from] <= by) return false;
  *at[from] -= by;
  *at[to] += by;
  return visit(std::move(draft));
}

int chunks_of(Schedule schedule, int chunks) {
  if (schedule == Schedule::zb_v) return 2;
  return schedule == Schedule::interleaved ? chunks : 1;
}

}  // namespace

// Units from the busiest stage to any other (those between are shifted along), then over each cut.
void cuts(const Place& place, Visitor& visit) {
  if (!place.ground.pins().stages.empty()) return;
  const int stages = place.draft.stage_count();
  const int positions = stages * place.draft.chunks();
  const std::vector<int> order = place.by_load();
  const int busy = std::min(stages, 2);
  for (int b = 0; b < busy; ++b)
    for (int c = 0; c < place.draft.chunks(); ++c) {
      const int from = chunk_position(place.draft.settings.schedule, stages, order[b], c);
      for (int i = stages - 1; i > b; --i)
        for (int to_chunk = 0; to_chunk < place.draft.chunks(); ++to_chunk) {
          const int to = chunk_position(place.draft.settings.schedule, stages, order[i], to_chunk);
          if (shift(place, from, to, 1, visit)) return;
        }
    }
  for (int k = 0; k + 1 < positions; ++k)
    for (const int by : {1, 2})
      if (shift(place, k, k + 1, by, visit) || shift(place, k + 1, k, by, visit)) return;
}

void schedules(const Place& place, Visitor& visit) {
  if (place.draft.stage_count() < 2) return;
  for (const Schedule schedule : place.ground.schedules()) {
    const bool interleaved = schedule == Schedule::interleaved;
    for (const int chunks : place.ground.chunk_counts()) {
      const int own = chunks_of(schedule, chunks);
      if (!interleaved && chunks != place.ground.chunk_counts().front()) break;
      if (schedule == place.draft.settings.schedule && own == place.draft.chunks()) continue;
      if (visit.skips()) continue;
      Draft draft = place.draft;
      draft.settings.schedule = schedule;
      std::vector<double> targets =
          balanced_weights(place.draft, place.cost, place.ground.prefix());
      if (!cut_units(draft, own, targets, place.ground.prefix())) continue;
      if (visit(std::move(draft))) return;
    }
  }
}

void micro_batches(const Place& place, Visitor& visit) {
  const std::vector<int>& all = place.ground.micro_batches();
  const auto at = std::ranges::find(all, place.draft.settings.micro_batches) - all.begin();
  for (const int by : {1, -1, 2, -2, 3, -3}) {
    const auto next = at + by;
    if (next < 0 || next >= std::ssize(all) || visit.skips()) continue;
    Draft draft = place.draft;
    draft.settings.micro_batches = all[next];
    if (place.ground.share_out(draft) && visit(std::move(draft))) return;
  }
}

void recomputes(const Place& place, Visitor& visit) {
  const std::vector<Recompute>& all = place.ground.recomputes();
  for (const Recompute kind : all) {
    if (visit.skips()) continue;
    const UnitsRecomputed recompute = UnitsRecomputed::all(kind);
    Draft draft = place.draft;
    bool differs = false;
    for (DraftStage& stage : draft.stages) {
      differs |= stage.recompute != recompute;
      stage.recompute = recompute;
    }
    if (differs && visit(std::move(draft))) return;
  }
  if (place.draft.stage_count() == 1) return;
  for (const int s : place.by_load())
    for (const Recompute kind : all) {
      const UnitsRecomputed recompute = UnitsRecomputed::all(kind);
      if (place.draft.stages[s].recompute == recompute || visit.skips()) continue;
      Draft draft = place.draft;
      draft.stages[s].recompute = recompute;
      if (visit(std::move(draft))) return;
    }
}

void zeros(const Place& place, Visitor& visit) {
  for (const ZeroStage zero : place.ground.zeros()) {
    if (zero == place.draft.settings.zero || visit.skips()) continue;
    Draft draft = place.draft;
    draft.settings.zero = zero;
    if (visit(std::move(draft))) return;
  }
}

void experts(const Place& place, Visitor& visit) {
  if (place.ground.pins().expert) return;
  for (const int expert : {place.draft.settings.expert * 2, place.draft.settings.expert / 2}) {
    if (expert < 1 || !place.ground.allows_expert(expert) || visit.skips()) continue;
    Draft draft = place.draft;
    draft.settings.expert = expert;
    if (visit(std::move(draft))) return;
  }
}

// Samples from the replicas of one type to those of another, for mixed stages.
void shares(const Place& place, Visitor& visit) {
  const Ground& ground = place.ground;
  for (const int s : place.by_load()) {
    const DraftStage& stage = place.draft.stages[s];
    if (stage.shares.empty() && ground.micro_batch(place.draft) % stage.data != 0) continue;
    std::vector<int> own = stage.shares;
    if (own.empty()) own.assign(stage.data, ground.micro_batch(place.draft) / stage.data);
    const int group = place.draft.group(stage);
    const auto type = [&](int d) { return ground.type(stage.devices[d * group]); };
    std::vector<int> first;  // replica of each type
    for (int d = 0; d < stage.data; ++d)
      if (std::ranges::none_of(first, [&](int f) { return type(f) == type(d); }))
        first.push_back(d);
    for (const int a : first)
      for (const int b : first) {
        if (a == b) continue;
        for (const double by : {1.1, 1.3}) {
          if (visit.skips()) continue;
          std::vector<double> weights;
          for (int d = 0; d < stage.data; ++d)
            weights.push_back(own[d] * (type(d) == type(a) ? by : 1.0));
          Draft draft = place.draft;
          draft.stages[s].shares = apportioned(ground.micro_batch(draft), weights);
          if (draft.stages[s].shares == own || draft.stages[s].shares.empty()) continue;
          if (visit(std::move(draft))) return;
        }
        if (visit.skips()) continue;
        // One sample from the replica that has most to the one that has least.
        int most = b;
        int least = a;
        for (int d = 0; d < stage.data; ++d) {
          if (type(d) == type(b) && own[d] > own[most]) most = d;
          if (type(d) == type(a) && own[d] < own[least]) least = d;
        }
        if (own[most] < 2) continue;
        Draft draft = place.draft;
        draft.stages[s].shares = own;
        --draft.stages[s].shares[most];
        ++draft.stages[s].shares[least];
        if (visit(std::move(draft))) return;
      }
  }
}

}  // namespace plait::moves_of
