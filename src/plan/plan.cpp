#include "plan/plan.h"

#include <utility>

namespace plait {

void join_alike(Stage& stage) {
  std::vector<Span> joined;
  for (const Span& span : stage.spans) {
    Span like = joined.empty() ? Span{} : joined.back();
    like.units = span.units;
    const bool goes_on =
        !joined.empty() && like == span && joined.back().units.end == span.units.begin;
    if (goes_on)
      joined.back().units.end = span.units.end;
    else
      joined.push_back(span);
  }
  stage.spans = std::move(joined);
}

int chunk_count(const Stage& stage) {
  return stage.spans.empty() ? 0 : stage.spans.back().chunk + 1;
}

int chunk_position(Schedule schedule, int stages, int stage, int chunk) {
  if (schedule == Schedule::zb_v && chunk == 1) return 2 * stages - 1 - stage;
  return chunk * stages + stage;
}

}  // namespace plait
