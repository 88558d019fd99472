#include "search/uniform/division/layer_loads.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace plait {
namespace {

constexpr int kHalvings = 12;

// So many layers, with the embedding or the head where the stage has them.
UnitRange units_of(const LayerRoom& room, int layers) {
  if (room.has_last) return {room.has_first ? 0 : room.units - 1 - layers, room.units};
  return room.has_first ? UnitRange{0, layers + 1} : UnitRange{1, layers + 1};
}

bool fits(const LayerRoom& room, const UnitRange& units, int recomputed) {
  if (units.size() == 0) return true;
  std::array<RecomputedRun, 2> runs;
  std::size_t count = 0;
  // The embedding is recomputed with the first layers, for nothing.
  const int end = units.begin + (recomputed == 0 ? 0 : recomputed + (units.begin == 0 ? 1 : 0));
  if (end > units.begin) runs[count++] = {{units.begin, end}, Recompute::full};
  if (end < units.end) runs[count++] = {{end, units.end}, Recompute::none};
  const double tied = room.tied.of(units);
  for (int r = 0; r < room.frame.replica_count(); ++r)
    if (room.frame.memory(r, {runs.data(), count}, tied).spare(room.live) < Bytes(0)) return false;
  return true;
}

double time_of(const LayerLoad& stage, int n, int first) {
  return n * stage.layer + std::min(first, n) * stage.recomputed + stage.ends;
}

// The most layers for which the stage takes no longer, of those that fit with so many recomputed.
int most_within(const LayerLoad& stage, int first, double time) {
  int good = -1;
  int bad = stage.most_layers() + 1;
  while (bad - good > 1) {
    const int n = (good + bad) / 2;
    const bool is_right = stage.needed[n] <= std::min(first, n) && time_of(stage, n, first) <= time;
    (is_right ? good : bad) = n;
  }
  return good;
}

bool have_room(const std::vector<LayerLoad>& stages, int layers, int first, double time) {
  int sum = 0;
  for (const LayerLoad& stage : stages) {
    const int most = most_within(stage, first, time);
    if (most < 0) return false;
    sum += most;
  }
  return sum >= layers;
}

}  // namespace

LayerLoad layer_load(const LayerRoom& room) {
  LayerLoad load;
  int slowest = 0;
  const auto time = [&](int replica, int unit, Recompute recompute) {
    return room.frame.time_on(replica, {unit, unit + 1}, recompute).total().value;
  };
  for (int r = 1; r < room.frame.replica_count(); ++r)
    if (time(r, 1, Recompute::none) > time(slowest, 1, Recompute::none)) slowest = r;
  load.layer = time(slowest, 1, Recompute::none);
  load.recomputed = std::max(0.0, time(slowest, 1, Recompute::full) - load.layer);
  if (room.has_first) load.ends += time(slowest, 0, Recompute::none);
  if (room.has_last) load.ends += time(slowest, room.units - 1, Recompute::none);
  const int layers = room.units - 2;
  const bool has_all = room.has_first && room.has_last;
  const double in_time = std::ceil(room.most_time / load.layer);
  const int most_layers = has_all || !(in_time < layers) ? layers : static_cast<int>(in_time);
  // A single stage has all layers: what fewer would need is not asked for.
  int good = has_all ? layers - 1 : -1;  // with none recomputed
  int bad = most_layers + 1;
  for (int n = most_layers; bad - good > 1; n = (good + bad) / 2)
    (fits(room, units_of(room, n), 0) ? good : bad) = n;
  load.needed.assign(good + 1, 0);
  int recomputed = 1;
  for (int n = good + 1; n <= most_layers; ++n) {
    while (recomputed <= n && !fits(room, units_of(room, n), recomputed)) ++recomputed;
    if (recomputed > n) break;
    load.needed.push_back(recomputed);
  }
  return load;
}

double least_busiest(const std::vector<LayerLoad>& stages, int layers, int first, double most) {
  double high = 0;
  for (const LayerLoad& stage : stages) high = std::max(high, time_of(stage, layers, first));
  high = std::min(high, most);
  if (!have_room(stages, layers, first, high)) return HUGE_VAL;
  double low = high;
  for (const LayerLoad& stage : stages)
    low = std::min(low, stage.layer * layers / static_cast<double>(stages.size()));
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (have_room(stages, layers, first, middle) ? high : low) = middle;
  }
  return low;
}

}  // namespace plait
