#include "graph/solve/branch.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "graph/solve/descent.h"
#include "graph/solve/reduce.h"

namespace plait::solve {
namespace {

constexpr std::size_t kMostHeld = 100'000'000;  // cells of networks that wait for their turn

class Tree {
 public:
  Tree(std::size_t rows, Amount below, const BranchOptions& options, Budget& budget)
      : options_(options), budget_(budget), row_count_(rows) {
    result_.cost = below;
    result_.bound = below;
  }

  void explore(Network net, std::vector<double> prices, Amount bound, int depth) {
    if (budget_.spent()) return leave_open(bound);
    std::vector<Branching> list;
    for (int round = 0;; ++round) {
      reduce(net, {.below = result_.cost});
      budget_.used += 10 * cells(net) + 20 * net.room.size();
      if (net.impossible) return;
      if (nothing_left(net)) return offer(net, std::vector<int>(net.variables.size(), 0));
      Dual dual(net);
      dual.set_prices(at_rows(net, prices));
      tune(net, dual, depth == 0 && round == 0 ? options_.root_sweeps : options_.node_sweeps,
           round == 0 && depth == 0 ? options_.root_scale : 0.2);
      budget_.used += dual.work();
      prices = by_name(net, dual.best_prices());
      bound = std::max(bound, whole_bound(dual.best()));
      if (depth == 0) result_.prices = prices;
      if (bound >= result_.cost) return;
      if (budget_.stopped()) return leave_open(bound);
      const std::size_t before = choices(net);
      const std::size_t gone = prune(net, dual);
      list = rank(net, dual);
      if (budget_.spent()) return leave_open(bound);
      if (gone * 20 < before && !list.empty()) break;
    }
    descend_into(std::move(net), prices, bound, depth, std::move(list));
  }

  BranchResult take() {
    result_.bound = std::min(result_.bound, result_.cost);
    return std::move(result_);
  }

 private:
  struct Branching {
    int variable = -1;
    int label = 0;
    double certainty = 0;
  };

  void leave_open(Amount bound) { result_.bound = std::min(result_.bound, bound); }

  static int alive(const Network& net) {
    int count = 0;
    for (const Variable& x : net.variables) count += x.alive;
    return count;
  }
  static bool nothing_left(const Network& net) { return alive(net) == 0; }
  static std::size_t choices(const Network& net) {
    std::size_t count = 0;
    for (const Variable& x : net.variables)
      if (x.alive) count += x.cost.size();
    return count;
  }

  static std::size_t cells(const Network& net) {
    std::size_t count = 0;
    for (const Link& link : net.links) count += link.cost.size();
    for (const Variable& x : net.variables) count += x.cost.size() * (x.loads.size() + 2);
    return count;
  }

  std::vector<double> at_rows(const Network& net, const std::vector<double>& prices) const {
    std::vector<double> here;
    for (const int name : net.row_name) here.push_back(prices[name]);
    return here;
  }
  std::vector<double> by_name(const Network& net, const std::vector<double>& here) const {
    std::vector<double> prices(row_count_, 0);
    for (std::size_t r = 0; r < here.size(); ++r) prices[net.row_name[r]] = here[r];
    return prices;
  }

  void tune(const Network& net, Dual& dual, int sweeps, double scale) {
    const int patience = 20;
    int stalled = 0;
    double best = -1e300;
    std::vector<int> position;
    for (int i = 0; i < sweeps && scale > 1e-4; ++i) {
      dual.sweep();
      if (dual.bound() > best + 1e-6 * std::abs(best))
        stalled = 0;
      else
        ++stalled;
      best = std::max(best, dual.bound());
      if (whole_bound(best) >= result_.cost) return;
      if (i % 16 == 0) try_fitting(net, dual);
      dual.decode(false, position);
      try_offer(net, position);
      if (stalled > patience) {
        scale *= 0.6;
        stalled = 0;
        dual.restore_best_prices();
        continue;
      }
      const double target = result_.cost < kForbidden ? static_cast<double>(result_.cost)
                                                      : best + 0.1 * std::abs(best);
      dual.step(position, target, scale);
      if (i % 16 == 0 && (budget_.used + dual.work() >= budget_.limit || budget_.spent())) break;
      if (budget_.stopped()) return;  // a sweep of a large network takes long
    }
    dual.restore_best_prices();
    dual.sweep();
    dual.sweep();
    try_fitting(net, dual);
  }

  void try_fitting(const Network& net, Dual& dual) {
    std::vector<int> position;
    if (!dual.decode(true, position)) return;
    budget_.used += descend(net, position);
    try_offer(net, position);
  }

  void try_offer(const Network& net, const std::vector<int>& position) {
    budget_.used += 8 * net.links.size() + net.room.size();
    const Position found = evaluate(net, position);
    if (found.fits && found.cost < result_.cost) offer(net, position);
  }

  void offer(const Network& net, const std::vector<int>& position) {
    const Position found = evaluate(net, position);
    if (!found.fits || found.cost >= result_.cost) return;
    result_.cost = found.cost;
    result_.labels.assign(net.variables.size(), 0);
    for (std::size_t v = 0; v < net.variables.size(); ++v)
      if (net.variables[v].alive) result_.labels[v] = net.variables[v].label[position[v]];
    recover(net, result_.labels);
  }

  // Forbids what cannot be part of an answer that is better than the best one.
  std::size_t prune(Network& net, const Dual& dual) {
    std::size_t gone = 0;
    for (std::size_t v = 0; v < net.variables.size(); ++v) {
      Variable& x = net.variables[v];
      if (!x.alive) continue;
      const double* slack = dual.slack(static_cast<int>(v));
      for (int k = 0; k < x.size(); ++k) {
        if (x.cost[k] >= kForbidden || whole_bound(dual.slack_base() + slack[k]) < result_.cost)
          continue;
        x.cost[k] = kForbidden;
        ++gone;
      }
    }
    for (std::size_t i = 0; i < net.links.size(); ++i) {
      Link& link = net.links[i];
      if (link.u < 0) continue;
      const int columns = net.variables[link.v].size();
      for (std::size_t c = 0; c < link.cost.size(); ++c) {
        const int a = static_cast<int>(c) / columns, b = static_cast<int>(c) % columns;
        if (link.cost[c] < kForbidden &&
            whole_bound(dual.bound() + dual.pair_slack(static_cast<int>(i), a, b)) >= result_.cost)
          link.cost[c] = kForbidden;
      }
    }
    return gone;
  }

  // How much the second best choice of each variable costs above its best one.
  std::vector<Branching> rank(const Network& net, const Dual& dual) const {
    std::vector<Branching> list;
    for (std::size_t v = 0; v < net.variables.size(); ++v) {
      const Variable& x = net.variables[v];
      if (!x.alive) continue;
      const double* slack = dual.slack(static_cast<int>(v));
      const int k = static_cast<int>(std::min_element(slack, slack + x.size()) - slack);
      double second = 1e300;
      int left = 0;
      for (int j = 0; j < x.size(); ++j) {
        if (x.cost[j] >= kForbidden) continue;
        ++left;
        if (j != k) second = std::min(second, slack[j]);
      }
      if (left >= 2) list.push_back({static_cast<int>(v), x.label[k], second});
    }
    std::stable_sort(list.begin(), list.end(), [](const Branching& a, const Branching& b) {
      return a.certainty > b.certainty;
    });
    return list;
  }

  void descend_into(Network net, const std::vector<double>& prices, Amount bound, int depth,
                    std::vector<Branching> list) {
    const bool dive = alive(net) > options_.most_variables;
    list.resize(dive ? std::max<std::size_t>(1, list.size() / 5) : 1);
    const std::size_t size = cells(net);
    if (held_ + size > kMostHeld) return leave_open(bound);
    held_ += size;
    {
      Network part = net;
      for (const Branching& one : list) restrict(part, one, true);
      explore(std::move(part), prices, bound, depth + 1);
    }
    held_ -= size;
    if (dive) return leave_open(bound);
    if (bound >= result_.cost) return;
    restrict(net, list[0], false);
    explore(std::move(net), prices, bound, depth + 1);
  }

  static void restrict(Network& net, const Branching& branching, bool to) {
    Variable& x = net.variables[branching.variable];
    for (int k = 0; k < x.size(); ++k)
      if ((x.label[k] == branching.label) != to) x.cost[k] = kForbidden;
  }

  const BranchOptions& options_;
  Budget& budget_;
  std::size_t row_count_;
  std::size_t held_ = 0;
  BranchResult result_;
};

}  // namespace

BranchResult branch(const Network& root, Amount below, const std::vector<double>& prices,
                    const BranchOptions& options, Budget& budget) {
  Tree tree(root.room.size(), below, options, budget);
  std::vector<double> start = prices;
  start.resize(root.room.size(), 0);
  tree.explore(root, start, 0, 0);
  return tree.take();
}

}  // namespace plait::solve
