#include "search/paths/layer_moves.h"

#include <algorithm>
#include <numeric>

namespace plait {
namespace {

double on_path(const StepPath& path, int stage, const LayerDivision& way) {
  const std::size_t chunks = way.forward.size();
  double sum = path.last == stage ? way.finish : 0;
  for (std::size_t c = 0; c < chunks; ++c)
    sum += path.forward[stage * chunks + c] * way.forward[c] +
           path.backward[stage * chunks + c] * way.backward[c];
  return sum;
}

}  // namespace

bool shift(const LayerPipeline& pipeline, DividedStages& stages, int stage, int by) {
  const std::vector<int>& now = stages[stage]->layers;
  const int layers = std::accumulate(now.begin(), now.end(), 0) + by;
  const StageDivisions& all = *pipeline.stages[stage].divisions;
  if (layers < 0 || layers >= static_cast<int>(all.size()) || all[layers].empty()) return false;
  stages[stage] = &all[layers].front();
  return true;
}

std::vector<LayerMove> moves_that_may_help(const LayerPipeline& pipeline,
                                           const std::vector<StepPath>& paths,
                                           const DividedStages& stages, double step) {
  const PipelineTimes times = times_of(stages);
  std::vector<double> lengths;
  for (const StepPath& path : paths) lengths.push_back(path.length(times) + pipeline.after);
  // What a stage adds to each path with a layer more or less; none where it cannot have that.
  const auto changed_by = [&](int stage, int by) {
    std::vector<double> change;
    DividedStages other = stages;
    if (!shift(pipeline, other, stage, by)) return change;
    for (const StepPath& path : paths)
      change.push_back(on_path(path, stage, *other[stage]) - on_path(path, stage, *stages[stage]));
    return change;
  };
  const int count = static_cast<int>(stages.size());
  std::vector<std::vector<double>> less;
  std::vector<std::vector<double>> more;
  for (int s = 0; s < count; ++s) {
    less.push_back(changed_by(s, -1));
    more.push_back(changed_by(s, 1));
  }
  std::vector<LayerMove> moves;
  for (int from = 0; from < count; ++from)
    for (int to = 0; to < count; ++to) {
      if (from == to || less[from].empty() || more[to].empty()) continue;
      LayerMove move{from, to};
      for (std::size_t i = 0; i < lengths.size() && move.length < step; ++i)
        move.length = std::max(move.length, lengths[i] + less[from][i] + more[to][i]);
      if (move.length < step) moves.push_back(move);
    }
  std::ranges::stable_sort(moves, {}, &LayerMove::length);
  return moves;
}

PipelineTimes times_of(const DividedStages& stages) {
  PipelineTimes times;
  for (const LayerDivision* way : stages) {
    times.forward.insert(times.forward.end(), way->forward.begin(), way->forward.end());
    times.backward.insert(times.backward.end(), way->backward.begin(), way->backward.end());
    times.finish.push_back(way->finish);
  }
  return times;
}

}  // namespace plait
