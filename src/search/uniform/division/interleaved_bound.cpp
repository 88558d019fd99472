#include "search/uniform/division/interleaved_bound.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "cost/pipeline/schedule.h"

namespace plait {
namespace {

constexpr int kBisections = 24;
constexpr int kRowsAtOnce = 256;  // between two looks at the clock
constexpr double kFarAway = 16;   // times the least bound: nobody asks for more

// Most layers that the stage can have when `before` has passed, for the step to be no longer.
int most_layers(const InterleavedPipeline& pipeline, const InterleavedStage& stage, double before,
                double step) {
  const double m = pipeline.micro_batches;
  const double by_pipeline = (step - before - m * stage.ends) / (m * stage.layer);
  const double by_finish =
      (step - pipeline.forward_share * before - m * stage.ends - stage.finish_of_ends) /
      (m * stage.layer + stage.finish);
  double most = std::min({1.0 * stage.most_layers, by_pipeline, by_finish});
  if (stage.wire > 0)
    most = std::min(most, (step + pipeline.tied - stage.wire_of_ends) / stage.wire);
  int layers = static_cast<int>(std::floor(std::max(most, -1.0) + 1e-9));
  if (stage.recompute.empty()) return layers;
  // What is recomputed in the last micro-batch may hide as much of the finish.
  const auto is_late = [&](int n) {
    const double busy = m * (n * stage.layer + stage.ends);
    const double finish = n * stage.finish + stage.finish_of_ends;
    return busy + m * stage.recompute[n] + before > step * (1 + 1e-9) ||
           busy + (m - 1) * stage.recompute[n] + finish + pipeline.forward_share * before >
               step * (1 + 1e-9);
  };
  while (layers > 0 && is_late(layers)) --layers;
  return layers;
}

// Forward and backward of all units, each on its fastest stage, and the most that a layer takes.
struct RoundTrip {
  double compute = 0;
  double longest_layer = 0;
  double sends = 0;  // one way from the first stage to the last
};

RoundTrip round_trip_of(const InterleavedPipeline& pipeline) {
  RoundTrip trip;
  double least = HUGE_VAL;
  for (const InterleavedStage& stage : pipeline.stages) {
    least = std::min(least, stage.layer);
    trip.longest_layer = std::max(trip.longest_layer, stage.layer);
    trip.compute += stage.ends;
    trip.sends += stage.send;
  }
  trip.compute += pipeline.layers * least;
  return trip;
}

// By the chunks that a stage can hold. What is after a chunk is a part of the round trip, less what
// may be missing because chunks differ by a layer.
double bound_by_memory(const InterleavedPipeline& pipeline, const RoundTrip& trip, int stage) {
  const int p = static_cast<int>(pipeline.stages.size());
  const int v = pipeline.chunks;
  double sends = 0;  // to the end of this round of chunks
  for (int s = stage; s + 1 < p; ++s) sends += pipeline.stages[s].send;
  double sum = 0;
  for (int c = 0; c < v; ++c) {
    const double rounds = v - c - 1;
    const double later = trip.compute * rounds / v - p * trip.longest_layer;
    sum += std::max(0.0, later) + 2 * (sends + rounds * (trip.sends + pipeline.wrap));
  }
  const int k = chunks_in_flight(Schedule::interleaved, p, stage, pipeline.micro_batches, v);
  return pipeline.micro_batches * sum / k;
}

// Layers of the stages of a step that is no longer; empty when there are none. Nothing when it is
// stopped.
std::optional<std::vector<int>> layers_within(const InterleavedPipeline& pipeline, double step,
                                              const std::function<bool()>& stop) {
  const int layers = pipeline.layers;
  std::vector<double> before(layers + 1, HUGE_VAL);  // least sum so far, by layers placed
  std::vector<std::vector<int>> last;                // of them on the last stage, by stage
  before[0] = 0;
  for (const InterleavedStage& stage : pipeline.stages) {
    std::vector<double> next(layers + 1, HUGE_VAL);
    std::vector<int>& own = last.emplace_back(layers + 1, -1);
    for (int done = 0; done <= layers; ++done) {
      if (done % kRowsAtOnce == 0 && stop()) return std::nullopt;
      if (!std::isfinite(before[done])) continue;
      const int most = std::min(layers - done, most_layers(pipeline, stage, before[done], step));
      // The end of a pipeline may be a chunk of its own.
      for (int n = std::max(0, pipeline.chunks - 1 - pipeline.others); n <= most; ++n) {
        const int first = std::max(0, (n + pipeline.others) / pipeline.chunks - pipeline.others);
        const double sum = before[done] + first * stage.layer + 2 * stage.send;
        if (sum >= next[done + n]) continue;
        next[done + n] = sum;
        own[done + n] = n;
      }
    }
    before = std::move(next);
  }
  if (!std::isfinite(before[layers])) return std::vector<int>();
  std::vector<int> out(pipeline.stages.size());
  int placed = layers;
  for (std::size_t s = out.size(); s-- > 0; placed -= out[s]) out[s] = last[s][placed];
  return out;
}

}  // namespace

InterleavedBound interleaved_bound(const InterleavedPipeline& pipeline, double least, double enough,
                                   const std::function<bool()>& stop) {
  const RoundTrip trip = round_trip_of(pipeline);
  const int v = pipeline.chunks;
  double low = std::max(least, trip.compute + 2 * (v * trip.sends + (v - 1) * pipeline.wrap));
  for (int s = 0; s < static_cast<int>(pipeline.stages.size()); ++s)
    low = std::max(low, bound_by_memory(pipeline, trip, s));
  InterleavedBound out{low, {}};
  auto found = layers_within(pipeline, low, stop);
  if (found) out.layers = std::move(*found);
  if (!found || !out.layers.empty()) return out;
  double high = std::min(enough, kFarAway * low);
  if (low >= high) return out;
  found = layers_within(pipeline, high, stop);
  if (found && found->empty()) {
    out.step = high;
    found = layers_within(pipeline, HUGE_VAL, stop);
    if (found && found->empty()) out.step = HUGE_VAL;
  }
  if (found) out.layers = std::move(*found);
  if (!found || out.step >= high) return out;
  for (int i = 0; i < kBisections && found; ++i) {
    const double middle = (low + high) / 2;
    found = layers_within(pipeline, middle, stop);
    if (found && found->empty()) {
      low = middle;
    } else if (found) {
      high = middle;
      out.layers = std::move(*found);
    }
  }
  out.step = low;
  return out;
}

InterleavedBound busiest_stage_bound(const InterleavedPipeline& pipeline, int fewest) {
  const int stages = static_cast<int>(pipeline.stages.size());
  const auto busy = [&](int s, int layers) {
    const InterleavedStage& stage = pipeline.stages[s];
    if (layers > stage.most_layers) return HUGE_VAL;
    const double finish = std::max(0.0, layers * stage.finish + stage.finish_of_ends);
    return pipeline.micro_batches * (layers * stage.layer + stage.ends) + finish;
  };
  InterleavedBound out{0, std::vector<int>(stages, fewest)};
  out.layers.front() = 0;
  for (int left = pipeline.layers - fewest * (stages - 1); left > 0; --left) {
    int best = 0;
    for (int s = 1; s < stages; ++s)
      if (busy(s, out.layers[s] + 1) < busy(best, out.layers[best] + 1)) best = s;
    ++out.layers[best];
  }
  if (pipeline.layers < fewest * (stages - 1)) return {HUGE_VAL, {}};
  for (int s = 0; s < stages; ++s) out.step = std::max(out.step, busy(s, out.layers[s]));
  if (std::isinf(out.step)) out.layers.clear();
  return out;
}

}  // namespace plait
