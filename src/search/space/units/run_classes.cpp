#include "search/space/units/run_classes.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "search/space/units/tied_copies.h"

namespace plait {
namespace {

constexpr int kShort = 320;        // units: a table of all runs takes half a megabyte
constexpr int kMostKept = 60'000;  // classes; as many as 320 units can have at most

// One symbol a unit. The ends and the owners of what is tied have symbols of their own. Of the
// units that use something again, those of one kind read the same if they use the same: whether a
// run keeps a copy depends on whether it has the owner, too, which then tells it apart. Of ties at
// a distance the distance is all: a run has the owner if it begins so many units earlier.
std::vector<int> symbols_of(const Model& model) {
  std::vector<int> symbols(model.units.begin(), model.units.end());
  int next = static_cast<int>(model.kinds.size());
  std::vector<std::vector<std::pair<int, double>>> used_again(model.units.size());
  const std::vector<bool> at_distance = ties_at_a_distance(model);
  for (std::size_t i = 0; i < model.ties.size(); ++i) {
    const Tie& tie = model.ties[i];
    const int owner = at_distance[i] ? tie.first - tie.second : tie.first;  // below 0: a distance
    used_again[tie.second].emplace_back(owner, tie.parameters);
  }
  using Reading = std::pair<int, std::vector<std::pair<int, double>>>;  // kind, what is used again
  std::map<Reading, int> known;
  for (std::size_t u = 0; u < symbols.size(); ++u) {
    if (used_again[u].empty()) continue;
    const auto [at, is_new] = known.try_emplace({symbols[u], used_again[u]}, next);
    if (is_new) ++next;
    symbols[u] = at->second;
  }
  for (std::size_t i = 0; i < model.ties.size(); ++i)
    if (!at_distance[i]) symbols[model.ties[i].first] = next++;
  symbols.front() = next++;
  symbols.back() = next++;
  return symbols;
}

// The ranks of all suffixes in their order, by doubling the length that they are sorted by; each
// time by counting, in proportion to their number.
std::vector<int> suffix_ranks(const std::vector<int>& symbols) {
  const int n = static_cast<int>(symbols.size());
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](int i) { return symbols[i]; });
  std::vector<int> ranks(n);
  for (int i = 1; i < n; ++i)
    ranks[order[i]] = ranks[order[i - 1]] + (symbols[order[i]] != symbols[order[i - 1]] ? 1 : 0);
  std::vector<int> by_rest(n);
  std::vector<int> next(n);
  for (int length = 1; ranks[order[n - 1]] < n - 1; length *= 2) {
    // Those that end within the length come first.
    int place = 0;
    for (int i = std::max(0, n - length); i < n; ++i) by_rest[place++] = i;
    for (const int i : order)
      if (i >= length) by_rest[place++] = i - length;
    std::vector<int> begins(n + 1);
    for (const int rank : ranks) ++begins[rank + 1];
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    for (const int i : by_rest) order[begins[ranks[i]]++] = i;
    const auto key = [&](int i) {
      return std::pair{ranks[i], i + length < n ? ranks[i + length] : -1};
    };
    next[order[0]] = 0;
    for (int i = 1; i < n; ++i)
      next[order[i]] = next[order[i - 1]] + (key(order[i]) != key(order[i - 1]) ? 1 : 0);
    std::swap(ranks, next);
  }
  return ranks;
}

// Units that each suffix has in common with the one before it in their order (Kasai's way).
std::vector<int> common_with_previous(const std::vector<int>& symbols,
                                      const std::vector<int>& ranks,
                                      const std::vector<int>& order) {
  const int n = static_cast<int>(symbols.size());
  std::vector<int> common(n, 0);
  for (int i = 0, length = 0; i < n; ++i) {
    if (ranks[i] == 0) {
      length = 0;
      continue;
    }
    const int j = order[ranks[i] - 1];
    while (i + length < n && j + length < n && symbols[i + length] == symbols[j + length]) ++length;
    common[ranks[i]] = length;
    length = std::max(0, length - 1);
  }
  return common;
}

}  // namespace

RunClasses::RunClasses(const Model& model) : units_(model.unit_count()) {
  if (units_ == 0) return;
  list_starts(symbols_of(model));
  if (count_ > kMostKept) return;
  for (int begin = 0; begin < units_; ++begin)
    for (int end = begin + starts_[begin].repeated + 1; end <= units_; ++end)
      firsts_.push_back({begin, end});
  if (units_ <= kShort) list_table();
}

// Suffixes are taken out of their order from the last unit to the first, so that the neighbours of
// each in that order are those that begin before it; one of them has most in common with it.
void RunClasses::list_starts(const std::vector<int>& symbols) {
  const std::vector<int> ranks = suffix_ranks(symbols);
  std::vector<int> order(units_);
  for (int i = 0; i < units_; ++i) order[ranks[i]] = i;
  std::vector<int> common = common_with_previous(symbols, ranks, order);
  std::vector<int> before(units_);
  std::vector<int> after(units_);
  for (int r = 0; r < units_; ++r) {
    before[r] = r - 1;
    after[r] = r + 1;
  }
  starts_.resize(units_);
  for (int i = units_ - 1; i >= 0; --i) {
    const int r = ranks[i];
    const int with_before = before[r] >= 0 ? common[r] : 0;
    const int with_after = after[r] < units_ ? common[after[r]] : 0;
    starts_[i].repeated = std::max(with_before, with_after);
    if (starts_[i].repeated > 0)
      starts_[i].earlier = order[with_before >= with_after ? before[r] : after[r]];
    if (before[r] >= 0) after[before[r]] = after[r];
    if (after[r] < units_) {
      before[after[r]] = before[r];
      common[after[r]] = std::min(common[after[r]], common[r]);
    }
  }
  for (int i = 0; i < units_; ++i) {
    Start& start = starts_[i];
    // An earlier start whose runs are as long repetitions themselves leads on to its own.
    while (start.repeated > 0 && starts_[start.earlier].repeated >= start.repeated)
      start.earlier = starts_[start.earlier].earlier;
    start.first_class = count_;
    count_ += units_ - i - start.repeated;
  }
}

void RunClasses::list_table() {
  std::vector<int> table(static_cast<std::size_t>(units_ + 1) * (units_ + 1), -1);
  for (int begin = 0; begin < units_; ++begin)
    for (int end = begin + 1; end <= units_; ++end)
      table[begin * (units_ + 1) + end] = static_cast<int>(of({begin, end}));
  table_ = std::move(table);
}

}  // namespace plait
