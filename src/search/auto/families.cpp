#include "search/auto/families.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

namespace plait {
namespace {

constexpr int kUnused = -1;
constexpr std::size_t kPerPool = 12;  // options of a pool that are combined
constexpr std::size_t kRoomy = 4;     // of these, at least, can hold the pool's part of the model
constexpr std::size_t kCombinations = 48;  // that are balanced
constexpr std::size_t kFew = 16;           // that promise most
constexpr std::size_t kMostProducts = 20'000;
constexpr std::size_t kOrders = 6;
constexpr int kBisections = 12;
constexpr std::size_t kWanted = 4;  // pipelines
constexpr double kFull = 0.9;       // of the model must seem to fit

struct PoolChoice {
  int option = kUnused;
  int stages = 0;
  double rate = 0;      // models per second of one micro-batch, all stages together
  double capacity = 0;  // units that fit into all stages together, about
};

struct Combination {
  std::vector<PoolChoice> pools;
  double promise = HUGE_VAL;  // expected step
};

class Families {
 public:
  Families(const Space& space, StageMenu& menu, Seconds incumbent,
           const std::function<bool()>& stop)
      : space_(space),
        menu_(menu),
        incumbent_(incumbent),
        stop_(stop),
        m_(menu.settings().micro_batches),
        units_(space.problem().model.unit_count()),
        max_stages_(space.max_stages(menu.settings())),
        way_(menu.bounds().least_round_trip()) {}

  std::vector<Pipelined> run(Promising which) {
    list_choices();
    combine();
    const std::size_t few = std::min(kFew, combinations_.size());
    const std::span<const Combination> all(combinations_);
    for (const Combination& combination :
         which == Promising::most ? all.first(few) : all.subspan(few)) {
      if (stop_() || combination.promise > incumbent_.value) break;
      std::vector<int> order(combination.pools.size());
      std::iota(order.begin(), order.end(), 0);
      std::size_t tried = 0;
      do {
        balance(combination, order);
      } while (++tried < kOrders && std::ranges::next_permutation(order).found);
    }
    std::ranges::stable_sort(found_, {}, &Pipelined::length);
    if (found_.size() > kWanted) found_.resize(kWanted);
    return std::move(found_);
  }

 private:
  struct Slot {
    int option;
    std::vector<int> begin;
    RunCosts* runs;
  };
  struct Run {
    int units = 1;
    Recompute recompute = Recompute::none;
  };

  void list_choices() {
    choices_.resize(space_.pools().size());
    for (int o = 0; o < menu_.option_count(); ++o) {
      const StageOption& option = menu_.option_at(o);
      if (option.takes.size() > 1) continue;
      const int pool = option.takes.front().pool;
      const StageTime whole = menu_.run_time(o, {0, units_});
      if (!std::isfinite(whole.total().value)) continue;
      const int most = std::min(max_stages_, space_.pools()[pool].size() / option.devices());
      // All of the pool, and a stage less or half of it when that leaves a shorter pipeline.
      for (const int stages : {most, most - 1, most / 2})
        if (stages >= 1)
          choices_[pool].push_back({o, stages, stages / whole.total().value, capacity(o, stages)});
    }
    for (std::size_t p = 0; p < choices_.size(); ++p) shorten(p);
  }

  // The choices of a pool by what it alone would promise: the best, and the best of those that can
  // hold its part of the model.
  void shorten(std::size_t p) {
    std::vector<PoolChoice>& pool = choices_[p];
    std::ranges::stable_sort(pool, {},
                             [&](const PoolChoice& c) { return promise(c.rate, c.stages); });
    const double part = units_ * (1.0 * space_.pools()[p].size() / devices());
    std::size_t roomy = 0;
    std::vector<PoolChoice> kept;
    for (const PoolChoice& choice : pool) {
      const bool has_room = choice.capacity >= part;
      roomy += has_room ? 1 : 0;
      if (kept.size() < kPerPool - kRoomy || (has_room && roomy <= kRoomy) ||
          (kept.size() < kPerPool && roomy >= kRoomy))
        kept.push_back(choice);
    }
    pool = std::move(kept);
    pool.push_back({});
  }

  double devices() const {
    double sum = 0;
    for (const Pool& pool : space_.pools()) sum += pool.size();
    return sum;
  }

  // Units that fit into so many stages of an option at the end of a pipeline: the mean of what the
  // last and the first of them can hold, of layers from the first one on.
  double capacity(int o, int stages) {
    RunCosts& runs = *menu_.first_runs(o);
    const auto most = [&](int after) {
      int good = 0;
      int bad = units_;
      while (bad - good > 1) {
        const int middle = (good + bad) / 2;
        (runs.choose({1, 1 + middle}, after) ? good : bad) = middle;
      }
      return good;
    };
    return stages * (most(0) + most(stages - 1)) / 2.0;
  }

  // Stages of equal time y each: (m + stages - 1) y.
  double promise(double rate, int stages) const {
    return rate > 0 ? (m_ + stages - 1.0) / rate : HUGE_VAL;
  }

  void combine() {
    std::size_t products = 1;
    for (const std::vector<PoolChoice>& pool : choices_) products *= pool.size();
    while (products > kMostProducts) {
      auto largest = std::ranges::max_element(choices_, {}, &std::vector<PoolChoice>::size);
      products /= largest->size();
      largest->erase(largest->end() - 2);  // the last but "unused"
      products *= largest->size();
      if (largest->size() <= 2) break;
    }
    std::vector<std::size_t> at(choices_.size(), 0);
    for (bool more = true; more;) {
      Combination combination;
      double rate = 0;
      int stages = 0;
      double capacity = 0;
      for (std::size_t p = 0; p < choices_.size(); ++p) {
        combination.pools.push_back(choices_[p][at[p]]);
        rate += combination.pools.back().rate;
        stages += combination.pools.back().stages;
        capacity += combination.pools.back().capacity;
      }
      combination.promise = promise(rate, stages);
      const bool allowed = stages >= space_.min_stages() && stages <= max_stages_ && stages > 0 &&
                           capacity >= kFull * units_;
      if (allowed) keep(std::move(combination));
      more = false;
      for (std::size_t p = 0; p < at.size() && !more; ++p) {
        more = ++at[p] < choices_[p].size();
        if (!more) at[p] = 0;
      }
    }
  }

  void keep(Combination&& combination) {
    const auto at =
        std::ranges::upper_bound(combinations_, combination.promise, {}, &Combination::promise);
    if (at == combinations_.end() && combinations_.size() >= kCombinations) return;
    combinations_.insert(at, std::move(combination));
    if (combinations_.size() > kCombinations) combinations_.pop_back();
  }

  // Balances the units over the stages of the pools, last pool of `order` first in the pipeline.
  void balance(const Combination& combination, const std::vector<int>& order) {
    sequence_.clear();
    std::vector<int> used(space_.pools().size(), 0);
    std::vector<int> begin;
    for (const int p : order) {
      const PoolChoice& choice = combination.pools[p];
      for (int s = 0; s < choice.stages; ++s) {
        if (!menu_.place(choice.option, used, begin)) return;
        used[p] = begin.front() + menu_.option_at(choice.option).takes.front().devices;
        sequence_.push_back({choice.option, begin, &menu_.runs(choice.option, begin)});
      }
    }
    if (sequence_.empty()) return;
    runs_.assign(sequence_.size(), {1, Recompute::none});
    double low = 0;
    const double wanted = std::min(incumbent_.value, worst_wanted());
    double high = std::isfinite(wanted) ? wanted : 100 * combination.promise;
    // What is longer than the best few is not wanted.
    double filled = std::min(high, worst_wanted() - way_.value);  // the limit of `best`
    if (!fill(Seconds(filled))) return;
    std::vector<Run> best_runs = runs_;
    Tail best = tail_;
    double enough = 0;  // no limit below it is
    for (int i = 0; i < kBisections; ++i) {
      // Other cuts hardly shorten the way through all stages, only the slack.
      if (best.step().value - (best.slack.value - std::max(low, enough)) > wanted) return;
      const double middle = (low + high) / 2;
      // The same units as before find a place if the slack that they have is allowed.
      if (middle >= best.slack.value) {
        high = middle;
      } else if (middle >= enough && fill(Seconds(middle))) {
        high = filled = middle;
        best_runs = runs_;
        best = tail_;
      } else {
        if (middle >= enough) enough = enough_.value;
        low = middle;
      }
    }
    if (high > filled && fill(Seconds(high))) {
      best_runs = runs_;
      best = tail_;
    }
    add_pipeline(best_runs, best);
  }

  void add_pipeline(const std::vector<Run>& runs, const Tail& tail) {
    Pipelined pipeline{{}, tail.step()};
    if (sequence_.size() > 1)
      pipeline.length +=
          menu_.tied(sequence_.back().option, sequence_.back().begin, sequence_.front().option);
    int from = 0;
    for (std::size_t s = sequence_.size(); s-- > 0; from += runs[s].units)
      pipeline.stages.push_back({menu_.option_at(sequence_[s].option),
                                 sequence_[s].begin,
                                 {from, from + runs[s].units},
                                 runs[s].recompute});
    found_.push_back(std::move(pipeline));
  }

  double worst_wanted() const {
    if (found_.size() < kWanted) return HUGE_VAL;
    std::vector<Seconds> lengths;
    for (const Pipelined& pipeline : found_) lengths.push_back(pipeline.length);
    std::ranges::nth_element(lengths, lengths.begin() + kWanted - 1);
    return lengths[kWanted - 1].value;
  }

  // Gives every stage, from the last, as many units as it can take with its slack below the limit.
  // True when all units find a place; else no limit below `enough_` does better.
  bool fill(Seconds limit) {
    enough_ = Seconds(HUGE_VAL);
    tail_ = Tail{};
    int end = units_;
    for (std::size_t s = 0; s < sequence_.size(); ++s) {
      const Slot& slot = sequence_[s];
      const int most = end - static_cast<int>(sequence_.size() - s) + 1;  // the others need one too
      const Seconds send =
          s > 0 ? menu_.hand_over(slot.option, sequence_[s - 1].option, end) : Seconds(0);
      Tail longest;
      const auto fits = [&](int size) {
        const UnitRange units{end - size, end};
        if (!space_.allows(units, tail_.stages)) return false;
        const auto choice = slot.runs->choose(units, tail_.stages);
        if (!choice) return false;
        Tail longer = tail_;
        longer.prepend(*choice, send, menu_.rhythm());
        if (longer.slack > limit) {
          enough_ = std::min(enough_, longer.slack);
          return false;
        }
        longest = longer;
        runs_[s].recompute = choice->recompute;
        return true;
      };
      runs_[s].units = largest(most, runs_[s].units, fits);
      if (runs_[s].units == 0) {
        runs_[s].units = 1;
        return false;
      }
      tail_ = longest;
      end -= runs_[s].units;
    }
    return end == 0;
  }

  // The largest size up to `most` that fits, if all smaller ones do; 0 when none. Looks around
  // `guess` first; what fits last is the answer.
  template <typename Fits>
  static int largest(int most, int guess, const Fits& fits) {
    int good = 0;
    int bad = most + 1;
    int size = std::min(guess, most);
    for (int stride = 1; bad - good > 1; stride *= 2) {
      (fits(size) ? good : bad) = size;
      if (bad > most)
        size = std::min(good + stride, most);
      else
        size = good > 0 ? (good + bad) / 2 : std::max(bad - stride, 1);
    }
    return good;
  }

  const Space& space_;
  StageMenu& menu_;
  Seconds incumbent_;
  const std::function<bool()>& stop_;
  int m_;
  int units_;
  int max_stages_;
  Seconds way_;                                   // least round trip of a micro-batch
  std::vector<std::vector<PoolChoice>> choices_;  // by pool
  std::vector<Combination> combinations_;         // best promise first
  std::vector<Slot> sequence_;                    // last stage of the pipeline first
  std::vector<Run> runs_;                         // that its stages were given last
  Tail tail_;                                     // of the last fill
  Seconds enough_;                                // the least limit that would have changed it
  std::vector<Pipelined> found_;
};

}  // namespace

std::vector<Pipelined> families(const Space& space, StageMenu& menu, Promising which,
                                Seconds incumbent, const std::function<bool()>& stop) {
  return Families(space, menu, incumbent, stop).run(which);
}

}  // namespace plait
