#include "search/auto/label_search.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <utility>

namespace plait {
namespace {

constexpr int kNobody = -1;
constexpr std::size_t kBuckets = 1 << 10;  // of rivals, to begin with

// A suffix of a pipeline: its first stage, and the suffix after that.
struct Label {
  PipelineSuffix tail;
  UnitRange units;  // of the first stage
  int option = kNobody;
  int last = kNobody;  // option of the last stage of all
  UnitsRecomputed recompute;
  int next = kNobody;        // in the arena
  int next_rival = kNobody;  // the same; of those that may be comparable
  bool dropped = false;      // dominated after it was made
  Seconds bound{};           // least length of the whole
  Seconds promise{};         // expected length of the whole
};

class LabelSearch {
 public:
  LabelSearch(const Space& space, StageTable& table, const LabelOptions& options,
              const std::function<bool()>& stop)
      : space_(space),
        table_(table),
        options_(options),
        stop_(stop),
        rhythm_(table.rhythm()),
        units_(space.problem().model.unit_count()),
        pools_(space.pools().size()),
        max_stages_(space.max_stages(table.settings())),
        incumbent_(options.incumbent),
        least_(UnitsRecomputed::all(space.recomputes().front())) {}

  LabelResult run() {
    Label root;
    root.units = {units_, units_};
    arena_.push_back(root);
    used_.assign(pools_, 0);
    const Seconds left_open = options_.width > 0 ? run_beam() : run_best_first();
    return finish(std::min(left_open, cut_short_));
  }

 private:
  Seconds run_beam() {
    Seconds left_open(HUGE_VAL);
    std::vector<int> front{0};
    while (!front.empty() && !stop_()) {
      made_.clear();
      for (const int label : front) expand(label);
      front.clear();
      for (const int label : made_)
        if (!arena_[label].dropped) front.push_back(label);
      if (static_cast<int>(front.size()) <= options_.width) continue;
      std::ranges::stable_sort(front, {}, [&](int label) { return arena_[label].promise; });
      for (std::size_t i = options_.width; i < front.size(); ++i)
        left_open = std::min(left_open, arena_[front[i]].bound);
      front.resize(options_.width);
    }
    for (const int label : front) left_open = std::min(left_open, arena_[label].bound);
    return left_open;
  }

  Seconds run_best_first() {
    using Entry = std::pair<double, int>;  // bound, label
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    queue.emplace(0, 0);
    while (!queue.empty()) {
      const auto [bound, label] = queue.top();
      if (Seconds(bound) >= incumbent_) break;
      if (evaluations_ >= options_.evaluations || stop_()) return Seconds(bound);
      queue.pop();
      if (arena_[label].dropped) continue;
      made_.clear();
      expand(label);
      for (const int child : made_)
        if (!arena_[child].dropped) queue.emplace(arena_[child].bound.value, child);
    }
    return Seconds(HUGE_VAL);
  }

  // Looks at the clock now and then: models of many units have many runs, each of many layers.
  bool should_stop(int parent) {
    constexpr std::int64_t kBetweenLooks = 64;
    stopped_ = stopped_ || (evaluations_ % kBetweenLooks == 0 && stop_());
    if (stopped_) cut_short_ = std::min(cut_short_, arena_[parent].bound);
    return stopped_;
  }

  void expand(int parent) {
    const int after = arena_[parent].tail.stages;
    const int end = arena_[parent].units.begin;
    if (after == max_stages_) return;
    const PipelineSuffix::SuffixConstants beat(rhythm_, after);
    std::vector<int> begin;
    for (int o = 0; o < static_cast<int>(table_.options().size()); ++o) {
      next_used_.assign(used(parent).begin(), used(parent).end());
      if (!table_.take(o, next_used_, begin)) continue;
      RunCosts& runs = *table_.first_runs(o);
      const Seconds send = after > 0 ? table_.hand_over(o, arena_[parent].option, end) : Seconds(0);
      table_.bounds().set_rest(next_used_, rest_);
      for (int from = end - 1; from >= 0; --from) {
        const UnitRange units{from, end};
        if (!space_.allows(units, after)) continue;
        if (table_.bounds().hopeless(arena_[parent].tail, from, rest_, incumbent_)) continue;
        if (should_stop(parent)) return;
        ++evaluations_;
        auto choice = runs.choose(units, after);
        if (!choice) {  // more units need more memory, unless they spare a tied copy
          from = space_.tied_copies().next_owner(units) + 1;
          continue;
        }
        if (choice->recompute == least_) choice->least = choice->total();
        if (!add(parent, o, begin, units, *choice, send, beat)) break;  // and more time
      }
    }
  }

  std::span<const int> used(int label) const { return {&used_[label * pools_], pools_}; }

  // False when the stage is too slow already, so that no longer one needs to be looked at.
  bool add(int parent, int o, const std::vector<int>& begin, const UnitRange& units,
           const RunCosts::Choice& choice, Seconds send,
           const PipelineSuffix::SuffixConstants& beat) {
    PipelineSuffix tail = arena_[parent].tail;
    tail.prepend(choice, send, beat);
    if (tail.length() >= incumbent_) return false;
    const int last = arena_[parent].last == kNobody ? o : arena_[parent].last;
    Label label{tail, units, o, last, choice.recompute, parent};
    if (units.begin == 0) {
      label.bound = tail.step();
      if (tail.stages > 1) label.bound += table_.tied(o, begin, last);
      if (tail.stages >= space_.min_stages() && label.bound < incumbent_) complete(label);
      return true;
    }
    const std::uint64_t key = key_of(label);
    if (is_beaten(label, key)) return true;
    label.bound = table_.bounds().step(tail, units.begin, rest_, table_.tied_to(last));
    if (label.bound >= incumbent_) return true;
    if (options_.width > 0) label.promise = promise_of(label);
    keep(label, key);
    return true;
  }

  // If the rest is like what is there: as slow a stage, as much time per unit.
  Seconds promise_of(const Label& label) const {
    const int left = label.units.begin;
    const double share = static_cast<double>(units_) / (units_ - left);
    const Seconds steady =
        std::max(label.tail.slack,
                 (rhythm_.micro_batches - 1.0) * table_.bounds().slowest_stage(left, rest_));
    return std::max(label.bound, label.tail.total * share + steady);
  }

  std::uint64_t key_of(const Label& label) const {
    std::uint64_t hash = 0;
    const auto mix = [&](int value) {
      hash = (hash ^ static_cast<unsigned>(value)) * 0x9E3779B97F4A7C15;
    };
    mix(label.units.begin);
    mix(label.tail.stages);
    mix(label.option);
    return hash >> 32;
  }

  // Rivals are chained by key, modulo the number of chains, which is a power of two.
  int& first_rival(std::uint64_t key) { return first_rival_[key & (first_rival_.size() - 1)]; }

  bool is_beaten(const Label& label, std::uint64_t key) {
    for (int i = first_rival(key); i != kNobody; i = arena_[i].next_rival)
      if (comparable(i, label) && label.tail.no_better_than(arena_[i].tail) &&
          ends_no_later(arena_[i], label) && takes_no_more(used(i), next_used_))
        return true;
    return false;
  }

  void keep(Label& label, std::uint64_t key) {
    for (int* at = &first_rival(key); *at != kNobody;) {
      Label& rival = arena_[*at];
      rival.dropped = comparable(*at, label) && rival.tail.no_better_than(label.tail) &&
                      ends_no_later(label, rival) && takes_no_more(next_used_, used(*at));
      if (rival.dropped)
        *at = rival.next_rival;
      else
        at = &rival.next_rival;
    }
    const int id = static_cast<int>(arena_.size());
    label.next_rival = std::exchange(first_rival(key), id);
    made_.push_back(id);
    arena_.push_back(label);
    used_.insert(used_.end(), next_used_.begin(), next_used_.end());
    if (arena_.size() > first_rival_.size()) double_chains();
  }

  void double_chains() {
    first_rival_.assign(2 * first_rival_.size(), kNobody);
    for (int i = 1; i < static_cast<int>(arena_.size()); ++i)
      if (!arena_[i].dropped)
        arena_[i].next_rival = std::exchange(first_rival(key_of(arena_[i])), i);
  }

  bool comparable(int rival, const Label& label) const {
    return arena_[rival].units.begin == label.units.begin &&
           arena_[rival].tail.stages == label.tail.stages && arena_[rival].option == label.option;
  }
  // Whether a tied embedding takes a no longer than b, with whatever first stage.
  bool ends_no_later(const Label& a, const Label& b) const {
    if (!table_.ends_are_tied() || a.last == b.last) return true;
    const StageOption& own = table_.options()[a.last];
    const StageOption& other = table_.options()[b.last];
    return own.takes.front().pool == other.takes.front().pool && own.tensor >= other.tensor;
  }
  static bool takes_no_more(std::span<const int> a, std::span<const int> b) {
    for (std::size_t p = 0; p < a.size(); ++p)
      if (a[p] > b[p]) return false;
    return true;
  }

  void complete(const Label& label) {
    const auto shorter = [](const Label& a, const Label& b) { return a.bound < b.bound; };
    complete_.insert(std::ranges::upper_bound(complete_, label, shorter), label);
    if (static_cast<int>(complete_.size()) > options_.keep) complete_.pop_back();
    if (static_cast<int>(complete_.size()) == options_.keep)
      incumbent_ = std::min(incumbent_, complete_.back().bound);
  }

  LabelResult finish(Seconds left_open) const {
    LabelResult result;
    // What was cut off reaches the incumbent.
    result.proven = left_open == Seconds(HUGE_VAL);
    result.lower_bound = std::min(left_open, incumbent_);
    for (const Label& label : complete_) {
      result.lower_bound = std::min(result.lower_bound, label.bound);
      Pipelined pipeline{{}, label.bound};
      for (const Label* at = &label; at->next != kNobody; at = &arena_[at->next]) {
        PlacedStage stage{table_.options()[at->option], {}, at->units, at->recompute};
        table_.place(at->option, used(at->next), stage.begin);
        pipeline.stages.push_back(std::move(stage));
      }
      result.pipelines.push_back(std::move(pipeline));
    }
    return result;
  }

  const Space& space_;
  StageTable& table_;
  const LabelOptions& options_;
  const std::function<bool()>& stop_;
  bool stopped_ = false;
  Seconds cut_short_{HUGE_VAL};  // least bound of labels that were not expanded to the end
  ScheduleSetting rhythm_;
  int units_;
  std::size_t pools_;
  int max_stages_;
  Seconds incumbent_;
  UnitsRecomputed least_;  // that a stage may have
  std::vector<Label> arena_;
  std::vector<int> used_;       // devices of each pool that label i and its next ones take
  std::vector<int> next_used_;  // the same of the label being made
  Bounds::Rest rest_;           // what they leave
  std::vector<int> made_;       // labels of the expansion under way
  std::vector<int> first_rival_ = std::vector<int>(kBuckets, kNobody);  // by chain
  std::vector<Label> complete_;                                         // shortest first
  std::int64_t evaluations_ = 0;
};

}  // namespace

LabelResult label_search(const Space& space, StageTable& table, const LabelOptions& options,
                         const std::function<bool()>& stop) {
  return LabelSearch(space, table, options, stop).run();
}

}  // namespace plait
