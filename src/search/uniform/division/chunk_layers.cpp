#include "search/uniform/division/chunk_layers.h"

#include <algorithm>

#include "model/layers.h"

namespace plait {

std::vector<int> even_begins(const Model& model, int stages, int chunks, double last) {
  const std::vector<int> starts = layer_starts(model);
  const int layers = static_cast<int>(starts.size());
  const int parts = stages * chunks;
  if (layers < parts) return {};
  std::vector<int> sizes(parts, layers / parts);
  std::vector<double> load(stages, 0);
  load.back() = last;
  for (int extra = layers % parts; extra > 0; --extra) {
    const auto stage = std::ranges::min_element(load) - load.begin();
    for (int chunk = 0; chunk < chunks; ++chunk) {
      int& size = sizes[chunk * stages + stage];
      if (size > layers / parts) continue;
      ++size;
      break;
    }
    load[stage] += 1;
    // A stage whose chunks are all longer takes no more.
    int longer = 0;
    for (int chunk = 0; chunk < chunks; ++chunk)
      longer += sizes[chunk * stages + stage] > layers / parts ? 1 : 0;
    if (longer == chunks) load[stage] = layers + last;
  }
  std::vector<int> begins;
  int done = 0;
  for (const int size : sizes) {
    begins.push_back(done == 0 ? 0 : starts[done]);
    done += size;
  }
  return begins;
}

Plan recut(const Plan& pipeline, Schedule schedule, const std::vector<int>& begins, int units) {
  Plan plan = pipeline;
  plan.schedule = schedule;
  const int stages = plan.stage_count();
  const int chunks = static_cast<int>(begins.size()) / stages;
  for (int s = 0; s < stages; ++s) {
    const Span like = pipeline.stages[s].spans.front();
    plan.stages[s].spans.clear();
    for (int c = 0; c < chunks; ++c) {
      const std::size_t at = chunk_position(schedule, stages, s, c);
      Span span = like;
      span.chunk = c;
      span.units = {begins[at], at + 1 < begins.size() ? begins[at + 1] : units};
      plan.stages[s].spans.push_back(span);
    }
  }
  return plan;
}

}  // namespace plait
