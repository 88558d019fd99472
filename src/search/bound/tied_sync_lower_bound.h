#pragma once

#include <span>
#include <vector>

#include "search/space/space.h"

namespace plait {

// Lower bounds on the sum of a tied embedding's gradients over the first and the last stage, which
// follows the pipeline (CostEngine::finish). Zero for models whose ends are not tied and
// where pools share nodes.
class TiedSyncLowerBound {
 public:
  TiedSyncLowerBound(const Space& space, std::span<const StageOption> options);

  bool any() const { return parameters_ > 0; }
  // With these two as first and last stage; `begin`: where the first take of `first` begins.
  Seconds between(const StageOption& first, int begin, const StageOption& last) const;
  // With any first stage.
  Seconds with_last(const StageOption& last) const;

 private:
  Seconds time(int first_pool, int neighbours, bool same_node, const StageOption& last) const;

  const Space& space_;
  double parameters_ = 0;
  std::vector<int> neighbours_;  // by pool: fewest devices of a first stage on its first node
};

}  // namespace plait
