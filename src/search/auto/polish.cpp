#include "search/auto/polish.h"

namespace plait {
namespace {

// False when a stage would be left empty.
bool move_unit(Plan& plan, std::size_t cut, int by) {
  UnitRange& before = plan.stages[cut].spans.back().units;
  UnitRange& after = plan.stages[cut + 1].spans.front().units;
  if ((by > 0 ? after : before).size() <= 1) return false;
  before.end += by;
  after.begin += by;
  return true;
}

}  // namespace

void polish(const Plan& plan, Shortlist& found, int evaluations,
            const std::function<bool()>& stop) {
  Plan best = plan;
  for (bool better = true; better;) {
    better = false;
    for (std::size_t cut = 0; cut + 1 < plan.stages.size(); ++cut) {
      for (const int by : {1, -1}) {
        Plan moved = best;
        while (evaluations > 0 && !stop() && move_unit(moved, cut, by)) {
          --evaluations;
          if (!found.offer(moved)) break;
          best = moved;
          better = true;
        }
      }
    }
  }
}

}  // namespace plait
