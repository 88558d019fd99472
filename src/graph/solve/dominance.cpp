#include "graph/solve/dominance.h"

#include <algorithm>

namespace plait::solve {

bool uses_no_more(const Variable& x, int a, int b) {
  for (const Load& load : x.loads)
    if (load.usage[a] > load.usage[b]) return false;
  return true;
}

std::vector<char> unsupported_choices(const Network& network, int variable) {
  const Variable& x = network.variables[variable];
  std::vector<char> gone(x.cost.size(), 0);
  for (int k = 0; k < x.size(); ++k) gone[k] = x.cost[k] >= kForbidden;
  for (const Arc& arc : x.arcs) {
    const LinkView cost = network.view(arc.link, variable);
    const int others = network.variables[arc.to].size();
    for (int k = 0; k < x.size(); ++k) {
      bool supported = false;
      for (int b = 0; b < others && !supported; ++b) supported = cost(k, b) < kForbidden;
      if (!supported) gone[k] = 1;
    }
  }
  return gone;
}

namespace {

// The most that `a` costs above `b` in a link, over what the other end may choose with `b`.
// kForbidden where the other end may choose something with `b` that it may not with `a`.
Amount most_extra(const LinkView& cost, int others, int a, int b) {
  Amount most = -kForbidden;
  for (int d = 0; d < others; ++d) {
    const Amount with_b = cost(b, d);
    if (with_b >= kForbidden) continue;
    const Amount with_a = cost(a, d);
    if (with_a >= kForbidden) return kForbidden;
    most = std::max(most, with_a - with_b);
  }
  return most;
}

// Tests pairs of choices of one variable; `hint` holds, for each choice and link, the cheapest
// choice of the other end, where a difference shows soonest.
class Comparison {
 public:
  Comparison(const Network& network, int variable) : x_(network.variables[variable]) {
    for (const Arc& arc : x_.arcs)
      links_.push_back({network.view(arc.link, variable), network.variables[arc.to].size()});
    hint_.resize(links_.size() * x_.cost.size());
    for (int k = 0; k < x_.size(); ++k)
      for (std::size_t i = 0; i < links_.size(); ++i) hint_[k * links_.size() + i] = cheapest(i, k);
  }

  bool dominates(int a, int b) const {
    Amount slack = x_.cost[b] - x_.cost[a];
    const int* hint = hint_.data() + b * links_.size();
    for (std::size_t i = 0; i < links_.size(); ++i) {
      const LinkView& cost = links_[i].cost;
      if (cost(a, hint[i]) >= kForbidden) return false;
      slack -= cost(a, hint[i]) - cost(b, hint[i]);
    }
    if (slack < 0 || !uses_no_more(x_, a, b)) return false;
    slack = x_.cost[b] - x_.cost[a];
    for (const End& end : links_) {
      const Amount extra = most_extra(end.cost, end.choices, a, b);
      if (extra >= kForbidden) return false;
      slack -= extra;
    }
    return slack >= 0;
  }

 private:
  struct End {
    LinkView cost;
    int choices;
  };
  int cheapest(std::size_t link, int k) const {
    int best = 0;
    for (int d = 1; d < links_[link].choices; ++d)
      if (links_[link].cost(k, d) < links_[link].cost(k, best)) best = d;
    return best;
  }

  const Variable& x_;
  std::vector<End> links_;
  std::vector<int> hint_;
};

}  // namespace

std::vector<char> dominated_choices(Network& network, int variable) {
  network.tidy_loads(variable);
  const Variable& x = network.variables[variable];
  std::vector<char> gone(x.cost.size(), 0);
  const Comparison comparison(network, variable);
  for (int b = 0; b < x.size(); ++b)
    for (int a = 0; a < x.size() && !gone[b]; ++a)
      if (a != b && !gone[a] && comparison.dominates(a, b)) gone[b] = 1;
  return gone;
}

void drop_what_does_not_fit(Network& network) {
  for (Variable& x : network.variables) {
    if (!x.alive) continue;
    for (const Load& load : x.loads) {
      const Amount room =
          *std::min_element(network.room.begin() + load.begin, network.room.begin() + load.end);
      for (int k = 0; k < x.size(); ++k)
        if (load.usage[k] > room) x.cost[k] = kForbidden;
    }
  }
}

void drop_costly(Network& network, Amount below) {
  if (below >= kForbidden) return;
  Amount least = network.base;
  const auto least_of = [](const std::vector<Amount>& list) {
    return *std::min_element(list.begin(), list.end());
  };
  for (const Variable& x : network.variables)
    if (x.alive) least = add_costs(least, least_of(x.cost));
  for (const Link& link : network.links)
    if (link.u >= 0) least = add_costs(least, least_of(link.cost));
  if (least >= below) {
    network.impossible = true;
    return;
  }
  const auto forbid = [&](std::vector<Amount>& list) {
    const Amount most = below - least + least_of(list);
    for (Amount& cost : list)
      if (cost >= most) cost = kForbidden;
  };
  for (Variable& x : network.variables)
    if (x.alive) forbid(x.cost);
  for (Link& link : network.links)
    if (link.u >= 0) forbid(link.cost);
}

}  // namespace plait::solve
