#include "search/moves/moves.h"

#include <algorithm>
#include <numeric>

namespace plait {

std::vector<int> Place::by_load() const {
  std::vector<double> load;
  for (const StageCost& stage : cost.stages)
    load.push_back(
        (draft.settings.micro_batches * (stage.forward_total() + stage.backward_total()) +
         stage.gradient_sync + stage.optimizer)
            .value);
  std::vector<int> order(load.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int a, int b) { return load[a] > load[b]; });
  return order;
}

std::span<const Move> moves() {
  static constexpr Move kMoves[] = {
      {"schedule", moves_of::schedules, false},
      {"recompute", moves_of::recomputes, true},
      {"ZeRO", moves_of::zeros, false},
      {"cut", moves_of::cuts, false},
      {"rotation", moves_of::rotations, true},
      {"layout", moves_of::layouts, true},
      {"micro-batches", moves_of::micro_batches, true},
      {"degrees", moves_of::degrees, true},
      {"all degrees", moves_of::all_degrees, true},
      {"replica", moves_of::replica_moves, true},
      {"merge", moves_of::merges, true},
      {"split", moves_of::splits, true},
      {"share", moves_of::shares, false},
      {"stage swap", moves_of::stage_swaps, true},
      {"replica swap", moves_of::replica_swaps, true},
      {"awakening", moves_of::awakenings, true},
      {"idle replica", moves_of::idle_replicas, true},
      {"idle node", moves_of::idle_nodes, true},
      {"node swap", moves_of::node_swaps, true},
      {"experts", moves_of::experts, true},
  };
  return kMoves;
}

}  // namespace plait
