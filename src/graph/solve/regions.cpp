#include "graph/solve/regions.h"

#include <algorithm>

#include "base/parallel.h"

namespace plait::solve {

Region cut_region(const Network& network, const std::vector<int>& position,
                  const std::vector<Amount>& left, std::vector<int> variables) {
  Region region;
  std::vector<int> place(network.variables.size(), -1);
  for (std::size_t i = 0; i < variables.size(); ++i) place[variables[i]] = static_cast<int>(i);
  Network& part = region.network;
  part.room = left;
  for (int r = 0; r < part.rows(); ++r) part.row_name.push_back(r);
  for (const int v : variables) {
    const Variable& x = network.variables[v];
    Variable own;
    own.cost = x.cost;
    own.loads = x.loads;
    for (int k = 0; k < x.size(); ++k) own.label.push_back(k);
    for (const Load& load : x.loads)
      for (int r = load.begin; r < load.end; ++r) part.room[r] += load.usage[position[v]];
    for (const Arc& arc : x.arcs) {
      if (place[arc.to] >= 0) continue;
      const LinkView cost = network.view(arc.link, v);
      for (int k = 0; k < x.size(); ++k)
        own.cost[k] = add_costs(own.cost[k], cost(k, position[arc.to]));
    }
    region.now += own.cost[position[v]];
    part.variables.push_back(std::move(own));
  }
  for (const int v : variables)
    for (const Arc& arc : network.variables[v].arcs) {
      const Link& link = network.links[arc.link];
      if (link.u != v || place[link.v] < 0) continue;
      part.add_link(place[v], place[link.v], link.cost);
      region.now += network.view(arc.link, v)(position[v], position[link.v]);
    }
  region.variables = std::move(variables);
  return region;
}

RegionDraw::RegionDraw(const Network& network) : network_(network), by_row_(network.room.size()) {
  for (std::size_t v = 0; v < network.variables.size(); ++v)
    for (const Load& load : network.variables[v].loads)
      for (int r = load.begin; r < load.end; ++r) {
        std::vector<int>& list = by_row_[r];
        if (list.empty() || list.back() != static_cast<int>(v)) list.push_back(static_cast<int>(v));
      }
}

std::vector<int> RegionDraw::near(std::mt19937_64& random, int size) {
  std::vector<char> seen(network_.variables.size(), 0);
  std::vector<int> list{static_cast<int>(random() % network_.variables.size())};
  seen[list[0]] = 1;
  // Growing from a random member gives other shapes than growing from the first one.
  for (int tries = 0; tries < 8 * size && static_cast<int>(list.size()) < size; ++tries) {
    const std::vector<Arc>& arcs = network_.variables[list[random() % list.size()]].arcs;
    if (arcs.empty()) continue;
    const int next = arcs[random() % arcs.size()].to;
    if (seen[next]) continue;
    seen[next] = 1;
    list.push_back(next);
  }
  return list;
}

std::vector<int> RegionDraw::same_rows(std::mt19937_64& random, int size) {
  if (by_row_.empty()) return near(random, size);
  std::vector<int> list = by_row_[random() % by_row_.size()];
  for (std::size_t i = 0; i < list.size(); ++i)
    std::swap(list[i], list[i + random() % (list.size() - i)]);
  if (static_cast<int>(list.size()) > size / 2) list.resize(std::max(1, size / 2));
  std::vector<char> seen(network_.variables.size(), 0);
  for (const int v : list) seen[v] = 1;
  for (std::size_t i = 0; i < list.size() && static_cast<int>(list.size()) < size; ++i)
    for (const Arc& arc : network_.variables[list[i]].arcs) {
      if (seen[arc.to] || static_cast<int>(list.size()) >= size) continue;
      seen[arc.to] = 1;
      list.push_back(arc.to);
    }
  return list;
}

std::vector<int> RegionDraw::in_order(std::mt19937_64& random, int size) {
  const int count = static_cast<int>(network_.variables.size());
  const int first = static_cast<int>(random() % count);
  std::vector<int> list;
  for (int v = first; v < std::min(count, first + size); ++v) list.push_back(v);
  return list;
}

namespace {

std::vector<Amount> room_left(const Network& network, const std::vector<int>& position) {
  std::vector<Amount> left = network.room;
  for (std::size_t v = 0; v < network.variables.size(); ++v)
    for (const Load& load : network.variables[v].loads)
      for (int r = load.begin; r < load.end; ++r) left[r] -= load.usage[position[v]];
  return left;
}

struct Trial {
  std::vector<int> variables;
  BranchResult result;
  Amount now = 0;
  std::size_t work = 0;
  bool complete = false;
};

}  // namespace

std::size_t improve_by_regions(const Network& network, std::vector<int>& position,
                               const std::vector<double>& prices, const RegionOptions& options) {
  Amount cost = evaluate(network, position).cost;
  RegionDraw draw(network);
  std::size_t used = 0;
  double size[3] = {40, 40, 40};
  const int most = static_cast<int>(network.variables.size());
  for (std::uint64_t round = options.seed; used < options.work && cost > options.enough; ++round) {
    if (options.stop && options.stop()) break;
    const std::vector<Amount> left = room_left(network, position);
    std::vector<Trial> trials(options.batch);
    parallel_for(options.batch, options.threads, [&](int i) {
      std::mt19937_64 random(round * 1000 + i + 1);
      Trial& trial = trials[i];
      const int kind = static_cast<int>((round * options.batch + i) % 3);
      const int count = std::min(most, static_cast<int>(size[kind]));
      Region region = cut_region(network, position, left,
                                 kind == 0   ? draw.near(random, count)
                                 : kind == 1 ? draw.same_rows(random, count)
                                             : draw.in_order(random, count));
      Budget budget{options.region_work, 0, options.stop};
      trial.result = branch(region.network, region.now, prices, {100, 20}, budget);
      trial.now = region.now;
      trial.work = budget.used + 100 * count;
      trial.complete = budget.used < budget.limit;
      trial.variables = std::move(region.variables);
    });
    for (int i = 0; i < options.batch; ++i) {
      const Trial& trial = trials[i];
      const int kind = static_cast<int>((round * options.batch + i) % 3);
      used += trial.work + network.links.size();
      size[kind] *= trial.complete ? 1.05 : 0.93;
      size[kind] = std::max(size[kind], 5.0);
      size[kind] = std::min(size[kind], 1.0 * most);
      if (trial.result.cost >= trial.now) continue;
      std::vector<int> changed = position;
      for (std::size_t j = 0; j < trial.variables.size(); ++j)
        changed[trial.variables[j]] = trial.result.labels[j];
      const Position found = evaluate(network, changed);
      if (!found.fits || found.cost >= cost) continue;
      cost = found.cost;
      position = std::move(changed);
    }
  }
  return used;
}

}  // namespace plait::solve
