#include "search/space/units/units_recomputed.h"

#include <utility>
#include <vector>

#include "model/layers.h"

namespace plait {
namespace {

// One span for every chunk of the stage.
std::vector<Span> chunks_of(const Stage& stage) {
  std::vector<Span> chunks;
  for (const Span& span : stage.spans)
    if (chunks.empty() || chunks.back().chunk != span.chunk)
      chunks.push_back(span);
    else
      chunks.back().units.end = span.units.end;
  return chunks;
}

void add(const Span& chunk, const UnitsRecomputed& recompute, std::vector<Span>& spans) {
  for (const RecomputedRun& run : recompute.of(chunk.units)) {
    spans.push_back(chunk);
    spans.back().units = run.units;
    spans.back().recompute = run.recompute;
  }
}

}  // namespace

UnitsRecomputed first_layers(const Model& model, const UnitRange& units, int layers) {
  if (layers == 0) return {};
  int begun = 0;
  for (int u = units.begin; u < units.end; ++u)
    if (begins_layer(model.unit(u)) && ++begun > layers) return {u - units.begin, 0};
  return UnitsRecomputed::all(begun > 0 ? Recompute::full : Recompute::none);
}

UnitsRecomputed first_layers(std::span<const int> starts, const UnitRange& units, int layers) {
  if (layers == 0) return {};
  const auto begin = std::ranges::lower_bound(starts, units.begin);
  const auto end = std::ranges::lower_bound(starts, units.end);
  if (end - begin > layers) return {begin[layers] - units.begin, 0};
  return UnitsRecomputed::all(begin < end ? Recompute::full : Recompute::none);
}

void recompute_first(const Model& model, int layers, Plan& plan) {
  for (Stage& stage : plan.stages) {
    std::vector<Span> spans;
    for (const Span& chunk : chunks_of(stage))
      add(chunk, first_layers(model, chunk.units, layers), spans);
    stage.spans = std::move(spans);
  }
}

void set_recompute(const UnitsRecomputed& recompute, Stage& stage) {
  std::vector<Span> spans;
  for (const Span& chunk : chunks_of(stage)) add(chunk, recompute, spans);
  stage.spans = std::move(spans);
}

}  // namespace plait
