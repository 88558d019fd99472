#include "graph/solve/descent.h"

namespace plait::solve {
namespace {

class Descent {
 public:
  Descent(const Network& network, std::vector<int>& position)
      : net_(network), position_(position), left_(network.room) {
    for (std::size_t v = 0; v < net_.variables.size(); ++v)
      if (net_.variables[v].alive) take(net_.variables[v], position_[v], 1);
  }

  bool improve(int v) {
    const Variable& x = net_.variables[v];
    cost_ = x.cost;
    for (const Arc& arc : x.arcs) {
      const LinkView link = net_.view(arc.link, v);
      const int other = position_[arc.to];
      for (int k = 0; k < x.size(); ++k) cost_[k] = add_costs(cost_[k], link(k, other));
    }
    work += 16 + x.cost.size() * (1 + x.arcs.size());
    const int now = position_[v];
    int best = now;
    for (int k = 0; k < x.size(); ++k)
      if (cost_[k] < cost_[best] && fits_instead(x, k, now)) best = k;
    if (best == now) return false;
    take(x, now, -1);
    take(x, best, 1);
    position_[v] = best;
    return true;
  }

  std::size_t work = 0;

 private:
  bool fits_instead(const Variable& x, int k, int now) {
    for (const Load& load : x.loads) {
      const Amount more = load.usage[k] - load.usage[now];
      if (more <= 0) continue;
      work += load.end - load.begin;
      for (int r = load.begin; r < load.end; ++r)
        if (more > left_[r]) return false;
    }
    return true;
  }
  void take(const Variable& x, int k, int sign) {
    for (const Load& load : x.loads)
      for (int r = load.begin; r < load.end; ++r) left_[r] -= sign * load.usage[k];
  }

  const Network& net_;
  std::vector<int>& position_;
  std::vector<Amount> left_;
  std::vector<Amount> cost_;
};

}  // namespace

std::size_t descend(const Network& network, std::vector<int>& position) {
  Descent descent(network, position);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t v = 0; v < network.variables.size(); ++v)
      if (network.variables[v].alive && descent.improve(static_cast<int>(v))) changed = true;
  }
  return descent.work;
}

}  // namespace plait::solve
