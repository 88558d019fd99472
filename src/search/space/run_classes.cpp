#include "search/space/run_classes.h"

#include <unordered_map>

namespace plait {

RunClasses::RunClasses(const Model& model) : units_(model.unit_count()) {
  if (units_ > kMostUnits || units_ == 0) return;
  std::vector<int> symbol(model.units.begin(), model.units.end());
  int next = static_cast<int>(model.kinds.size());
  symbol.front() = next++;
  symbol.back() = next++;
  for (const Tie& tie : model.ties) {
    symbol[tie.first] = next++;
    symbol[tie.second] = next++;
  }
  class_.assign(static_cast<std::size_t>(units_ + 1) * (units_ + 1), -1);
  // A run is the run without its last unit, and that unit.
  std::unordered_map<long long, int> known;
  for (int begin = 0; begin < units_; ++begin) {
    int shorter = -1;
    for (int end = begin + 1; end <= units_; ++end) {
      const long long key = static_cast<long long>(shorter + 1) * (next + 1) + symbol[end - 1];
      const auto [at, is_new] = known.try_emplace(key, count());
      if (is_new) firsts_.push_back({begin, end});
      shorter = at->second;
      class_[begin * (units_ + 1) + end] = shorter;
    }
  }
}

}  // namespace plait
