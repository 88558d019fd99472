#pragma once

#include <functional>
#include <span>

#include "cost/estimate.h"
#include "search/moves/draft.h"
#include "search/moves/ground.h"

namespace plait {

// Where moves start from: a draft and what is known of its stages.
struct Place {
  const Ground& ground;
  const Draft& draft;
  const Estimate& cost;

  // Stages by what they have to do in a step, most first.
  std::vector<int> by_load() const;
};

// Receives a neighbour; true when that has been taken, so that the rest is of no interest.
using Visitor = std::function<bool(Draft&&)>;

// One kind of change to a plan. Lists all neighbours of a place, the most promising first, until
// the visitor takes one. What it lists need not be sound.
struct Move {
  const char* name;
  void (*list)(const Place& place, const Visitor& visit);
  bool unbalances;  // the units should be cut anew
};

// All kinds, those that are cheap and often help first.
std::span<const Move> moves();

// Parts of the table.
namespace moves_of {
void cuts(const Place&, const Visitor&);
void schedules(const Place&, const Visitor&);
void micro_batches(const Place&, const Visitor&);
void recomputes(const Place&, const Visitor&);
void zeros(const Place&, const Visitor&);
void experts(const Place&, const Visitor&);
void shares(const Place&, const Visitor&);
void degrees(const Place&, const Visitor&);
void all_degrees(const Place&, const Visitor&);
void merges(const Place&, const Visitor&);
void splits(const Place&, const Visitor&);
void rotations(const Place&, const Visitor&);
void layouts(const Place&, const Visitor&);
void stage_swaps(const Place&, const Visitor&);
void node_swaps(const Place&, const Visitor&);
void replica_moves(const Place&, const Visitor&);
void replica_swaps(const Place&, const Visitor&);
void idle_replicas(const Place&, const Visitor&);
void idle_nodes(const Place&, const Visitor&);
void awakenings(const Place&, const Visitor&);
}  // namespace moves_of

}  // namespace plait
