#include "search/uniform/interleaved_bound.h"

#include <algorithm>
#include <cmath>

namespace plait {
namespace {

constexpr int kBisections = 24;
constexpr double kFarAway = 16;  // times the least bound: nobody asks for more

// Most layers that the stage can have when `before` has passed, for the step to be no longer.
int most_layers(const InterleavedPipeline& pipeline, const InterleavedStage& stage, double before,
                double step) {
  const double m = pipeline.micro_batches;
  const double by_pipeline = (step - before - m * stage.ends) / (m * stage.layer);
  const double by_finish = (step - pipeline.forward_share * before - m * stage.ends) /
                           (m * stage.layer + stage.finish);
  const double most = std::min({by_pipeline, by_finish, 1.0 * stage.most_layers});
  return static_cast<int>(std::floor(most + 1e-9));
}

bool is_possible(const InterleavedPipeline& pipeline, double step) {
  const int layers = pipeline.layers;
  std::vector<double> before(layers + 1, HUGE_VAL);  // least sum so far, by layers placed
  before[0] = 0;
  for (const InterleavedStage& stage : pipeline.stages) {
    std::vector<double> next(layers + 1, HUGE_VAL);
    for (int done = 0; done <= layers; ++done) {
      if (!std::isfinite(before[done])) continue;
      const int most = std::min(layers - done, most_layers(pipeline, stage, before[done], step));
      // The end of a pipeline may be a chunk of its own.
      for (int n = pipeline.chunks - 1; n <= most; ++n)
        next[done + n] =
            std::min(next[done + n],
                     before[done] + n / pipeline.chunks * stage.layer + 2 * stage.send);
    }
    before = std::move(next);
  }
  return std::isfinite(before[layers]);
}

}  // namespace

double interleaved_bound(const InterleavedPipeline& pipeline, double least) {
  double low = least;
  double high = kFarAway * least;
  if (!is_possible(pipeline, high)) {
    int room = 0;
    for (const InterleavedStage& stage : pipeline.stages) room += stage.most_layers;
    return room < pipeline.layers ? HUGE_VAL : low;
  }
  if (is_possible(pipeline, low)) return low;
  for (int i = 0; i < kBisections; ++i) {
    const double middle = (low + high) / 2;
    (is_possible(pipeline, middle) ? high : low) = middle;
  }
  return low;
}

}  // namespace plait
