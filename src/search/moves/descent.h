#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "cost/engine.h"
#include "search/moves/ground.h"
#include "search/moves/moves.h"

namespace plait {

// A draft, what is known of its stages, and what it takes.
struct Settled {
  Draft draft;
  Estimate cost;                     // its step is a floor
  Seconds step = Seconds(HUGE_VAL);  // simulated, once that was worth it

  bool fits() const { return cost.fits; }
  Seconds floor() const { return cost.fits ? cost.step : Seconds(HUGE_VAL); }
};

// Follows moves downhill: each neighbour is outlined with the costs of its unchanged stages at
// hand, its units are balanced, and only if its floor is below the best plan it is simulated. The
// budget is counted in work, about a microsecond each, never in time. Not for several threads at
// once.
class Descent {
 public:
  // `memo` is of the ground's problem.
  Descent(const Ground& ground, const CostEngine& engine, StageMemo& memo, double work,
          const std::function<bool()>& stop);

  // Cuts the units anew and recomputes where memory is short. Nothing when the draft is not sound.
  // What cannot come below `limit` is left as it is.
  std::optional<Settled> settle(Draft draft, bool unbalanced, Seconds limit = Seconds(HUGE_VAL));
  // What is not faster than the limit may be left without a step.
  void simulate(Settled& settled, Seconds limit = Seconds(HUGE_VAL));

  // Recomputes no more layers than have to be, where each layer may be by itself.
  void recompute_less(Settled& settled);

  // Until no move makes it faster.
  void descend(Settled& settled);
  // The same with moves that change all stages alike, with this part of the work at most.
  void descend_regularly(Settled& settled, double part);
  // Random moves, uphill too (by about `hot` of the step at first, then ever less), and a descent
  // at the end; the best of all.
  void wander(Settled& settled, double hot, std::uint64_t seed);

  bool is_over() const { return work_ <= 0 || stop_(); }
  void spend(double work) { work_ -= work; }
  double budget() const { return work_; }
  std::int64_t simulations() const { return simulations_; }

 private:
  std::optional<Settled> outlined(Draft draft);
  void balance(Settled& settled, Seconds limit);
  void make_room(Settled& settled);
  // Recomputes stages that are too full, throughout or as many of their layers as it takes.
  void recompute_all(Settled& settled);
  void recompute_some(Settled& settled);
  bool try_move(const Move& move, Settled& settled);
  void descend(Settled& settled, std::span<const Move* const> kinds, double work_left);
  // Sets a step that is likely, where to simulate it is dear; else false.
  bool guess(Settled& next, const Settled& neighbour) const;
  // One of the neighbours, balanced where it may come below the limit.
  std::optional<Settled> step_at_random(const Settled& settled, std::mt19937_64& random,
                                        Seconds limit);

  const Ground& ground_;
  const CostEngine& engine_;
  double work_;
  const std::function<bool()>& stop_;
  StageMemo& memo_;
  Plan plan_;  // room for the one being looked at
  std::vector<const Move*> all_;
  std::vector<const Move*> regular_;
  std::vector<const Move*> drawn_;  // as often as their weight says
  std::int64_t simulations_ = 0;
  std::array<double, 3> spared_{};  // by Recompute, of a stage's activations; 0 = not known yet
};

}  // namespace plait
