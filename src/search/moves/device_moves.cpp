#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "search/moves/moves.h"

// Moves that change which devices run which stage.
namespace plait::moves_of {
namespace {

constexpr int kMostRotations = 24;

std::vector<DeviceId> all_devices(const Draft& draft) {
  std::vector<DeviceId> all;
  for (const DraftStage& stage : draft.stages)
    all.insert(all.end(), stage.devices.begin(), stage.devices.end());
  return all;
}

// Hands the devices out again, in this order.
void deal(Draft& draft, const std::vector<DeviceId>& all) {
  auto next = all.begin();
  for (DraftStage& stage : draft.stages) {
    const auto size = std::ssize(stage.devices);
    stage.devices.assign(next, next + size);
    next += size;
  }
}

bool share_and_visit(const Place& place, Draft&& draft, Visitor& visit) {
  return place.ground.share_out(draft) && visit(std::move(draft));
}

// The first replica of every stage, the second of every stage, ..
void deal_by_replica(Draft& draft, const std::vector<DeviceId>& all) {
  auto next = all.begin();
  std::vector<std::size_t> sizes;
  for (DraftStage& stage : draft.stages) {
    sizes.push_back(stage.devices.size());
    stage.devices.clear();
  }
  while (next != all.end())
    for (std::size_t s = 0; s < sizes.size(); ++s) {
      DraftStage& stage = draft.stages[s];
      if (stage.devices.size() == sizes[s]) continue;
      stage.devices.insert(stage.devices.end(), next, next + draft.group(stage));
      next += draft.group(stage);
    }
}

// Takes `count` devices of a type from a stage, its last ones; false when it has too few, or would
// have none left.
bool take(const Place& place, Draft& draft, DraftStage& stage, int type,
          std::vector<DeviceId>& taken, int count) {
  const int group = draft.group(stage);
  int missing = count;
  for (int d = stage.data - 1; d >= 0 && missing > 0; --d) {
    auto* const begin = stage.devices.begin() + static_cast<std::ptrdiff_t>(d) * group;
    if (place.ground.type(*begin) != type) continue;
    taken.insert(taken.begin(), begin, begin + group);
    stage.devices.erase(begin, begin + group);
    --stage.data;
    missing -= group;
  }
  return missing == 0 && stage.data > 0 && place.ground.share_out(draft, stage);
}

bool give(const Place& place, Draft& draft, DraftStage& stage, const std::vector<DeviceId>& given) {
  stage.devices.insert(stage.devices.end(), given.begin(), given.end());
  stage.data += static_cast<int>(given.size()) / draft.group(stage);
  return place.ground.share_out(draft, stage);
}

// In ascending order.
ShortList<int, 8> types_of(const Place& place, const DraftStage& stage) {
  ShortList<int, 8> types;
  for (const DeviceId id : stage.devices) {
    const int type = place.ground.type(id);
    if (std::ranges::find(types, type) == types.end()) types.push_back(type);
  }
  std::ranges::sort(types);
  return types;
}

std::vector<DeviceId> idle_devices(const Place& place) {
  std::vector<bool> used(place.ground.cluster().devices.size());
  for (const DraftStage& stage : place.draft.stages)
    for (const DeviceId id : stage.devices) used[index(id)] = true;
  std::vector<DeviceId> idle;
  for (std::size_t i = 0; i < used.size(); ++i)
    if (!used[i]) idle.push_back(DeviceId(static_cast<int>(i)));
  return idle;
}

}  // namespace

void rotations(const Place& place, Visitor& visit) {
  const std::vector<DeviceId> all = all_devices(place.draft);
  const int count = static_cast<int>(all.size());
  int step = place.draft.group(place.draft.stages.front());
  for (const DraftStage& stage : place.draft.stages)
    step = std::min(step, place.draft.group(stage));
  for (int i = 1; i <= kMostRotations / 2 && i * step <= count / 2; ++i)
    for (const int by : {i * step, count - i * step}) {
      if (visit.skips()) continue;
      std::vector<DeviceId> turned = all;
      std::rotate(turned.begin(), turned.begin() + by, turned.end());
      Draft draft = place.draft;
      deal(draft, turned);
      if (share_and_visit(place, std::move(draft), visit)) return;
    }
}

// Regular ways to lay the stages over the nodes: each on neighbouring devices, or its replicas
// apart and the pipeline inside; forwards and backwards.
void layouts(const Place& place, Visitor& visit) {
  std::vector<DeviceId> all = all_devices(place.draft);
  const auto by_speed = [&](DeviceId a, DeviceId b) {
    const double fast = place.ground.speed(place.ground.type(a));
    const double other = place.ground.speed(place.ground.type(b));
    return fast != other ? fast > other : a < b;
  };
  for (const bool sorted : {false, true}) {
    if (sorted)
      std::ranges::sort(all, by_speed);
    else
      std::ranges::sort(all);
    for (const bool reversed : {false, true}) {
      if (!visit.skips()) {
        Draft together = place.draft;
        deal(together, all);
        if (reversed) {
          // The stages backwards, their replicas as they were.
          std::vector<DeviceId> order = all;
          std::ranges::reverse(order);
          deal(together, order);
          for (DraftStage& stage : together.stages) std::ranges::reverse(stage.devices);
        }
        if (share_and_visit(place, std::move(together), visit)) return;
      }
      if (reversed || visit.skips()) continue;
      Draft apart = place.draft;
      deal_by_replica(apart, all);
      if (share_and_visit(place, std::move(apart), visit)) return;
    }
  }
  if (visit.skips()) return;
  Draft inside = place.draft;
  for (DraftStage& stage : inside.stages) std::ranges::sort(stage.devices);
  share_and_visit(place, std::move(inside), visit);
}

// Two stages change places, with their units or without, or one is put elsewhere.
void stage_swaps(const Place& place, Visitor& visit) {
  const int stages = place.draft.stage_count();
  for (const int a : place.by_load())
    for (int b = 0; b < stages; ++b) {
      if (a == b) continue;
      if (!visit.skips()) {
        Draft draft = place.draft;
        std::swap(draft.stages[a], draft.stages[b]);
        if (visit(std::move(draft))) return;
      }
      if (!visit.skips()) {
        Draft draft = place.draft;
        std::swap(draft.stages[a], draft.stages[b]);
        std::swap(draft.stages[a].units, draft.stages[b].units);
        std::swap(draft.stages[a].recompute, draft.stages[b].recompute);
        if (visit(std::move(draft))) return;
      }
      if (std::abs(a - b) < 2 || visit.skips()) continue;
      Draft draft = place.draft;
      const auto first = draft.stages.begin();
      if (a < b)
        std::rotate(first + a, first + a + 1, first + b + 1);
      else
        std::rotate(first + b, first + a, first + a + 1);
      if (visit(std::move(draft))) return;
    }
}

// Two nodes change places.
void node_swaps(const Place& place, Visitor& visit) {
  const std::vector<std::vector<DeviceId>>& devices = place.ground.devices_of_nodes();
  const int nodes = static_cast<int>(devices.size());
  std::map<std::size_t, int> to_come;  // nodes of a size, those before and at `a` left out
  for (const auto& own : devices) ++to_come[own.size()];
  for (int a = 0; a < nodes; ++a) {
    if (visit.skips(--to_come[devices[a].size()])) continue;
    for (int b = a + 1; b < nodes; ++b) {
      if (devices[a].size() != devices[b].size() || visit.skips()) continue;
      Draft draft = place.draft;
      for (DraftStage& stage : draft.stages)
        for (DeviceId& id : stage.devices) {
          const int node = place.ground.node(id);
          if (node != a && node != b) continue;
          const int first = index(devices[node].front());
          id = devices[node == a ? b : a][index(id) - first];
        }
      if (share_and_visit(place, std::move(draft), visit)) return;
    }
  }
}

// Replicas of one stage become some of another, the busiest first.
void replica_moves(const Place& place, Visitor& visit) {
  const std::vector<int> order = place.by_load();
  const int stages = place.draft.stage_count();
  for (int b = 0; b < std::min(stages, 3); ++b)
    for (int i = stages - 1; i >= 0; --i) {
      const int to = order[b];
      const int from = order[i];
      if (from == to) continue;
      for (const int type : types_of(place, place.draft.stages[from])) {
        if (visit.skips()) continue;
        Draft draft = place.draft;
        std::vector<DeviceId> moved;
        const int count = std::lcm(draft.group(draft.stages[from]), draft.group(draft.stages[to]));
        if (take(place, draft, draft.stages[from], type, moved, count) &&
            give(place, draft, draft.stages[to], moved) && visit(std::move(draft)))
          return;
      }
    }
}

// Stages exchange replicas of different types.
void replica_swaps(const Place& place, Visitor& visit) {
  if (place.ground.cluster().device_types.size() < 2) return;
  const int stages = place.draft.stage_count();
  const std::vector<int> order = place.by_load();
  for (int i = 0; i < std::min(stages, 4); ++i)
    for (int b = 0; b < stages; ++b) {
      const int a = order[i];
      if (a == b) continue;
      for (const int own : types_of(place, place.draft.stages[a]))
        for (const int other : types_of(place, place.draft.stages[b])) {
          if (own == other || visit.skips()) continue;
          Draft draft = place.draft;
          const int count = std::lcm(draft.group(draft.stages[a]), draft.group(draft.stages[b]));
          DraftStage& left = draft.stages[a];
          DraftStage& right = draft.stages[b];
          std::vector<DeviceId> from_left;
          std::vector<DeviceId> from_right;
          // Both are given something before something is taken: none is ever empty.
          for (auto [stage, type, taken] :
               {std::tuple(&left, own, &from_left), std::tuple(&right, other, &from_right)})
            for (std::size_t d = stage->devices.size(); d > 0 && std::ssize(*taken) < count;) {
              d -= draft.group(*stage);
              auto* const begin = stage->devices.begin() + static_cast<std::ptrdiff_t>(d);
              if (place.ground.type(*begin) == type)
                taken->insert(taken->begin(), begin, begin + draft.group(*stage));
            }
          if (std::ssize(from_left) != count || std::ssize(from_right) != count) continue;
          for (int k = 0; k < count; ++k) {
            std::ranges::replace(left.devices, from_left[k], from_right[k]);
            std::ranges::replace(right.devices, from_right[k], from_left[k]);
          }
          if (share_and_visit(place, std::move(draft), visit)) return;
        }
    }
}

void idle_replicas(const Place& place, Visitor& visit) {
  for (int s = 0; s < place.draft.stage_count(); ++s)
    for (const int type : types_of(place, place.draft.stages[s])) {
      if (visit.skips()) continue;
      Draft draft = place.draft;
      std::vector<DeviceId> dropped;
      const int group = draft.group(draft.stages[s]);
      if (take(place, draft, draft.stages[s], type, dropped, group) && visit(std::move(draft)))
        return;
    }
}

// Replicas that have a device on a node stop; stages that have no others go to their neighbours.
void idle_nodes(const Place& place, Visitor& visit) {
  const int nodes = static_cast<int>(place.ground.cluster().nodes.size());
  for (int node = 0; node < nodes && nodes > 1; ++node) {
    if (visit.skips()) continue;
    Draft draft = place.draft;
    for (int s = draft.stage_count() - 1; s >= 0; --s) {
      DraftStage& stage = draft.stages[s];
      const int group = draft.group(stage);
      ShortList<DeviceId, 8> kept;
      for (int d = 0; d < stage.data; ++d) {
        auto* const begin = stage.devices.begin() + static_cast<std::ptrdiff_t>(d) * group;
        const auto is_there = [&](DeviceId id) { return place.ground.node(id) == node; };
        if (std::none_of(begin, begin + group, is_there))
          kept.insert(kept.end(), begin, begin + group);
      }
      if (kept.size() == stage.devices.size()) continue;
      stage.devices = std::move(kept);
      stage.data = static_cast<int>(stage.devices.size()) / group;
      if (stage.data > 0 || draft.stage_count() == 1) continue;
      DraftStage& heir = draft.stages[s == 0 ? 1 : s - 1];
      for (std::size_t c = 0; c < stage.units.size(); ++c) heir.units[c] += stage.units[c];
      draft.stages.erase(draft.stages.begin() + s);
    }
    const bool empty = draft.stages.front().devices.empty();
    const bool chunked = draft.stage_count() == 1 && draft.chunks() > 1;
    if (!empty && !chunked && share_and_visit(place, std::move(draft), visit)) return;
  }
}

// Idle devices join a stage or make one of their own.
void awakenings(const Place& place, Visitor& visit) {
  const std::vector<DeviceId> idle = idle_devices(place);
  for (const int s : place.by_load()) {
    const int group = place.draft.group(place.draft.stages[s]);
    const int most = static_cast<int>(idle.size()) / group;
    for (const int replicas : std::set<int>{1, most}) {
      if (replicas < 1 || replicas > most) continue;
      const std::vector<DeviceId> woken(
          idle.begin(), idle.begin() + static_cast<std::ptrdiff_t>(replicas) * group);
      if (!visit.skips()) {
        Draft joined = place.draft;
        if (give(place, joined, joined.stages[s], woken) && visit(std::move(joined))) return;
      }
      for (const int after : {0, 1}) {
        if (visit.skips()) continue;
        Draft draft = place.draft;
        DraftStage added = draft.stages[s];
        added.devices = woken;
        added.data = replicas;
        for (std::size_t c = 0; c < added.units.size(); ++c) {
          added.units[c] = draft.stages[s].units[c] / 2;
          draft.stages[s].units[c] -= added.units[c];
        }
        draft.stages.insert(draft.stages.begin() + s + after, std::move(added));
        if (share_and_visit(place, std::move(draft), visit)) return;
      }
    }
  }
}

}  // namespace plait::moves_of
