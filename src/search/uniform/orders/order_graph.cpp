#include "search/uniform/orders/order_graph.h"

#include <algorithm>
#include <cmath>
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

std::optional<OrderGraph> OrderGraph::of(const Shape& shape,
                                         const std::function<bool(const Place&)>& may) {
  OrderGraph graph;
  std::map<State, int> level{{{std::vector<int>(shape.mix.size(), 0), {}}, 0}};
  int hosts = 0;
  for (const int count : shape.mix) hosts += count;
  for (int listed = 0; listed < hosts; ++listed) {
    std::map<State, int> next;
    for (const auto& [state, from] : level) {
      int before = 0;  // devices that are listed
      for (std::size_t k = 0; k < shape.mix.size(); ++k)
        before += state.listed[k] * shape.devices[k];
      for (std::size_t k = 0; k < shape.mix.size(); ++k) {
        if (state.listed[k] == shape.mix[k]) continue;
        State to = state;
        ++to.listed[k];
        Edge edge{from, 0, {}};
        int stage = before / shape.stage_devices;
        int open = before % shape.stage_devices;
        bool is_possible = true;
        for (int first = 0; first < shape.devices[k] && is_possible;) {
          const int count = std::min(shape.devices[k] - first, shape.stage_devices - open);
          to.open.push_back({static_cast<int>(k), first, count});
          first += count;
          open += count;
          if (!shape.parts_in_order) std::ranges::sort(to.open);
          if (open < shape.stage_devices) continue;
          const int place =
              graph.place_of({std::exchange(to.open, {}), stage++, first == shape.devices[k]}, may);
          edge.places.push_back(place);
          is_possible = place >= 0;
          open = 0;
        }
        if (!is_possible) continue;
        if (graph.edges_.size() >= shape.most_edges) return std::nullopt;
        const auto [at, is_new] = next.try_emplace(std::move(to), graph.states_);
        if (is_new) ++graph.states_;
        edge.to = at->second;
        graph.edges_.push_back(std::move(edge));
      }
    }
    level = std::move(next);
  }
  for (const auto& [state, at] : level)
    if (state.open.empty()) graph.last_ = at;
  if (hosts == 0) return std::nullopt;
  return graph;
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

}  // namespace plait
