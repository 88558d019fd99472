#include "cost/layer/range_maximum.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace plait {

RangeMaximum::RangeMaximum(const std::vector<Bytes>& values) {
  std::vector<Bytes> runs;
  for (std::size_t u = 0; u < values.size(); ++u) {
    if (u > 0 && values[u] == runs.back()) continue;
    starts_.push_back(static_cast<int>(u));
    runs.push_back(values[u]);
  }
  const std::size_t count = runs.size();
  levels_.push_back(std::move(runs));
  for (std::size_t width = 2; width <= count; width *= 2) {
    const std::vector<Bytes>& half = levels_.back();
    std::vector<Bytes> level;
    level.reserve(count - width + 1);
    for (std::size_t i = 0; i + width <= count; ++i)
      level.push_back(std::max(half[i], half[i + width / 2]));
    levels_.push_back(std::move(level));
  }
}

std::size_t RangeMaximum::run_of(int unit) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(starts_, unit) - starts_.begin()) - 1;
}

Bytes RangeMaximum::most(const UnitRange& range) const {
  PLAIT_CHECK(range.size() > 0);
  const std::size_t first = run_of(range.begin);
  const std::size_t last = run_of(range.end - 1);
  const std::size_t count = last - first + 1;
  const std::vector<Bytes>& level = levels_[std::bit_width(count) - 1];
  return std::max(level[first], level[last + 1 - std::bit_floor(count)]);
}

}  // namespace plait
