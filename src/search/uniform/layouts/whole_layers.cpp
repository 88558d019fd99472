#include "search/uniform/layouts/whole_layers.h"

#include <algorithm>
#include <cmath>

namespace plait {
namespace {

constexpr int kCellHalvings = 14;
constexpr double kRounding = 1e-9;  // relative; a layer more finds room rather than one less

bool have_room(const std::vector<StagesOfAKind>& kinds, int layers, double step) {
  double room = 0;
  double taken = HUGE_VAL;  // by the head
  for (const StagesOfAKind& kind : kinds) {
    if (kind.count <= 0) continue;
    const auto within = [&](double time) {
      return kind.layer > 0 ? std::floor(time / kind.layer * (1 + kRounding)) : HUGE_VAL;
    };
    const double all = std::min(within(step), static_cast<double>(layers));
    room += kind.count * all;
    if (step * (1 + kRounding) >= kind.head)
      taken = std::min(taken, all - std::min(all, within(std::max(0.0, step - kind.head))));
  }
  return room - taken >= layers;
}

}  // namespace

double least_with_whole_layers(const std::vector<StagesOfAKind>& kinds, int layers, double low,
                               double high) {
  if (low >= high || have_room(kinds, layers, low)) return low;
  if (!std::isfinite(high)) {
    for (high = std::max(2 * low, 1e-6); !have_room(kinds, layers, high);) high *= 2;
  } else if (!have_room(kinds, layers, high)) {
    return high;
  }
  for (int i = 0; i < kCellHalvings; ++i) {
    const double middle = (low + high) / 2;
    (have_room(kinds, layers, middle) ? high : low) = middle;
  }
  return low;
}

}  // namespace plait
