#pragma once

#include <span>
#include <string>
#include <vector>

#include "plan/problem.h"
#include "search/papers/metis_optimum.h"
#include "search/space/search.h"

namespace plait {

// Plans in the rows of another planner's program, so that it can cost them itself.
struct PeerRows {
  std::string text;                   // heading and rows
  int written = 0;                    // rows
  std::vector<std::string> left_out;  // a sentence for each plan that the program has no words for
};

// Metis' ranking:
//   rank, cost, node_sequence, device_groups, strategies(dp_deg, tp_deg), batches(number of batch),
//   layer_partition
// AMP's trials: degrees, micro-batch and the bounds of the stages in AMP's own units (an embedding
// counts two of them, a head four), and the entry of its list of settings, which it logs and tries.
// FASOP's table of 18 columns, nodes under its names, for a training of 12,500,000 steps, as it has
// by default. Costs are plait's.
std::vector<std::string> peer_formats();
PeerRows peer_rows(const std::string& format, const Problem& problem,
                   std::span<const RankedPlan> plans);

// The same with the costs of Metis' own formula.
PeerRows metis_rows(const Problem& problem, std::span<const MetisRanked> plans);

}  // namespace plait
