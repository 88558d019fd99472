#include "graph/solve/branch.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "graph/solve/descent.h"
#include "graph/solve/reduce.h"

namespace plait::solve {
namespace {

class Tree {
 public:
  Tree(std::size_t rows, Amount below, const BranchOptions& options, Budget& budget)
      : options_(options), budget_(budget), row_count_(rows) {
    result_.cost = below;
    result_.bound = below;
  }

  void explore(Network net, std::vector<double> prices, Amount bound, int depth) {
    if (budget_.spent()) return leave_open(bound);
    ++nodes_;
    Branching branching;
    for (int round = 0;; ++round) {
      reduce(net, {.below = result_.cost});
      charge_reduction(net);
      if (net.impossible) return;
      if (nothing_left(net)) return offer(net, std::vector<int>(net.variables.size(), 0));
      Dual dual(net);
      dual.set_prices(at_rows(net, prices));
      tune(net, dual, depth == 0 && round == 0 ? options_.root_sweeps : options_.node_sweeps,
           round == 0 && depth == 0 ? 1.0 : 0.2);
      budget_.used += dual.work();
      prices = by_name(net, dual.best_prices());
      bound = std::max(bound, whole_bound(dual.best()));
      if (depth == 0) result_.prices = prices;
      if (getenv("TRACE")) fprintf(stderr, "depth %d round %d n %d bound %.6g best %.8g nodes %d\n", depth, round, alive(net), (double)bound, (double)result_.cost, nodes_);
      if (bound >= result_.cost) return;
      const std::size_t before = choices(net);
      const std::size_t gone = prune(net, dual);
      branching = choose(net, dual);
      if (budget_.spent()) return leave_open(bound);
      if (gone * 20 < before) break;
    }
    descend_into(std::move(net), prices, bound, depth, branching);
  }

  BranchResult take() {
    result_.bound = std::min(result_.bound, result_.cost);
    return std::move(result_);
  }

 private:
  struct Branching {
    int variable = -1;
    int choice = 0;
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

  void charge_reduction(const Network& net) {
    for (const Link& link : net.links) budget_.used += 4 * link.cost.size();
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
      if (dual.bound() > best + 1e-6 * std::abs(best)) stalled = 0; else ++stalled;
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
      if (i % 32 == 0 && budget_.stop && budget_.stop()) break;
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
    if (getenv("TRACE")) fprintf(stderr, "  FOUND %.10g nodes %d used %.3g\n", (double)result_.cost, nodes_, (double)budget_.used);
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

  // The variable whose other choices cost most, and its best choice.
  Branching choose(const Network& net, const Dual& dual) const {
    Branching best;
    double most = -1;
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
      if (left < 2) continue;
      if (second > most) {
        most = second;
        best = {static_cast<int>(v), k};
      }
    }
    return best;
  }

  void descend_into(Network net, const std::vector<double>& prices, Amount bound, int depth,
                    const Branching& branching) {
    const Variable& x = net.variables[branching.variable];
    const int label = x.label[branching.choice];
    {
      Network one = net;
      restrict(one, branching.variable, label, true);
      explore(std::move(one), prices, bound, depth + 1);
    }
    if (bound >= result_.cost) return;
    restrict(net, branching.variable, label, false);
    explore(std::move(net), prices, bound, depth + 1);
  }

  static void restrict(Network& net, int variable, int label, bool to) {
    Variable& x = net.variables[variable];
    for (int k = 0; k < x.size(); ++k)
      if ((x.label[k] == label) != to) x.cost[k] = kForbidden;
  }

  const BranchOptions& options_;
  Budget& budget_;
  std::size_t row_count_;
  BranchResult result_;
  int nodes_ = 0;
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
