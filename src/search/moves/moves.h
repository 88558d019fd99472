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

  // What each stage has to do in a step; stages by it, most first.
  std::vector<double> loads() const;
  std::vector<int> by_load() const;
  Seconds most_load() const;
};

// Goes through the neighbours of a place, or makes just one of them.
class Visitor {
 public:
  // `take` receives a neighbour; true when the rest is of no interest.
  explicit Visitor(std::function<bool(Draft&&)> take, int only = kAll)
      : take_(std::move(take)), only_(only) {}

  // Asked before a neighbour is made: whether it is not wanted.
  bool skips() { return count_++ != only_ && only_ != kAll; }
  // The same of so many at once: true when none of them is wanted.
  bool skips(int many) {
    const bool wanted = only_ == kAll || (only_ >= count_ && only_ < count_ + many);
    if (!wanted) count_ += many;
    return !wanted;
  }
  bool operator()(Draft&& draft) { return take_(std::move(draft)); }
  int count() const { return count_; }

  static constexpr int kAll = -1;
  static constexpr int kNone = -2;

 private:
  std::function<bool(Draft&&)> take_;
  int only_;
  int count_ = 0;
};

// One kind of change to a plan. Lists all neighbours of a place, the most promising first, until
// the visitor takes one. What it lists need not be sound.
struct Move {
  const char* name;
  void (*list)(const Place& place, Visitor& visit);
  bool unbalances;  // the units should be cut anew
  int weight;       // how often a random walk tries it
  bool regular;     // changes all stages alike, so that there are few neighbours of its kind
};

// All kinds, those that are cheap and often help first.
std::span<const Move> moves();

// Parts of the table.
namespace moves_of {
void cuts(const Place&, Visitor&);
void schedules(const Place&, Visitor&);
void micro_batches(const Place&, Visitor&);
void recomputes(const Place&, Visitor&);
void zeros(const Place&, Visitor&);
void experts(const Place&, Visitor&);
void shares(const Place&, Visitor&);
void degrees(const Place&, Visitor&);
void all_degrees(const Place&, Visitor&);
void merges(const Place&, Visitor&);
void splits(const Place&, Visitor&);
void rotations(const Place&, Visitor&);
void layouts(const Place&, Visitor&);
void stage_swaps(const Place&, Visitor&);
void node_swaps(const Place&, Visitor&);
void replica_moves(const Place&, Visitor&);
void replica_swaps(const Place&, Visitor&);
void idle_replicas(const Place&, Visitor&);
void idle_nodes(const Place&, Visitor&);
void awakenings(const Place&, Visitor&);
}  // namespace moves_of

}  // namespace plait
