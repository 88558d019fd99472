#include "search/uniform/orders/order_graph.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

namespace plait {

int OrderGraph::place_of(Place place, const std::function<bool(const Place&)>& may) {
  const auto [at, is_new] =
      known_.try_emplace({place.parts, place.stage, place.ends_host}, static_cast<int>(-1));
  if (is_new && may(place)) {
    at->second = static_cast<int>(places_.size());
    places_.push_back(std::move(place));
  }
  return at->second;
}

// Runs of parts that hold whole groups change places; the last one may not be complete.
void OrderGraph::sort_groups(int devices, std::vector<NodePart>& parts) {
  std::vector<std::vector<NodePart>> runs;
  int count = 0;
  for (const NodePart& part : parts) {
    if (count % devices == 0) runs.emplace_back();
    runs.back().push_back(part);
    count += part.count;
  }
  std::ranges::sort(runs.begin(), runs.end() - (count % devices == 0 ? 0 : 1));
  parts.clear();
  for (const std::vector<NodePart>& run : runs) parts.insert(parts.end(), run.begin(), run.end());
}

std::optional<OrderGraph> OrderGraph::of(const Shape& shape,
                                         const std::function<bool(const Place&)>& may) {
  OrderGraph graph;
  int all = shape.all_devices;
  for (std::size_t k = 0; k < shape.mix.size() && shape.all_devices == 0; ++k)
    all += shape.mix[k] * shape.devices[k];
  if (all == 0) return std::nullopt;
  const auto is_priced = [&](int kind) {
    return !shape.is_priced.empty() && shape.is_priced[kind];
  };
  // By how many devices are listed.
  std::map<int, std::map<State, int>> levels;
  levels[0][{std::vector<int>(shape.mix.size(), 0), {}}] = 0;
  while (!levels.empty() && levels.begin()->first < all) {
    const auto level = levels.extract(levels.begin());
    const int before = level.key();
    for (const auto& [state, from] : level.mapped())
      for (int k = 0; k < static_cast<int>(shape.mix.size()); ++k) {
        // A stage has no more hosts of a kind than there are.
        const auto here = std::ranges::count(state.open, k, &NodePart::kind);
        if (std::max<long>(state.listed[k], here) >= shape.mix[k]) continue;
        if (before + shape.devices[k] > all) continue;
        State to = state;
        if (!is_priced(k)) ++to.listed[k];
        Edge edge{from, 0, k, {}};
        int stage = before / shape.stage_devices;
        int open = before % shape.stage_devices;
        bool is_possible = true;
        for (int first = 0; first < shape.devices[k] && is_possible;) {
          const int count = std::min(shape.devices[k] - first, shape.stage_devices - open);
          to.open.push_back({k, first, count});
          first += count;
          open += count;
          sort_groups(shape.group_devices, to.open);
          if (open < shape.stage_devices) continue;
          const int place =
              graph.place_of({std::exchange(to.open, {}), stage++, first == shape.devices[k]}, may);
          edge.places.push_back(place);
          is_possible = place >= 0;
          open = 0;
        }
        if (!is_possible) continue;
        if (graph.edges_.size() >= shape.most_edges) return std::nullopt;
        const auto [at, is_new] =
            levels[before + shape.devices[k]].try_emplace(std::move(to), graph.states_);
        if (is_new) ++graph.states_;
        edge.to = at->second;
        graph.edges_.push_back(std::move(edge));
      }
  }
  graph.join_ends(levels);
  graph.kinds_ = static_cast<int>(shape.mix.size());
  return graph;
}

// States in which all is listed are one, whatever hosts were left out.
void OrderGraph::join_ends(const std::map<int, std::map<State, int>>& levels) {
  std::set<int> ends;
  for (const auto& [devices, level] : levels)
    for (const auto& [state, at] : level)
      if (state.open.empty()) ends.insert(at);
  if (ends.empty()) return;
  last_ = *ends.begin();
  for (Edge& edge : edges_)
    if (ends.contains(edge.to)) edge.to = last_;
}

// By state: over the stages that are complete there.
std::vector<double> OrderGraph::sums(const std::vector<double>& cost) const {
  std::vector<double> sum(states_, HUGE_VAL);
  sum[0] = 0;
  for (const Edge& edge : edges_) {
    double own = sum[edge.from];
    for (const int place : edge.places) own += cost[place];
    sum[edge.to] = std::min(sum[edge.to], own);
  }
  return sum;
}

double OrderGraph::least(const std::vector<double>& cost) const {
  return last_ < 0 ? HUGE_VAL : sums(cost)[last_];
}

OrderGraph::Priced OrderGraph::least_priced(const std::vector<double>& cost,
                                            const std::vector<double>& prices) const {
  Priced out{HUGE_VAL, std::vector<int>(kinds_)};
  if (last_ < 0) return out;
  std::vector<double> sum(states_, HUGE_VAL);
  std::vector<const Edge*> via(states_, nullptr);
  sum[0] = 0;
  for (const Edge& edge : edges_) {
    double own = sum[edge.from] + prices[edge.kind];
    for (const int place : edge.places) own += cost[place];
    if (own >= sum[edge.to]) continue;
    sum[edge.to] = own;
    via[edge.to] = &edge;
  }
  out.least = sum[last_];
  for (const Edge* edge = via[last_]; edge != nullptr; edge = via[edge->from])
    ++out.hosts[edge->kind];
  return out;
}

std::vector<double> OrderGraph::least_before(const std::vector<double>& cost) const {
  const std::vector<double> sum = sums(cost);
  std::vector<double> out(places_.size(), HUGE_VAL);
  for (const Edge& edge : edges_) {
    double own = sum[edge.from];
    for (const int place : edge.places) {
      out[place] = std::min(out[place], own);
      own += cost[place];
    }
  }
  return out;
}

std::vector<double> OrderGraph::least_after(const std::vector<double>& cost) const {
  std::vector<double> sum(states_, HUGE_VAL);
  if (last_ >= 0) sum[last_] = 0;
  std::vector<double> out(places_.size(), HUGE_VAL);
  for (auto edge = edges_.rbegin(); edge != edges_.rend(); ++edge) {
    double own = sum[edge->to];
    for (auto place = edge->places.rbegin(); place != edge->places.rend(); ++place) {
      out[*place] = std::min(out[*place], own);
      own += cost[*place];
    }
    sum[edge->from] = std::min(sum[edge->from], own);
  }
  return out;
}

OrderGraph::Placed OrderGraph::least_placed(int most, const Advance& advance) const {
  const Placed nothing(static_cast<std::size_t>(most) + 1, HUGE_VAL);
  if (last_ < 0) return nothing;
  std::vector<Placed> states(states_);
  states[0] = nothing;
  states[0][0] = 0;
  Placed after;
  for (const Edge& edge : edges_) {
    if (states[edge.from].empty()) continue;
    Placed own = states[edge.from];
    for (const int place : edge.places) {
      after.assign(nothing.begin(), nothing.end());
      advance(place, own, after);
      std::swap(own, after);
    }
    Placed& to = states[edge.to];
    if (to.empty()) {
      to = std::move(own);
      continue;
    }
    for (std::size_t n = 0; n < own.size(); ++n) to[n] = std::min(to[n], own[n]);
  }
  return states[last_].empty() ? nothing : states[last_];
}

}  // namespace plait
