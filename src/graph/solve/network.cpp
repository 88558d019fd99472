#include "graph/solve/network.h"

#include <algorithm>
#include <limits>
#include <map>

#include "base/error.h"

namespace plait::solve {

LinkView Network::view(int link, int from) const {
  const Link& l = links[link];
  const std::size_t columns = variables[l.v].cost.size();
  if (l.u == from) return {l.cost.data(), columns, 1};
  return {l.cost.data(), 1, columns};
}

int Network::link_between(int u, int v) const {
  if (variables[u].arcs.size() > variables[v].arcs.size()) std::swap(u, v);
  for (const Arc& arc : variables[u].arcs)
    if (arc.to == v) return arc.link;
  return -1;
}

void Network::add_link(int u, int v, std::vector<Amount> cost) {
  PLAIT_CHECK(u != v && cost.size() == variables[u].cost.size() * variables[v].cost.size());
  const int there = link_between(u, v);
  if (there < 0) {
    const int link = static_cast<int>(links.size());
    links.push_back({u, v, std::move(cost)});
    variables[u].arcs.push_back({v, link});
    variables[v].arcs.push_back({u, link});
    return;
  }
  Link& old = links[there];
  const std::size_t rows = variables[u].cost.size(), columns = variables[v].cost.size();
  const bool same = old.u == u;
  for (std::size_t a = 0; a < rows; ++a)
    for (std::size_t b = 0; b < columns; ++b) {
      Amount& into = same ? old.cost[a * columns + b] : old.cost[b * rows + a];
      into = add_costs(into, cost[a * columns + b]);
    }
}

void Network::remove_link(int link) {
  Link& l = links[link];
  for (const int end : {l.u, l.v})
    std::erase_if(variables[end].arcs, [&](const Arc& arc) { return arc.link == link; });
  l = Link{};
}

void Network::keep_choices(int variable, const std::vector<int>& kept) {
  Variable& x = variables[variable];
  const std::size_t before = x.cost.size();
  const auto keep = [&](auto& list) {
    for (std::size_t i = 0; i < kept.size(); ++i) list[i] = list[kept[i]];
    list.resize(kept.size());
  };
  for (const Arc& arc : x.arcs) {
    Link& l = links[arc.link];
    const std::size_t other = variables[arc.to].cost.size();
    if (l.u == variable) {
      for (std::size_t i = 0; i < kept.size(); ++i)
        std::copy_n(l.cost.begin() + kept[i] * other, other, l.cost.begin() + i * other);
    } else {
      std::size_t to = 0;
      for (std::size_t b = 0; b < other; ++b)
        for (const int k : kept) l.cost[to++] = l.cost[b * before + k];
    }
    l.cost.resize(other * kept.size());
  }
  keep(x.cost);
  keep(x.label);
  for (Load& load : x.loads) keep(load.usage);
  x.tidy = false;
}

namespace {

// The loads as a step function: disjoint pieces in ascending order.
std::vector<Load> disjoint(const std::vector<Load>& loads, std::size_t choices) {
  std::vector<int> cuts;
  for (const Load& load : loads) {
    cuts.push_back(load.begin);
    cuts.push_back(load.end);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  const auto at = [&](int row) {
    return std::lower_bound(cuts.begin(), cuts.end(), row) - cuts.begin();
  };
  std::vector<Amount> sum(cuts.size() * choices, 0);
  for (const Load& load : loads) {
    Amount* from = sum.data() + (at(load.begin) * choices);
    Amount* to = sum.data() + (at(load.end) * choices);
    for (std::size_t k = 0; k < choices; ++k) {
      from[k] += load.usage[k];
      to[k] -= load.usage[k];
    }
  }
  std::vector<Load> pieces;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    Amount* now = sum.data() + (i * choices);
    if (i > 0)
      for (std::size_t k = 0; k < choices; ++k) now[k] += now[k - choices];
    pieces.push_back({cuts[i], cuts[i + 1], std::vector<Amount>(now, now + choices)});
  }
  return pieces;
}

bool is_disjoint(const std::vector<Load>& loads) {
  for (std::size_t i = 1; i < loads.size(); ++i)
    if (loads[i].begin < loads[i - 1].end) return false;
  return true;
}

}  // namespace

void Network::tidy_loads(int variable) {
  Variable& x = variables[variable];
  if (x.tidy) return;
  x.tidy = true;
  std::erase_if(x.loads, [](const Load& load) { return load.begin >= load.end; });
  if (!is_disjoint(x.loads)) x.loads = disjoint(std::move(x.loads), x.cost.size());
  std::vector<Load> left;
  for (Load& load : x.loads) {
    const Amount least = *std::min_element(load.usage.begin(), load.usage.end());
    bool differs = false;
    for (Amount& usage : load.usage) {
      usage -= least;
      differs = differs || usage > 0;
    }
    if (least != 0)
      for (int row = load.begin; row < load.end; ++row) room[row] -= least;
    if (!differs) continue;
    if (!left.empty() && left.back().end == load.begin && left.back().usage == load.usage)
      left.back().end = load.end;
    else
      left.push_back(std::move(load));
  }
  x.loads = std::move(left);
}

void Network::renumber_rows(const std::vector<int>& to, std::vector<Amount> new_room) {
  room = std::move(new_room);
  for (Variable& x : variables) {
    if (!x.alive) continue;
    for (Load& load : x.loads) {
      load.begin = to[load.begin];
      load.end = to[load.end];
    }
    x.tidy = false;
  }
}

namespace {

// The beginnings after which something ends before anything else begins.
std::vector<std::int64_t> fullest_times(const Instance& instance) {
  std::vector<std::pair<std::int64_t, bool>> events;  // an end comes before a beginning
  for (const Node& node : instance.nodes) {
    if (node.begin >= node.end) continue;
    if (*std::max_element(node.usage.begin(), node.usage.end()) == 0) continue;
    events.emplace_back(node.begin, true);
    events.emplace_back(node.end, false);
  }
  std::sort(events.begin(), events.end());
  std::vector<std::int64_t> times;
  bool grown = false;
  std::int64_t last = 0;
  for (const auto& [time, begins] : events) {
    if (!begins && grown) times.push_back(last);
    grown = begins;
    if (begins) last = time;
  }
  return times;
}

}  // namespace

Network make_network(const Instance& instance) {
  const std::vector<std::int64_t> times = fullest_times(instance);
  const auto row = [&](std::int64_t time) {
    return static_cast<int>(std::lower_bound(times.begin(), times.end(), time) - times.begin());
  };
  Network network;
  network.room.assign(times.size(), instance.usage_limit);
  for (int r = 0; r < network.rows(); ++r) network.row_name.push_back(r);
  network.variables.resize(instance.nodes.size());
  for (std::size_t i = 0; i < instance.nodes.size(); ++i) {
    const Node& node = instance.nodes[i];
    Variable& x = network.variables[i];
    x.cost = node.cost;
    for (int k = 0; k < x.size(); ++k) x.label.push_back(k);
    if (node.begin < node.end && row(node.begin) < row(node.end))
      x.loads.push_back({row(node.begin), row(node.end), node.usage});
  }
  for (const Edge& edge : instance.edges) {
    if (edge.first != edge.second) {
      network.add_link(edge.first, edge.second, edge.cost);
      continue;
    }
    Variable& x = network.variables[edge.first];
    for (std::size_t k = 0; k < x.cost.size(); ++k)
      x.cost[k] = add_costs(x.cost[k], edge.cost[k * x.cost.size() + k]);
  }
  return network;
}

Network compacted(const Network& network, std::vector<int>& origin) {
  Network part;
  part.room = network.room;
  for (int r = 0; r < part.rows(); ++r) part.row_name.push_back(r);
  part.base = network.base;
  part.impossible = network.impossible;
  std::vector<int> place(network.variables.size(), -1);
  origin.clear();
  for (std::size_t v = 0; v < network.variables.size(); ++v) {
    if (!network.variables[v].alive) continue;
    place[v] = static_cast<int>(origin.size());
    origin.push_back(static_cast<int>(v));
    Variable x = network.variables[v];
    x.arcs.clear();
    for (int k = 0; k < x.size(); ++k) x.label[k] = k;
    part.variables.push_back(std::move(x));
  }
  for (const Link& link : network.links)
    if (link.u >= 0) part.add_link(place[link.u], place[link.v], link.cost);
  return part;
}

void recover(const Network& network, std::vector<int>& labels) {
  const auto at = [](const std::vector<int>& list, int label) {
    const auto found = std::find(list.begin(), list.end(), label);
    PLAIT_CHECK(found != list.end());
    return static_cast<std::size_t>(found - list.begin());
  };
  // The last removal first. NOLINTNEXTLINE(modernize-loop-convert): there are no views here.
  for (auto it = network.removals.rbegin(); it != network.removals.rend(); ++it) {
    std::size_t entry = 0;
    if (it->first >= 0) entry = at(it->first_labels, labels[it->first]);
    if (it->second >= 0)
      entry = entry * it->second_labels.size() + at(it->second_labels, labels[it->second]);
    labels[it->variable] = it->table[entry];
  }
}

Position evaluate(const Network& network, const std::vector<int>& position) {
  Position result{network.base, true};
  std::vector<Amount> change(network.room.size() + 1, 0);
  for (std::size_t v = 0; v < network.variables.size(); ++v) {
    const Variable& x = network.variables[v];
    if (!x.alive) continue;
    result.cost = add_costs(result.cost, x.cost[position[v]]);
    for (const Load& load : x.loads) {
      change[load.begin] += load.usage[position[v]];
      change[load.end] -= load.usage[position[v]];
    }
  }
  for (const Link& link : network.links) {
    if (link.u < 0) continue;
    const std::size_t columns = network.variables[link.v].cost.size();
    result.cost = add_costs(result.cost, link.cost[position[link.u] * columns + position[link.v]]);
  }
  Amount now = 0;
  for (std::size_t row = 0; row < network.room.size(); ++row) {
    now += change[row];
    if (now > network.room[row]) result.fits = false;
  }
  return result;
}

}  // namespace plait::solve
