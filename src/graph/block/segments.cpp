#include "graph/block/segments.h"

#include <algorithm>
#include <map>
#include <set>

#include "graph/block/numbering.h"

namespace plait::graph {
namespace {

using Run = std::vector<std::uint64_t>;

struct Score {
  int kinds = 0;
  int combinations = 0;  // to try of the different runs, at three strategies an element
  int runs = 0;
  friend auto operator<=>(const Score&, const Score&) = default;
};

int combinations_of(int length) {
  int product = 1;
  for (int i = 0; i < length; ++i) product *= 3;
  return product;
}

// Depth first over the sequence, with the set of runs in use as part of the state. A state that was
// left with a score as good is not entered again.
class CoverSearch {
 public:
  CoverSearch(std::span<const std::uint64_t> sequence, std::span<const char> border, int longest)
      : sequence_(sequence), border_(border) {
    for (std::size_t at = 0; at < sequence.size(); ++at) {
      Run run;
      for (int n = 1; n <= longest && at + n <= sequence.size(); ++n) {
        if (n > 1 && border[at + n - 1] != 0) break;
        run.push_back(sequence[at + n - 1]);
        const int id = ids_.try_emplace(run, static_cast<int>(ids_.size())).first->second;
        run_at_.push_back({static_cast<int>(at), n, id});
      }
    }
    first_run_.assign(sequence.size() + 1, static_cast<int>(run_at_.size()));
    for (int i = static_cast<int>(run_at_.size()) - 1; i >= 0; --i) first_run_[run_at_[i].at] = i;
  }

  Cover solve() {
    start_with_single();
    extend(0, {});
    Cover cover;
    cover.lengths = best_lengths_;
    cover.kinds = best_.kinds;
    cover.exact = states_ < kMostStates;
    return cover;
  }

 private:
  struct Placed {
    int at = 0;
    int length = 0;
    int id = 0;
  };
  static constexpr int kMostStates = 60'000;

  // Every element alone: what any cover must beat.
  void start_with_single() {
    best_lengths_.assign(sequence_.size(), 1);
    const std::set<std::uint64_t> different(sequence_.begin(), sequence_.end());
    best_ = {static_cast<int>(different.size()),
             combinations_of(1) * static_cast<int>(different.size()),
             static_cast<int>(sequence_.size())};
  }

  void extend(std::size_t at, Score score) {
    if (at == sequence_.size()) {
      if (score < best_) {
        best_ = score;
        best_lengths_ = lengths_;
      }
      return;
    }
    if (states_ >= kMostStates || !worth(at, score)) return;
    // Runs in use first, the longest first; then new ones, the longest first.
    for (const bool fresh : {false, true}) {
      for (int i = first_run_[at + 1] - 1; i >= first_run_[at]; --i) {
        const Placed& run = run_at_[i];
        if (used_.contains(run.id) == fresh) continue;
        place(run, fresh, score);
      }
    }
  }

  void place(const Placed& run, bool fresh, Score score) {
    ++score.runs;
    if (fresh) {
      ++score.kinds;
      score.combinations += combinations_of(run.length);
      if (score.kinds > best_.kinds ||
          (score.kinds == best_.kinds && score.combinations > best_.combinations))
        return;
      used_.insert(run.id);
    }
    lengths_.push_back(run.length);
    extend(run.at + run.length, score);
    lengths_.pop_back();
    if (fresh) used_.erase(run.id);
  }

  bool worth(std::size_t at, const Score& score) {
    if (!(score < best_)) return false;
    ++states_;
    const auto [it, fresh] = seen_.try_emplace(
        {static_cast<int>(at), std::vector<int>(used_.begin(), used_.end())}, score);
    if (fresh) return true;
    if (it->second <= score) return false;
    it->second = score;
    return true;
  }

  std::span<const std::uint64_t> sequence_;
  std::span<const char> border_;
  std::map<Run, int> ids_;
  std::vector<Placed> run_at_;
  std::vector<int> first_run_;
  std::set<int> used_;
  std::vector<int> lengths_;
  std::vector<int> best_lengths_;
  Score best_;
  std::map<std::pair<int, std::vector<int>>, Score> seen_;
  int states_ = 0;
};

}  // namespace

Cover fewest_kinds(std::span<const std::uint64_t> sequence, std::span<const char> border,
                   int longest) {
  if (sequence.empty()) return {};
  return CoverSearch(sequence, border, longest).solve();
}

Segments find_segments(const Program& program, const Blocks& blocks) {
  std::vector<std::uint64_t> sequence;
  std::vector<char> border;
  std::vector<int> loop;
  for (const Block& block : blocks.blocks) {
    sequence.push_back(block.fingerprint);
    loop.push_back(program.nodes[block.key].loop);
    border.push_back(loop.size() > 1 && loop[loop.size() - 2] != loop.back() ? 1 : 0);
  }
  const Cover cover = fewest_kinds(sequence, border, kLongestSegment);
  Segments made;
  made.exact = cover.exact;
  std::map<Run, int> kinds;
  int at = 0;
  for (const int length : cover.lengths) {
    const Run run(sequence.begin() + at, sequence.begin() + at + length);
    const int kind = kinds.try_emplace(run, static_cast<int>(kinds.size())).first->second;
    made.segments.push_back(
        {at, length, kind, program.trips_of_loop(program.nodes[blocks.blocks[at].key].loop)});
    at += length;
  }
  made.kinds = static_cast<int>(kinds.size());
  return made;
}

}  // namespace plait::graph
