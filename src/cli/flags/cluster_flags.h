#pragma once

#include <string>
#include <utility>
#include <vector>

#include "app/clusters/pareto.h"
#include "app/clusters/replan.h"
#include "cli/flags/command.h"

namespace plait {

// Setters for what can be rented and for what became of a cluster. Several entries are separated by
// commas.
Setter into_offers(std::vector<Offer>& into);       // "p4d.24xlarge:0-8,g5.24xlarge@east:4:spot"
Setter into_words(std::vector<std::string>& into);  // "node3,node7"
Setter into_devices(std::vector<std::pair<int, int>>& into);  // "5,8-15" as first and last
Setter into_slow(std::vector<SlowNode>& into);                // "node2=0.5"

}  // namespace plait
