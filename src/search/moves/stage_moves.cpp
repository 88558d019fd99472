#include <algorithm>
#include <numeric>

#include "search/moves/moves.h"

// Moves that change degrees, and how many stages there are.
namespace plait::moves_of {
namespace {

// Tensor degree times `factor` (or over it), at the expense of the data degree.
bool trade(const Ground& ground, Draft& draft, DraftStage& stage, int factor, bool up) {
  if ((up ? stage.data : stage.tensor) % factor != 0) return false;
  stage.tensor = up ? stage.tensor * factor : stage.tensor / factor;
  stage.data = up ? stage.data / factor : stage.data * factor;
  return ground.allows_tensor(stage.tensor) && ground.share_out(draft, stage);
}

// The units of one stage are handed to two, half to each. False when there are too few.
bool halve_units(DraftStage& a, DraftStage& b) {
  for (std::size_t c = 0; c < a.units.size(); ++c) {
    b.units[c] = a.units[c] / 2;
    a.units[c] -= b.units[c];
    if (b.units[c] == 0) return false;
  }
  return true;
}

// A plan without a pipeline has one chunk.
void drop_chunks(Draft& draft) {
  if (draft.stage_count() > 1) return;
  draft.stages.front().units = {draft.stages.front().unit_count()};
  const Schedule schedule = draft.settings.schedule;
  if (schedule == Schedule::interleaved || schedule == Schedule::zb_v)
    draft.settings.schedule = Schedule::one_f_one_b;
}

bool merge(const Place& place, Draft& draft, int at) {
  DraftStage& a = draft.stages[at];
  const DraftStage& b = draft.stages[at + 1];
  for (std::size_t c = 0; c < a.units.size(); ++c) a.units[c] += b.units[c];
  a.tensor = std::gcd(a.tensor, b.tensor);
  a.recompute = most_of(a.recompute, b.recompute);
  a.devices.insert(a.devices.end(), b.devices.begin(), b.devices.end());
  a.data = static_cast<int>(a.devices.size()) / draft.group(a);
  draft.stages.erase(draft.stages.begin() + at + 1);
  return place.ground.share_out(draft, a);
}

// The first `kept` replicas keep the first units.
bool split(const Place& place, Draft& draft, int at, int kept) {
  DraftStage a = draft.stages[at];
  if (a.data == 1 && a.tensor % 2 == 0) {
    a.tensor /= 2;
    a.data = 2;
  }
  if (kept < 1 || kept >= a.data) return false;
  DraftStage b = a;
  if (!halve_units(a, b)) return false;
  const auto cut = static_cast<std::ptrdiff_t>(kept) * draft.group(a);
  b.devices.assign(a.devices.begin() + cut, a.devices.end());
  b.data = a.data - kept;
  a.devices.resize(cut);
  a.data = kept;
  draft.stages[at] = std::move(a);
  draft.stages.insert(draft.stages.begin() + at + 1, std::move(b));
  return place.ground.share_out(draft, draft.stages[at]) &&
         place.ground.share_out(draft, draft.stages[at + 1]);
}

// Where devices of another type begin, in replicas; else half.
std::vector<int> splitting_points(const Place& place, const DraftStage& stage) {
  const int data = stage.data == 1 ? 2 : stage.data;
  const int group = static_cast<int>(stage.devices.size()) / data;
  std::vector<int> points{data / 2};
  for (int d = 1; d < data && group > 0; ++d)
    if (place.ground.type(stage.devices[d * group]) !=
        place.ground.type(stage.devices[(d - 1) * group]))
      points.push_back(d);
  if (data > 2) points.push_back(1), points.push_back(data - 1);
  return points;
}

}  // namespace

void degrees(const Place& place, Visitor& visit) {
  for (const int s : place.by_load())
    for (const int factor : {2, 4})
      for (const bool up : {true, false}) {
        if (visit.skips()) continue;
        Draft draft = place.draft;
        if (trade(place.ground, draft, draft.stages[s], factor, up) && visit(std::move(draft)))
          return;
      }
}

void all_degrees(const Place& place, Visitor& visit) {
  for (const int factor : {2, 3, 4})
    for (const bool up : {true, false}) {
      if (visit.skips()) continue;
      Draft draft = place.draft;
      const bool all = std::ranges::all_of(draft.stages, [&](DraftStage& stage) {
        return trade(place.ground, draft, stage, factor, up);
      });
      if (all && visit(std::move(draft))) return;
    }
}

void merges(const Place& place, Visitor& visit) {
  const int stages = place.draft.stage_count();
  for (int s = 0; s + 1 < stages; ++s) {
    if (visit.skips()) continue;
    Draft draft = place.draft;
    const bool sound = merge(place, draft, s);
    drop_chunks(draft);
    if (sound && visit(std::move(draft))) return;
  }
  if (stages < 4 || visit.skips()) return;
  Draft halved = place.draft;
  bool sound = true;
  for (int s = 0; s + 1 < halved.stage_count(); ++s) sound &= merge(place, halved, s);
  if (sound) visit(std::move(halved));
}

void splits(const Place& place, Visitor& visit) {
  for (const int s : place.by_load())
    for (const int kept : splitting_points(place, place.draft.stages[s])) {
      if (visit.skips()) continue;
      Draft draft = place.draft;
      if (split(place, draft, s, kept) && visit(std::move(draft))) return;
    }
  if (place.draft.stage_count() == 1 || visit.skips()) return;
  Draft doubled = place.draft;
  bool sound = true;
  for (int s = 0; s < doubled.stage_count() && sound; s += 2) {
    const DraftStage& stage = doubled.stages[s];
    sound = split(place, doubled, s, std::max(1, stage.data / 2));
  }
  if (sound) visit(std::move(doubled));
}

}  // namespace plait::moves_of
