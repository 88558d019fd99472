#include "search/uniform/division/stage_divisions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "search/space/units/units_recomputed.h"

namespace plait {
namespace {

struct ChunkCost {
  double forward = 0;
  double backward = 0;
  double finish = 0;
};

// What a chunk of so many layers costs, with the embedding or the head where it has them.
class ChunkCosts {
 public:
  explicit ChunkCosts(const DividedStage& stage)
      : stage_(stage), frame_(stage.runs.frame()), rates_(frame_.finish_rates()) {
    if (!stage.layers.equal) set_least();
  }

  const ChunkCost& of(int layers, bool first, bool last) {
    auto& known = known_[first ? 1 : last ? 2 : 0];
    if (static_cast<int>(known.size()) <= layers) known.resize(layers + 1);
    std::optional<ChunkCost>& own = known[layers];
    if (!own)
      own = stage_.layers.equal ? exact(layers, first, last) : at_least(layers, first, last);
    return *own;
  }

 private:
  ChunkCost exact(int layers, bool first, bool last) const {
    const int units = stage_.runs.unit_count();
    const UnitRange run = last    ? UnitRange{units - 1 - layers, units}
                          : first ? UnitRange{0, layers + 1}
                                  : UnitRange{1, layers + 1};
    if (run.size() == 0) return {};
    const UnitCost time =
        stage_.recompute_first > 0
            ? frame_.time(first_layers(stage_.model, run, stage_.recompute_first).of(run))
            : frame_.time(run, stage_.recompute);
    return {time.forward_total().value, time.backward_total().value,
            (frame_.gradient_sync(run, frame_.cover(time)) + frame_.optimizer(run)).value};
  }

  // Sums over units: least of all kinds of layer.
  struct Least {
    ChunkCost passes;  // finish: of the optimizer
    double recompute = HUGE_VAL;
    double part = HUGE_VAL;  // of gradients and weights that nothing can hide
    double open = HUGE_VAL;  // of them what the passes of all their layers do not hide
    double sync = HUGE_VAL;  // all of them
  };

  // Of several replicas the one that takes longest for a chunk counts, whichever it is.
  Least of_unit(int u) const {
    const UnitRange unit{u, u + 1};
    Least out;
    out.passes = {HUGE_VAL, HUGE_VAL, frame_.optimizer(unit).value};
    double beside = 0;
    for (int r = 0; r < frame_.replica_count(); ++r) {
      const UnitCost time = frame_.time_on(r, unit, stage_.recompute);
      const Seconds more = frame_.time_on(r, unit, Recompute::full).total() -
                           frame_.time_on(r, unit, Recompute::none).total();
      out.passes.forward = std::min(out.passes.forward, time.forward_total().value);
      out.passes.backward = std::min(out.passes.backward, time.backward_total().value);
      out.recompute = std::min(out.recompute, std::max(0.0, more.value));
      beside = std::max(beside, time.total().value);
    }
    out.part = out.open = out.sync = 0;
    if (!rates_) return out;
    const UnitCost cost = frame_.time_on(0, unit, Recompute::none);
    const auto sync = [&](const SpanFrame::FinishRates::Way& way) {
      return (cost.trained * way.of_parameter + cost.trained_experts * way.of_expert_parameter)
          .value;
    };
    out.sync = sync(rates_->gradients) + sync(rates_->weights);
    out.part = rates_->price * out.sync;
    out.open = out.sync - (1 - rates_->price) * beside;
    return out;
  }

  void set_least() {
    for (const int u : stage_.layers.units) {
      const Least own = of_unit(u);
      const auto lower = [](double& value, double other) { value = std::min(value, other); };
      if (layer_.sync == HUGE_VAL) layer_ = own;
      lower(layer_.passes.forward, own.passes.forward);
      lower(layer_.passes.backward, own.passes.backward);
      lower(layer_.passes.finish, own.passes.finish);
      lower(layer_.recompute, own.recompute);
      lower(layer_.part, own.part);
      lower(layer_.open, own.open);
      lower(layer_.sync, own.sync);
    }
  }

  ChunkCost at_least(int layers, bool first, bool last) const {
    ChunkCost out{layers * layer_.passes.forward, layers * layer_.passes.backward,
                  layers * layer_.passes.finish};
    double part = layers * layer_.part;
    double open = layers * layer_.open;
    const bool begins_with_layer =
        !first && layers > 0 && stage_.layers.cut_after.size() == stage_.layers.units.size() + 1;
    double sync = begins_with_layer ? layer_.sync : 0;
    const auto add = [&](int unit) {
      const Least own = of_unit(unit);
      out.forward += own.passes.forward;
      out.backward += own.passes.backward;
      out.finish += own.passes.finish;
      part += own.part;
      open += own.open;
      if (layers == 0 || unit == 0) sync = own.sync;
    };
    if (first) add(0);
    if (last) add(stage_.runs.unit_count() - 1);
    // What is computed twice may hide gradients as well.
    if (stage_.recompute_first > 0) open = 0;
    out.finish += std::max({0.0, part, open, sync});
    out.backward += std::min(stage_.recompute_first, layers) * layer_.recompute;
    return out;
  }

  const DividedStage& stage_;
  const SpanFrame& frame_;
  std::optional<SpanFrame::FinishRates> rates_;
  Least layer_;
  std::array<std::vector<std::optional<ChunkCost>>, 3> known_;  // by place, layers
};

// Layers of each chunk; empty where a chunk would have no unit.
using Sizes = std::vector<int>;

// Sizes in units, of which some are not layers: so many of each chunk.
Sizes divided(int layers, const Sizes& others) {
  const int chunks = static_cast<int>(others.size());
  int units = layers;
  for (const int own : others) units += own;
  if (units < chunks) return {};
  Sizes sizes;
  for (int c = 0; c < chunks; ++c) {
    sizes.push_back(units / chunks + (c < units % chunks ? 1 : 0) - others[c]);
    if (sizes.back() < 0) return {};
  }
  return sizes;
}

std::vector<Sizes> ways_to_divide(const DividedStage& stage, int layers) {
  std::vector<Sizes> ways;
  const auto add = [&](const Sizes& sizes) {
    if (!sizes.empty() && std::ranges::find(ways, sizes) == ways.end()) ways.push_back(sizes);
  };
  Sizes ends(stage.chunks, 0);
  if (stage.first) ++ends.front();
  if (stage.last) ++ends.back();
  add(divided(layers, ends));
  if (layers >= stage.chunks) add(divided(layers, Sizes(stage.chunks, 0)));
  // Another unit, such as the input of a decoder, may be in any chunk.
  const int others = stage.runs.unit_count() - 2 - stage.layers.count;
  for (int c = 0; others > 0 && c < stage.chunks; ++c) {
    Sizes more = ends;
    ++more[c];
    add(divided(layers, more));
  }
  return ways;
}

}  // namespace

StageDivisions stage_divisions(const DividedStage& stage) {
  ChunkCosts costs(stage);
  StageDivisions all(stage.most_layers + 1);
  for (int n = stage.least_layers; n <= stage.most_layers; ++n)
    for (const Sizes& sizes : ways_to_divide(stage, n)) {
      LayerDivision own{.layers = sizes};
      for (int c = 0; c < stage.chunks; ++c) {
        const bool first = stage.first && c == 0;
        const bool last = stage.last && c + 1 == stage.chunks;
        const ChunkCost& cost = costs.of(sizes[c], first, last);
        own.forward.push_back(cost.forward);
        own.backward.push_back(cost.backward);
        own.finish += cost.finish;
      }
      all[n].push_back(std::move(own));
    }
  return all;
}

}  // namespace plait
