#include "graph/solve/reduce.h"

#include <algorithm>
#include <deque>

#include "graph/solve/dominance.h"
#include "graph/solve/rows.h"

namespace plait::solve {
namespace {

class Reducer {
 public:
  Reducer(Network& network, const ReduceLimits& limits)
      : net_(network), limits_(limits), queued_(network.variables.size(), 0) {}

  // Reduces until nothing more follows from single variables.
  void settle(bool dominance) {
    dominance_ = dominance;
    for (std::size_t v = 0; v < net_.variables.size(); ++v) push(static_cast<int>(v));
    while (!queue_.empty() && !net_.impossible) {
      const int v = queue_.front();
      queue_.pop_front();
      queued_[v] = 0;
      if (net_.variables[v].alive) visit(v);
    }
    queue_.clear();
    std::fill(queued_.begin(), queued_.end(), 0);
  }

 private:
  void push(int v) {
    if (queued_[v] || !net_.variables[v].alive) return;
    queued_[v] = 1;
    queue_.push_back(v);
  }
  void push_neighbours(int v) {
    for (const Arc& arc : net_.variables[v].arcs) push(arc.to);
  }

  void visit(int v) {
    if (drop(v, unsupported_choices(net_, v))) return;
    if (net_.variables[v].size() == 1) return fix(v);
    split_sums(v);
    if (net_.variables[v].arcs.size() <= 1) forbid_dominated_pairs(v);
    if (merge_into_neighbour(v)) return;
    if (eliminate(v)) return;
    if (dominance_) drop(v, dominated_choices(net_, v));
  }

  bool drop(int v, const std::vector<char>& gone) {
    std::vector<int> kept;
    for (std::size_t k = 0; k < gone.size(); ++k)
      if (!gone[k]) kept.push_back(static_cast<int>(k));
    if (kept.size() == gone.size()) return false;
    if (kept.empty()) {
      net_.impossible = true;
      return true;
    }
    net_.keep_choices(v, kept);
    push(v);
    push_neighbours(v);
    return true;
  }

  void fix(int v) {
    Variable& x = net_.variables[v];
    net_.tidy_loads(v);
    net_.base = add_costs(net_.base, x.cost[0]);
    const std::vector<Arc> arcs = x.arcs;
    for (const Arc& arc : arcs) {
      const LinkView cost = net_.view(arc.link, v);
      Variable& other = net_.variables[arc.to];
      for (int k = 0; k < other.size(); ++k) other.cost[k] = add_costs(other.cost[k], cost(0, k));
      net_.remove_link(arc.link);
      push(arc.to);
    }
    net_.removals.push_back({v, -1, -1, {}, {}, {x.label[0]}});
    x.alive = false;
  }

  // A link whose cost is a sum of a part for each end is not a link.
  void split_sums(int v) {
    const std::vector<Arc> arcs = net_.variables[v].arcs;
    for (const Arc& arc : arcs) {
      const LinkView cost = net_.view(arc.link, v);
      Variable& x = net_.variables[v];
      Variable& y = net_.variables[arc.to];
      if (!is_sum(cost, x.size(), y.size())) continue;
      const Amount corner = cost(0, 0);
      for (int a = 0; a < x.size(); ++a) x.cost[a] = add_costs(x.cost[a], cost(a, 0));
      for (int b = 0; b < y.size(); ++b) y.cost[b] = add_costs(y.cost[b], cost(0, b) - corner);
      net_.remove_link(arc.link);
      push(arc.to);
    }
  }

  static bool is_sum(const LinkView& cost, int rows, int columns) {
    for (int a = 0; a < rows; ++a)
      for (int b = 0; b < columns; ++b) {
        if (cost(a, b) >= kForbidden) return false;
        if (cost(a, b) - cost(0, b) != cost(a, 0) - cost(0, 0)) return false;
      }
    return true;
  }

  // At a variable with one neighbour, what is dominated for a choice of the neighbour is forbidden.
  void forbid_dominated_pairs(int v) {
    net_.tidy_loads(v);
    const Variable& x = net_.variables[v];
    if (x.arcs.empty()) {
      drop(v, dominated_choices(net_, v));
      return;
    }
    const Arc arc = x.arcs[0];
    const int others = net_.variables[arc.to].size();
    bool changed = false;
    for (int a = 0; a < others; ++a) changed = forbid_column(v, arc, a) || changed;
    if (!changed) return;
    push(arc.to);
    push(v);
  }

  bool forbid_column(int v, const Arc& arc, int column) {
    const Variable& x = net_.variables[v];
    Link& link = net_.links[arc.link];
    const std::size_t columns = net_.variables[link.v].cost.size();
    const auto entry = [&](int k) -> Amount& {
      return link.u == v ? link.cost[k * columns + column] : link.cost[column * columns + k];
    };
    bool changed = false;
    for (int b = 0; b < x.size(); ++b)
      for (int c = 0; c < x.size() && entry(b) < kForbidden; ++c) {
        if (c == b || entry(c) >= kForbidden) continue;
        if (entry(c) + x.cost[c] > entry(b) + x.cost[b] || !uses_no_more(x, c, b)) continue;
        entry(b) = kForbidden;
        changed = true;
      }
    return changed;
  }

  // Which choice of `v` each choice of the neighbour allows; empty when it is not always one.
  std::vector<int> follows_from(int v, const Arc& arc) const {
    const LinkView cost = net_.view(arc.link, v);
    const int choices = net_.variables[v].size();
    std::vector<int> follows(net_.variables[arc.to].cost.size(), -1);
    for (std::size_t a = 0; a < follows.size(); ++a) {
      for (int k = 0; k < choices; ++k) {
        if (cost(k, static_cast<int>(a)) >= kForbidden) continue;
        if (follows[a] >= 0) return {};
        follows[a] = k;
      }
      if (follows[a] < 0) return {};
    }
    return follows;
  }

  // Where each choice of a neighbour allows one choice here, this variable follows from it. Where
  // each follows from the other, the one with fewer links goes: moving links is what costs time.
  bool merge_into_neighbour(int v) {
    const std::vector<Arc> arcs = net_.variables[v].arcs;
    for (const Arc& arc : arcs) {
      const std::vector<int> follows = follows_from(v, arc);
      if (follows.empty()) continue;
      const Arc back{v, arc.link};
      if (net_.variables[arc.to].arcs.size() < arcs.size()) {
        const std::vector<int> backwards = follows_from(arc.to, back);
        if (!backwards.empty()) {
          merge(arc.to, back, backwards);
          return true;
        }
      }
      merge(v, arc, follows);
      return true;
    }
    return false;
  }

  void merge(int v, const Arc arc, const std::vector<int>& follows) {
    Variable& x = net_.variables[v];
    Variable& u = net_.variables[arc.to];
    const LinkView cost = net_.view(arc.link, v);
    Removal removal{v, arc.to, -1, u.label, {}, {}};
    for (int a = 0; a < u.size(); ++a) {
      u.cost[a] = add_costs(u.cost[a], add_costs(x.cost[follows[a]], cost(follows[a], a)));
      removal.table.push_back(x.label[follows[a]]);
    }
    for (const Load& load : x.loads) {
      Load moved{load.begin, load.end, {}};
      for (const int k : follows) moved.usage.push_back(load.usage[k]);
      u.loads.push_back(std::move(moved));
      u.tidy = false;
    }
    net_.remove_link(arc.link);
    const std::vector<Arc> arcs = x.arcs;
    for (const Arc& other : arcs) {
      const LinkView far = net_.view(other.link, v);
      const int columns = net_.variables[other.to].size();
      std::vector<Amount> moved;
      moved.reserve(follows.size() * columns);
      for (const int k : follows)
        for (int b = 0; b < columns; ++b) moved.push_back(far(k, b));
      net_.remove_link(other.link);
      net_.add_link(arc.to, other.to, std::move(moved));
      push(other.to);
    }
    net_.removals.push_back(std::move(removal));
    x = Variable{};
    x.alive = false;
    push(arc.to);
  }

  // A variable without memory between two others becomes a link between them.
  bool eliminate(int v) {
    net_.tidy_loads(v);
    Variable& x = net_.variables[v];
    if (!x.loads.empty() || x.arcs.size() != 2) return false;
    const Arc left = x.arcs[0], right = x.arcs[1];
    const Variable& u = net_.variables[left.to];
    const Variable& w = net_.variables[right.to];
    if (u.cost.size() * w.cost.size() > limits_.most_pairs) return false;
    const LinkView from_u = net_.view(left.link, v), from_w = net_.view(right.link, v);
    Removal removal{v, left.to, right.to, u.label, w.label, {}};
    std::vector<Amount> joined;
    for (int a = 0; a < u.size(); ++a)
      for (int b = 0; b < w.size(); ++b) {
        Amount best = kForbidden;
        int choice = 0;
        for (int k = 0; k < x.size(); ++k) {
          const Amount cost = add_costs(x.cost[k], add_costs(from_u(k, a), from_w(k, b)));
          if (cost < best) best = cost, choice = k;
        }
        joined.push_back(best);
        removal.table.push_back(x.label[choice]);
      }
    net_.remove_link(left.link);
    net_.remove_link(right.link);
    net_.add_link(left.to, right.to, std::move(joined));
    net_.removals.push_back(std::move(removal));
    x = Variable{};
    x.alive = false;
    push(left.to);
    push(right.to);
    return true;
  }

  Network& net_;
  const ReduceLimits& limits_;
  bool dominance_ = false;
  std::deque<int> queue_;
  std::vector<char> queued_;
};

struct Size {
  std::size_t variables = 0, choices = 0, rows = 0;
  bool operator==(const Size&) const = default;
};

Size size_of(const Network& network) {
  Size size;
  size.rows = network.room.size();
  for (const Variable& x : network.variables)
    if (x.alive) ++size.variables, size.choices += x.cost.size();
  return size;
}

}  // namespace

void reduce(Network& network, const ReduceLimits& limits) {
  Reducer reducer(network, limits);
  reducer.settle(false);
  for (int round = 0; round < 8 && !network.impossible; ++round) {
    const Size before = size_of(network);
    drop_slack_rows(network);
    for (int window = 8; window <= limits.row_window; window *= 4)
      drop_implied_rows(network, window);
    if (network.impossible) break;
    drop_costly(network, limits.below);
    drop_what_does_not_fit(network);
    reducer.settle(true);
    if (size_of(network) == before) break;
  }
  if (!network.impossible) drop_slack_rows(network);
}

}  // namespace plait::solve
