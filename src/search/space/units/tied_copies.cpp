#include "search/space/units/tied_copies.h"

#include <algorithm>
#include <map>

namespace plait {

std::vector<bool> ties_at_a_distance(const Model& model) {
  std::map<int, int> of_distance;
  std::map<int, int> of_owner;
  for (const Tie& tie : model.ties) {
    ++of_distance[tie.second - tie.first];
    ++of_owner[tie.first];
  }
  std::vector<bool> at_distance;
  at_distance.reserve(model.ties.size());
  for (const Tie& tie : model.ties) {
    const int distance = tie.second - tie.first;
    at_distance.push_back(distance > 0 && of_distance[distance] > of_owner[tie.first]);
  }
  return at_distance;
}

void TiedCopies::Uses::sum() {
  std::ranges::sort(list_);
  std::vector<std::pair<int, double>> sums;
  double all = 0;
  for (const auto& [unit, parameters] : list_) {
    all += parameters;
    if (sums.empty() || sums.back().first != unit) sums.emplace_back(unit, all);
    sums.back().second = all;
  }
  list_ = std::move(sums);
}

double TiedCopies::Uses::before(int unit) const {
  const auto after = std::ranges::lower_bound(list_, unit, {}, &std::pair<int, double>::first);
  return after == list_.begin() ? 0 : std::prev(after)->second;
}

TiedCopies::TiedCopies(const Model& model) {
  const std::vector<bool> at_distance = ties_at_a_distance(model);
  std::map<int, Uses> by_owner;
  std::map<int, Uses> by_distance;
  for (std::size_t i = 0; i < model.ties.size(); ++i) {
    const Tie& tie = model.ties[i];
    Uses& uses = at_distance[i] ? by_distance[tie.second - tie.first] : by_owner[tie.first];
    uses.add(tie.second, tie.parameters);
  }
  for (auto& [unit, uses] : by_owner) {
    uses.sum();
    owners_.push_back({unit, std::move(uses)});
  }
  for (auto& [units, uses] : by_distance) {
    uses.sum();
    Distance distance{units, std::move(uses), {}};
    for (const auto& [second, sum] : distance.uses.list()) {
      const int first = second - units;
      if (distance.uses.between(first, first + 1) < distance.uses.between(second, second + 1))
        distance.heads.push_back(first);
    }
    distances_.push_back(std::move(distance));
  }
}

double TiedCopies::of(const UnitRange& run) const {
  double copies = 0;
  for (const Owner& owner : owners_)
    if (owner.unit < run.begin || owner.unit >= run.end)
      copies += owner.uses.between(run.begin, run.end);
  for (const Distance& distance : distances_)
    copies += distance.uses.between(run.begin, std::min(run.end, run.begin + distance.units));
  return copies;
}

int TiedCopies::next_owner(const UnitRange& run) const {
  int next = -1;
  for (const Owner& owner : owners_)
    if (owner.unit < run.begin && owner.uses.between(run.begin, run.end) > 0)
      next = std::max(next, owner.unit);
  for (const Distance& distance : distances_) {
    const int limit = std::min(run.begin, run.end - distance.units);
    const auto after = std::ranges::lower_bound(distance.heads, limit);
    if (after != distance.heads.begin()) next = std::max(next, *std::prev(after));
  }
  return next;
}

}  // namespace plait
