#include "search/auto/fit_first.h"

#include <algorithm>
#include <cmath>

namespace plait {
namespace {

constexpr std::size_t kMostKept = 12;

// The last stages of a pipeline.
struct Suffix {
  int left = 0;  // units [0, left) are open
  std::vector<int> used;
  PipelineSuffix tail;
  std::vector<int> options;         // last stage of the pipeline first
  std::vector<PlacedStage> stages;  // the same
  double crowding = 0;              // open units over those that there seems to be room for
};

class FitFirst {
 public:
  FitFirst(const Space& space, StageTable& table, const std::function<bool()>& stop)
      : space_(space),
        table_(table),
        stop_(stop),
        units_(space.problem().model.unit_count()),
        max_stages_(space.max_stages(table.settings())) {}

  std::optional<Pipelined> run() {
    measure_room();
    Suffix root;
    root.left = units_;
    root.used.assign(space_.pools().size(), 0);
    if (crowding(root.left, root.used) > 1) return std::nullopt;
    std::vector<Suffix> front{root};
    while (!front.empty()) {
      std::vector<Suffix> longer;
      for (const Suffix& suffix : front) {
        if (stop_()) return std::nullopt;
        if (auto whole = extend(suffix, longer)) return whole;
      }
      std::ranges::stable_sort(longer, {}, &Suffix::crowding);
      if (longer.size() > kMostKept) longer.resize(kMostKept);
      front = std::move(longer);
    }
    return std::nullopt;
  }

 private:
  // Units that a device of each pool can hold, when used best in a stage that no other follows.
  void measure_room() {
    room_.assign(space_.pools().size(), 0);
    for (int o = 0; o < table_.option_count() && !stop_(); ++o) {
      const StageOption& option = table_.option_at(o);
      RunCosts* runs = table_.first_runs(o);
      if (runs == nullptr) continue;
      const double each = 1.0 * most_units(*runs, units_, 0) / option.devices();
      for (const Take& take : option.takes) room_[take.pool] = std::max(room_[take.pool], each);
    }
  }

  double crowding(int left, const std::vector<int>& used) const {
    double room = 0;
    for (std::size_t p = 0; p < used.size(); ++p)
      room += (space_.pools()[p].size() - used[p]) * room_[p];
    return left == 0 ? 0 : room > 0 ? left / room : HUGE_VAL;
  }

  // The most units that fit in front of unit `end` when so many stages follow.
  int most_units(RunCosts& runs, int end, int after) const {
    int good = 0;
    int bad = end + 1;
    while (bad - good > 1) {
      const int middle = (good + bad) / 2;
      (runs.choose({end - middle, end}, after) ? good : bad) = middle;
    }
    return good;
  }

  std::optional<Pipelined> extend(const Suffix& suffix, std::vector<Suffix>& longer) {
    const int after = suffix.tail.stages;
    if (after == max_stages_) return std::nullopt;
    std::vector<int> begin;
    for (int o = 0; o < table_.option_count(); ++o) {
      if (!table_.place(o, suffix.used, begin)) continue;
      RunCosts& runs = table_.runs(o, begin);
      int size = most_units(runs, suffix.left, after);
      // What is left must do for the stages that are asked for.
      size = std::min(size, suffix.left - std::max(0, space_.min_stages() - after - 1));
      if (size <= 0) continue;
      if (const auto& pinned = space_.pins().stages; !pinned.empty())
        size = pinned[pinned.size() - 1 - after];
      if (size > suffix.left) continue;
      const UnitRange units{suffix.left - size, suffix.left};
      const auto choice = runs.choose(units, after);
      if (!choice) continue;
      Suffix next = suffix;
      const StageOption& option = table_.option_at(o);
      for (std::size_t i = 0; i < begin.size(); ++i)
        next.used[option.takes[i].pool] = begin[i] + option.takes[i].devices;
      next.left = units.begin;
      next.crowding = crowding(next.left, next.used);
      if (next.crowding > 1) continue;
      const Seconds send =
          after > 0 ? table_.hand_over(o, suffix.options.back(), suffix.left) : Seconds(0);
      next.tail.prepend(*choice, send, table_.rhythm());
      next.options.push_back(o);
      next.stages.push_back({option, begin, units, choice->recompute});
      if (next.left == 0 && next.tail.stages >= space_.min_stages()) return whole(next);
      if (next.left > 0) longer.push_back(std::move(next));
    }
    return std::nullopt;
  }

  static Pipelined whole(const Suffix& suffix) {
    return {{suffix.stages.rbegin(), suffix.stages.rend()}, suffix.tail.step()};
  }

  const Space& space_;
  StageTable& table_;
  const std::function<bool()>& stop_;
  int units_;
  int max_stages_;
  std::vector<double> room_;  // by pool
};

}  // namespace

std::optional<Pipelined> fit_first(const Space& space, StageTable& table,
                                   const std::function<bool()>& stop) {
  return FitFirst(space, table, stop).run();
}

}  // namespace plait
