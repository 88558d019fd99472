#include "search/label_search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace plait {
namespace {

constexpr int kNobody = -1;

// A suffix of a pipeline: its first stage, and the suffix after that.
struct Label {
  Tail tail;
  int first_unit = 0;
  std::vector<int> used;  // devices of each pool
  int option = 0;         // of the first stage
  std::vector<int> begin;
  Recompute recompute = Recompute::none;
  int units_end = 0;
  int next = kNobody;  // in the arena
  Seconds promise;     // expected length of the whole; smaller is better
  Seconds bound;       // least length of the whole
};

class LabelSearch {
 public:
  LabelSearch(const Space& space, StageMenu& menu, const LabelOptions& options,
              const std::function<bool()>& stop)
      : space_(space),
        menu_(menu),
        options_(options),
        stop_(stop),
        m_(menu.settings().micro_batches),
        incumbent_(options.incumbent),
        max_stages_(space.max_stages(menu.settings())) {}

  LabelResult run() {
    Label root;
    root.first_unit = space_.problem().model.unit_count();
    root.used.assign(space_.pools().size(), 0);
    arena_.push_back(root);
    std::vector<int> open{0};
    for (int stages = 1; stages <= max_stages_ && !open.empty() && !stop_(); ++stages) {
      std::map<std::pair<int, std::vector<int>>, std::vector<int>> front;
      for (const int parent : open) expand(parent, front);
      open = narrowed(front);
    }
    for (const int label : open) dropped_ = std::min(dropped_, arena_[label].bound);
    return finish();
  }

 private:
  void expand(int parent, std::map<std::pair<int, std::vector<int>>, std::vector<int>>& front) {
    const int after = arena_[parent].tail.stages;
    const int end = arena_[parent].first_unit;
    for (int o = 0; o < static_cast<int>(menu_.options().size()); ++o) {
      const auto begin = menu_.place(o, arena_[parent].used);
      if (!begin) continue;
      const SpanFrame& frame = menu_.frame(o, *begin);
      for (int from = end - 1; from >= 0; --from) {
        const UnitRange units{from, end};
        if (!space_.allows(units, after)) continue;
        const auto choice = menu_.choose(frame, units, after);
        if (!choice) break;                                         // more units need more memory
        if (!add(parent, o, *begin, units, *choice, front)) break;  // and more time
      }
    }
  }

  // False when the stage is too slow already, so that no longer one needs to be looked at.
  bool add(int parent, int o, const std::vector<int>& begin, const UnitRange& units,
           const StageMenu::Choice& choice,
           std::map<std::pair<int, std::vector<int>>, std::vector<int>>& front) {
    Label label;
    label.tail = arena_[parent].tail;
    label.tail.prepend(choice, m_);
    const Seconds now = label.tail.bound(menu_.schedule(), m_, Seconds(0));
    if (now > incumbent_) return false;
    label.first_unit = units.begin;
    label.used = arena_[parent].used;
    for (std::size_t i = 0; i < begin.size(); ++i) {
      const Take& take = menu_.options()[o].takes[i];
      label.used[take.pool] = begin[i] + take.devices;
    }
    label.option = o;
    label.begin = begin;
    label.recompute = choice.recompute;
    label.units_end = units.end;
    label.next = parent;
    if (units.begin == 0) {
      if (label.tail.stages < space_.min_stages()) return true;
      label.bound = now;
      complete(label);
      return true;
    }
    if (label.tail.stages == max_stages_) return true;
    judge(label);
    if (label.bound > incumbent_) return true;
    offer(std::move(label), front);
    return true;
  }

  // Bound and promise of a suffix from what is left to place on what is left of the devices.
  void judge(Label& label) const {
    const int left = label.first_unit;
    const int units = space_.problem().model.unit_count();
    const Seconds open = menu_.least_latency(left);
    const Seconds slowest = menu_.least_stage(left, label.used);
    const Tail& tail = label.tail;
    label.bound = tail.bound(menu_.schedule(), m_, open);
    // The slowest of the open stages is k-th from the end for some k; see docs/planners.md#bounds.
    const int most = std::min(max_stages_, tail.stages + left);
    const double rest = std::max(1.0, m_ - most + 1.0);
    label.bound = std::max(label.bound, 2 * tail.total + rest * slowest);
    const double share = static_cast<double>(units) / (units - left);
    const Seconds steady = std::max(tail.slack, (m_ - 1.0) * slowest);
    label.promise = std::max(label.bound, tail.total * share + steady);
  }

  void offer(Label&& label, std::map<std::pair<int, std::vector<int>>, std::vector<int>>& front) {
    std::vector<int>& rivals = front[{label.first_unit, label.used}];
    const auto no_better = [](const Tail& a, const Tail& b) {  // a than b
      return a.total >= b.total && a.slack >= b.slack && a.most_forward >= b.most_forward &&
             a.most_backward >= b.most_backward;
    };
    for (const int rival : rivals)
      if (no_better(label.tail, arena_[rival].tail)) return;
    std::erase_if(rivals, [&](int rival) { return no_better(arena_[rival].tail, label.tail); });
    rivals.push_back(static_cast<int>(arena_.size()));
    arena_.push_back(std::move(label));
  }

  std::vector<int> narrowed(
      const std::map<std::pair<int, std::vector<int>>, std::vector<int>>& front) {
    std::vector<int> all;
    for (const auto& [key, labels] : front) all.insert(all.end(), labels.begin(), labels.end());
    if (static_cast<int>(all.size()) > options_.width) {
      std::ranges::stable_sort(all, {}, [&](int label) { return arena_[label].promise; });
      for (std::size_t i = options_.width; i < all.size(); ++i)
        dropped_ = std::min(dropped_, arena_[all[i]].bound);
      all.resize(options_.width);
    }
    return all;
  }

  void complete(const Label& label) {
    const auto shorter = [](const Label& a, const Label& b) { return a.bound < b.bound; };
    complete_.insert(std::ranges::upper_bound(complete_, label, shorter), label);
    if (static_cast<int>(complete_.size()) > options_.keep) complete_.pop_back();
    if (static_cast<int>(complete_.size()) == options_.keep)
      incumbent_ = std::min(incumbent_, complete_.back().bound);
  }

  LabelResult finish() const {
    LabelResult result;
    result.lower_bound = dropped_;
    for (const Label& label : complete_) {
      result.lower_bound = std::min(result.lower_bound, label.bound);
      Pipelined pipeline;
      pipeline.length = label.bound;
      for (const Label* at = &label; at->next != kNobody; at = &arena_[at->next])
        pipeline.stages.push_back({menu_.options()[at->option],
                                   at->begin,
                                   {at->first_unit, at->units_end},
                                   at->recompute});
      result.pipelines.push_back(std::move(pipeline));
    }
    // What was cut off by the incumbent is no shorter than it.
    result.lower_bound = std::min(result.lower_bound, incumbent_);
    return result;
  }

  const Space& space_;
  StageMenu& menu_;
  const LabelOptions& options_;
  const std::function<bool()>& stop_;
  int m_;
  Seconds incumbent_;
  int max_stages_;
  std::vector<Label> arena_;
  std::vector<Label> complete_;  // shortest first
  Seconds dropped_ = Seconds(HUGE_VAL);
};

}  // namespace

LabelResult label_search(const Space& space, StageMenu& menu, const LabelOptions& options,
                         const std::function<bool()>& stop) {
  return LabelSearch(space, menu, options, stop).run();
}

}  // namespace plait
