#include "plan/plan.h"

namespace plait {

int chunk_count(const Stage& stage) {
  int chunks = 0;
  int end = -1;
  for (const Span& span : stage.spans) {
    if (span.units.begin != end) ++chunks;
    end = span.units.end;
  }
  return chunks;
}

int chunk_position(Schedule schedule, int stages, int stage, int chunk) {
  if (schedule == Schedule::zb_v && chunk == 1) return 2 * stages - 1 - stage;
  return chunk * stages + stage;
}

}  // namespace plait
