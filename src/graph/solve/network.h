#pragma once

#include <utility>
#include <vector>

#include "graph/solve/instance.h"

namespace plait::solve {

// Forbidden costs stay forbidden in sums.
inline Amount add_costs(Amount a, Amount b) {
  return a >= kForbidden || b >= kForbidden ? kForbidden : a + b;
}

// Memory that a variable takes in the rows [begin, end), by its choice.
struct Load {
  int begin = 0;
  int end = 0;
  std::vector<Amount> usage;
};

struct Arc {
  int to = 0;
  int link = 0;
};

// A node of the instance that is still to be decided, with all that was merged into it.
struct Variable {
  bool alive = true;
  bool tidy = false;  // loads are disjoint, ascending, and the least usage of each is 0
  std::vector<Amount> cost;
  std::vector<int> label;  // which of the first choices each choice is
  std::vector<Load> loads;
  std::vector<Arc> arcs;
  int size() const { return static_cast<int>(cost.size()); }
};

struct Link {
  int u = -1;
  int v = -1;
  std::vector<Amount> cost;  // [choice of u][choice of v]
};

// How the choice of a removed variable follows from others that were alive then. `table` is over
// the labels of `first`, or of `first` times those of `second`; it has one entry when there is
// none.
struct Removal {
  int variable = -1;
  int first = -1;
  int second = -1;
  std::vector<int> first_labels;
  std::vector<int> second_labels;
  std::vector<int> table;
};

// The cost of a link seen from one of its ends.
struct LinkView {
  const Amount* cost;
  std::size_t own;
  std::size_t other;
  Amount operator()(int mine, int theirs) const { return cost[mine * own + theirs * other]; }
};

// What is left of an instance: variables, links between them, and one row for each time point that
// can bind. Edited in place by the reductions; every edit keeps the least cost and the way back.
struct Network {
  std::vector<Variable> variables;
  std::vector<Link> links;
  std::vector<Amount> room;   // what each row may still take above the least usage of all
  std::vector<int> row_name;  // which of the first rows each row is
  Amount base = 0;            // decided cost
  std::vector<Removal> removals;
  bool impossible = false;

  int rows() const { return static_cast<int>(room.size()); }
  LinkView view(int link, int from) const;
  int link_between(int u, int v) const;  // -1 = none

  void add_link(int u, int v, std::vector<Amount> cost);  // adds to one that is there
  void remove_link(int link);
  // Keeps the choices whose positions are in `kept`, ascending.
  void keep_choices(int variable, const std::vector<int>& kept);
  void tidy_loads(int variable);
  // Gives the rows other numbers: row r becomes `to[r]`, and [b, e) becomes [to[b], to[e]).
  void renumber_rows(const std::vector<int>& to, std::vector<Amount> new_room);
};

// Links of nodes with themselves become node costs; rows are the time points at which the set of
// living nodes is not part of another one's.
Network make_network(const Instance& instance);

// The alive part as a network of its own: labels count from 0, no removals. `origin` gets the
// variable that each stands for.
Network compacted(const Network& network, std::vector<int>& origin);

// Fills the labels of all removed variables, last removal first.
void recover(const Network& network, std::vector<int>& labels);

// Cost of positions (not labels) over the alive variables, and whether all rows have room.
struct Position {
  Amount cost = 0;
  bool fits = true;
};
Position evaluate(const Network& network, const std::vector<int>& position);

}  // namespace plait::solve
