#include "search/auto/uniform_pool_pipelines.h"

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
constexpr double kMostProducts = 20'000;
constexpr std::size_t kMostPartialProducts = 500;  // partial products that are kept beyond that
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
  double rate = 0;  // of all pools together, as in PoolChoice
  int stages = 0;
  double capacity = 0;
  double promise = HUGE_VAL;  // expected step
};

class UniformPoolPipelines {
 public:
  UniformPoolPipelines(const Space& space, StageTable& table, Seconds incumbent,
                       const std::function<bool()>& stop)
      : space_(space),
        table_(table),
        incumbent_(incumbent),
        stop_(stop),
        m_(table.settings().micro_batches),
        units_(space.problem().model.unit_count()),
        max_stages_(space.max_stages(table.settings())),
        way_(table.bounds().least_round_trip()) {}

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
    UnitsRecomputed recompute;
  };

  void list_choices() {
    choices_.resize(space_.pools().size());
    for (int o = 0; o < table_.option_count() && !stop_(); ++o) {
      const StageOption& option = table_.option_at(o);
      if (option.takes.size() > 1) continue;
      const int pool = option.takes.front().pool;
      const StageTime whole = table_.run_time(o, {0, units_});
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
    RunCosts& runs = *table_.first_runs(o);
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
    double products = 1;
    for (const std::vector<PoolChoice>& pool : choices_)
      products *= static_cast<double>(pool.size());
    while (products > kMostProducts) {
      auto largest = std::ranges::max_element(choices_, {}, &std::vector<PoolChoice>::size);
      if (largest->size() <= 2) return combine_in_beam();
      products /= static_cast<double>(largest->size());
      largest->erase(largest->end() - 2);  // the last but "unused"
      products *= static_cast<double>(largest->size());
    }
    combine_all();
  }

  // Every product of the pools' choices, the first pool's changing fastest.
  void combine_all() {
    std::vector<std::size_t> at(choices_.size(), 0);
    for (bool more = true; more;) {
      Combination combination;
      for (std::size_t p = 0; p < choices_.size(); ++p) add(combination, choices_[p][at[p]]);
      keep(std::move(combination));
      more = false;
      for (std::size_t p = 0; p < at.size() && !more; ++p) {
        more = ++at[p] < choices_[p].size();
        if (!more) at[p] = 0;
      }
    }
  }

  // Two choices of each of 16 pools have 65,536 products. Of so many pools one is added after the
  // other, and only the products that promise most are followed.
  void combine_in_beam() {
    std::vector<Combination> partial(1);
    for (std::size_t p = 0; p < choices_.size(); ++p) {
      if (stop_()) return;
      std::vector<Combination> longer;
      for (const Combination& combination : partial)
        for (const PoolChoice& choice : choices_[p]) {
          longer.push_back(combination);
          add(longer.back(), choice);
        }
      partial = std::move(longer);
      if (partial.size() > kMostPartialProducts) narrow(partial, p + 1);
    }
    for (Combination& combination : partial) keep(std::move(combination));
  }

  void add(Combination& combination, const PoolChoice& choice) const {
    combination.pools.push_back(choice);
    combination.rate += choice.rate;
    combination.stages += choice.stages;
    combination.capacity += choice.capacity;
  }

  // Leaves those that promise most if the best choice of each pool from `open` on follows. At most
  // half of them have no room for the model even then.
  void narrow(std::vector<Combination>& partial, std::size_t open) const {
    Combination rest;
    for (std::size_t p = open; p < choices_.size(); ++p) add(rest, choices_[p].front());
    std::ranges::stable_sort(partial, {}, [&](const Combination& c) {
      return promise(c.rate + rest.rate, c.stages + rest.stages);
    });
    std::vector<Combination> kept;
    std::size_t tight = 0;
    for (Combination& combination : partial) {
      const bool has_room = combination.capacity + rest.capacity >= kFull * units_;
      if (!has_room && ++tight > kMostPartialProducts / 2) continue;
      kept.push_back(std::move(combination));
      if (kept.size() == kMostPartialProducts) break;
    }
    partial = std::move(kept);
  }

  void keep(Combination&& combination) {
    const int stages = combination.stages;
    if (stages < std::max(1, space_.min_stages()) || stages > max_stages_ ||
        combination.capacity < kFull * units_)
      return;
    combination.promise = promise(combination.rate, stages);
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
        if (!table_.place(choice.option, used, begin)) return;
        used[p] = begin.front() + table_.option_at(choice.option).takes.front().devices;
        sequence_.push_back({choice.option, begin, &table_.runs(choice.option, begin)});
      }
    }
    if (sequence_.empty()) return;
    runs_.assign(sequence_.size(), {1, {}});
    double low = 0;
    const double wanted = std::min(incumbent_.value, worst_wanted());
    double high = std::isfinite(wanted) ? wanted : 100 * combination.promise;
    // What is longer than the best few is not wanted.
    double filled = std::min(high, worst_wanted() - way_.value);  // the limit of `best`
    if (!fill(Seconds(filled))) return;
    std::vector<Run> best_runs = runs_;
    PipelineSuffix best = tail_;
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

  void add_pipeline(const std::vector<Run>& runs, const PipelineSuffix& tail) {
    Pipelined pipeline{{}, tail.step()};
    if (sequence_.size() > 1)
      pipeline.length +=
          table_.tied(sequence_.back().option, sequence_.back().begin, sequence_.front().option);
    int from = 0;
    for (std::size_t s = sequence_.size(); s-- > 0; from += runs[s].units)
      pipeline.stages.push_back({table_.option_at(sequence_[s].option),
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
    tail_ = PipelineSuffix{};
    int end = units_;
    for (std::size_t s = 0; s < sequence_.size(); ++s) {
      const Slot& slot = sequence_[s];
      const int most = end - static_cast<int>(sequence_.size() - s) + 1;  // the others need one too
      const Seconds send =
          s > 0 ? table_.hand_over(slot.option, sequence_[s - 1].option, end) : Seconds(0);
      PipelineSuffix longest;
      const auto fits = [&](int size) {
        const UnitRange units{end - size, end};
        if (!space_.allows(units, tail_.stages)) return false;
        const auto choice = slot.runs->choose(units, tail_.stages);
        if (!choice) return false;
        PipelineSuffix longer = tail_;
        longer.prepend(*choice, send, table_.rhythm());
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
  StageTable& table_;
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
  PipelineSuffix tail_;                           // of the last fill
  Seconds enough_;                                // the least limit that would have changed it
  std::vector<Pipelined> found_;
};

}  // namespace

std::vector<Pipelined> uniform_pool_pipelines(const Space& space, StageTable& table,
                                              Promising which, Seconds incumbent,
                                              const std::function<bool()>& stop) {
  return UniformPoolPipelines(space, table, incumbent, stop).run(which);
}

}  // namespace plait
