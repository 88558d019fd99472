#include "search/moves/moves.h"

#include <algorithm>
#include <numeric>

namespace plait {

std::vector<double> Place::loads() const {
  std::vector<double> out;
  for (const StageCost& stage : cost.stages)
    out.push_back((draft.settings.micro_batches * (stage.forward_total() + stage.backward_total()) +
                   stage.gradient_sync + stage.optimizer)
                      .value);
  return out;
}

Seconds Place::most_load() const { return Seconds(std::ranges::max(loads())); }

std::vector<int> Place::by_load() const {
  const std::vector<double> load = loads();
  std::vector<int> order(load.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int a, int b) { return load[a] > load[b]; });
  return order;
}

std::span<const Move> moves() {
  static constexpr Move kMoves[] = {
      {"schedule", moves_of::schedules, false, 3, true},
      {"recompute", moves_of::recomputes, true, 3, false},
      {"ZeRO", moves_of::zeros, false, 1, true},
      {"cut", moves_of::cuts, false, 12, false},
      {"rotation", moves_of::rotations, true, 4, false},
      {"layout", moves_of::layouts, true, 2, true},
      {"micro-batches", moves_of::micro_batches, true, 3, true},
      {"degrees", moves_of::degrees, true, 4, false},
      {"all degrees", moves_of::all_degrees, true, 2, true},
      {"replica", moves_of::replica_moves, true, 6, false},
      {"merge", moves_of::merges, true, 3, false},
      {"split", moves_of::splits, true, 3, false},
      {"share", moves_of::shares, false, 4, false},
      {"stage swap", moves_of::stage_swaps, true, 4, false},
      {"replica swap", moves_of::replica_swaps, true, 3, false},
      {"awakening", moves_of::awakenings, true, 2, false},
      {"idle replica", moves_of::idle_replicas, true, 1, false},
      {"idle node", moves_of::idle_nodes, true, 1, false},
      {"node swap", moves_of::node_swaps, true, 2, false},
      {"experts", moves_of::experts, true, 1, true},
  };
  return kMoves;
}

}  // namespace plait
