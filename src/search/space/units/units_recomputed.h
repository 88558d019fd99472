#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <span>

#include "cost/span_frame.h"

namespace plait {

// How a run of units is recomputed: its first units in full, those that follow selectively, the
// others not at all. Numbers beyond the length of the run mean all that is left of it, so that a
// run that is recomputed throughout may become longer or shorter.
struct UnitsRecomputed {
  static constexpr int kAll = 1 << 30;
  int full = 0;
  int selective = 0;

  static constexpr UnitsRecomputed all(Recompute recompute) {
    return {recompute == Recompute::full ? kAll : 0, recompute == Recompute::selective ? kAll : 0};
  }
  // Parts of one kind, at most three.
  struct Runs {
    std::array<RecomputedRun, 3> list;
    int count = 0;
    const RecomputedRun* begin() const { return list.data(); }
    const RecomputedRun* end() const { return list.data() + count; }
  };
  Runs of(const UnitRange& units) const {
    const int first = units.begin + std::min(full, units.size());
    const int second = first + std::min(selective, units.end - first);
    Runs runs;
    const auto add = [&](int begin, int end, Recompute recompute) {
      if (begin < end) runs.list[runs.count++] = {{begin, end}, recompute};
    };
    add(units.begin, first, Recompute::full);
    add(first, second, Recompute::selective);
    add(second, units.end, Recompute::none);
    return runs;
  }
  // What covers both.
  friend UnitsRecomputed most_of(const UnitsRecomputed& a, const UnitsRecomputed& b) {
    return {std::max(a.full, b.full), std::max(a.selective, b.selective)};
  }
  friend auto operator<=>(const UnitsRecomputed&, const UnitsRecomputed&) = default;
};

// The first so many layers in full, the others not at all; all units where these are all layers.
UnitsRecomputed first_layers(const Model& model, const UnitRange& units, int layers);
// The same, for less; `starts` are those of the model's layers.
UnitsRecomputed first_layers(std::span<const int> starts, const UnitRange& units, int layers);

// Recomputes the first so many layers of every chunk of a plan in full, and the others not at all.
void recompute_first(const Model& model, int layers, Plan& plan);
// Recomputes each chunk of a stage so.
void set_recompute(const UnitsRecomputed& recompute, Stage& stage);

}  // namespace plait
