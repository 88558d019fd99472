#pragma once

#include <vector>

#include "search/peer_search.h"

namespace plait {

// Metis' layer load balancer. Stages get runs of units in proportion to their speed, the reciprocal
// of their time for the whole model; then units at the cuts move from the slowest stage to a
// neighbour while that makes the slowest stage faster. A stage that is overfull has its share cut
// to 0.9 of what fits, the others take over in proportion to theirs; three attempts.
struct Balance {
  std::vector<int> cuts;
  std::vector<double> fill;  // PeerSearch::fill by stage
  int attempts = 0;
  bool fits() const;
};
Balance balance_layers(PeerSearch& search, const Layout& layout);

}  // namespace plait
