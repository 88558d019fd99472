#include "search/papers/device_groups.h"

#include <algorithm>
#include <set>

namespace plait {
namespace {

using Fused = std::vector<std::vector<int>>;  // groups that move together

int devices_in(const std::vector<int>& fused) {
  return fused.front() * static_cast<int>(fused.size());
}

// Fuses equal neighbours, the smallest first, until few enough are left.
Fused fuse(const std::vector<int>& ascending, int most) {
  Fused groups;
  for (const int size : ascending) groups.push_back({size});
  bool changed = true;
  while (changed && static_cast<int>(groups.size()) > most) {
    changed = false;
    for (std::size_t i = 0; i + 1 < groups.size() && static_cast<int>(groups.size()) > most; ++i) {
      if (groups[i] != groups[i + 1]) continue;
      groups[i].insert(groups[i].end(), groups[i + 1].begin(), groups[i + 1].end());
      groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      changed = true;
    }
    std::ranges::stable_sort(groups, {}, devices_in);
  }
  return groups;
}

class Groupings {
 public:
  Groupings(const GroupRules& rules, const std::function<bool(const std::vector<int>&)>& visit)
      : rules_(rules), visit_(visit) {}

  bool run(int stages) {
    if (stages == 1) return visit_({rules_.devices});
    const double least =
        std::max(rules_.devices / stages, stages / rules_.devices) * rules_.variance;
    for (int size = 1; size <= rules_.devices / 2; size *= 2)
      if (size >= least) sizes_.push_back(size);
    return sizes_.empty() || extend(0, stages, rules_.devices);
  }

 private:
  // Adds `stages` more groups, not smaller than sizes_[from], that take `left` devices.
  bool extend(std::size_t from, int stages, int left) {
    if (stages == 0) return left > 0 || permute();
    for (std::size_t i = from; i < sizes_.size(); ++i) {
      const long size = sizes_[i];
      // All that follow are multiples of this size.
      if (size * stages > left || left % size != 0) break;
      if (size + static_cast<long>(sizes_.back()) * (stages - 1) < left) continue;
      chosen_.push_back(sizes_[i]);
      const bool goes_on = extend(i, stages - 1, left - sizes_[i]);
      chosen_.pop_back();
      if (!goes_on) return false;
    }
    return true;
  }

  bool permute() {
    Fused groups = fuse(chosen_, rules_.max_permute_len);
    std::ranges::sort(groups);
    const bool fused = groups.size() < chosen_.size();
    std::set<std::vector<int>> seen;  // different fusings may read the same
    std::vector<int> list;
    do {
      list.clear();
      for (const std::vector<int>& group : groups)
        list.insert(list.end(), group.begin(), group.end());
      if ((!fused || seen.insert(list).second) && !visit_(list)) return false;
    } while (std::ranges::next_permutation(groups).found);
    return true;
  }

  const GroupRules rules_;
  const std::function<bool(const std::vector<int>&)>& visit_;
  std::vector<int> sizes_;   // ascending
  std::vector<int> chosen_;  // ascending
};

}  // namespace

bool for_each_grouping(const GroupRules& rules, int stages,
                       const std::function<bool(const std::vector<int>&)>& visit) {
  return Groupings(rules, visit).run(stages);
}

}  // namespace plait
