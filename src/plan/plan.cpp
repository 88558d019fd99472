#include "plan/plan.h"

namespace plait {

int chunk_count(const Stage& stage) {
  return stage.spans.empty() ? 0 : stage.spans.back().chunk + 1;
}

int chunk_position(Schedule schedule, int stages, int stage, int chunk) {
  if (schedule == Schedule::zb_v && chunk == 1) return 2 * stages - 1 - stage;
  return chunk * stages + stage;
}

}  // namespace plait
