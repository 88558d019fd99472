#include "search/bounds.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/error.h"

namespace plait {
namespace {

// Models of more units than this, unless they repeat one kind, are bounded by work alone.
constexpr int kMostUnitsForAllRuns = 48;

// Relative excess of whole units over work split at will, for which fewest_rounds is tabulated.
constexpr std::array<double, 9> kExcess{0, 0.01, 0.02, 0.04, 0.07, 0.12, 0.2, 0.4, 0.8};

}  // namespace

Bounds::Bounds(const Space& space, const PlanSettings& settings, Schedule schedule,
               StageCosts& costs)
    : space_(space), settings_(settings), schedule_(schedule), costs_(costs) {
  const std::vector<int>& kind_of = space.problem().model.units;
  const int units = static_cast<int>(kind_of.size());
  // Units of one kind cost the same.
  std::vector<int> first_of_kind(space.problem().model.kinds.size(), -1);
  for (int u = units - 1; u >= 0; --u) first_of_kind[kind_of[u]] = u;
  std::vector<std::vector<double>> in_pipeline(costs.option_count());  // [option][kind]
  std::vector<std::vector<double>> in_step(costs.option_count());
  std::vector<double> fastest(first_of_kind.size(), HUGE_VAL);
  for (int o = 0; o < costs.option_count(); ++o) {
    // What a run of units saves against its units one by one is latency; count it for none.
    Seconds latency;
    for (int u = 0; u + 1 < units; ++u)
      if (u == 0 || kind_of[u] != kind_of[u - 1] || kind_of[u + 1] != kind_of[u])
        latency = std::max(latency, costs.run_time(o, {u, u + 1}, -1).finish +
                                        costs.run_time(o, {u + 1, u + 2}, -1).finish -
                                        costs.run_time(o, {u, u + 2}, -1).finish);
    for (std::size_t k = 0; k < first_of_kind.size(); ++k) {
      const int u = first_of_kind[k];
      const StageTime unit = u < 0 ? StageTime{} : costs.run_time(o, {u, u + 1}, -1);
      const Seconds finish = std::max(Seconds(0), unit.finish - latency);
      in_pipeline[o].push_back(unit.total().value);
      in_step[o].push_back(unit.total().value + finish.value / settings.micro_batches);
      fastest[k] = std::min(fastest[k], unit.total().value);
    }
  }
  pipeline_ = economy_of(in_pipeline);
  step_ = economy_of(in_step);

  const std::vector<double>& spend = pipeline_.least_spend;
  const double average = spend.back() / units;
  double least = average;  // spend of a unit that is not tiny
  least_latency_.emplace_back();
  tiny_units_.push_back(0);
  large_units_.push_back(1);
  for (int u = 0; u < units; ++u) {
    least_latency_.push_back(least_latency_.back() + Seconds(fastest[kind_of[u]]));
    const double own = spend[u + 1] - spend[u];
    const bool tiny = own < 0.3 * average;
    if (!tiny) least = std::min(least, own);
    tiny_units_.push_back(tiny_units_.back() + (tiny ? 1 : 0));
    large_units_.push_back(std::max(1.0, spend[u + 1] / least));
  }
}

Bounds::Economy Bounds::economy_of(const std::vector<std::vector<double>>& time) const {
  const std::vector<int>& kind_of = space_.problem().model.units;
  Economy economy;
  economy.device_price.assign(space_.pools().size(), 0);
  for (int o = 0; o < costs_.option_count(); ++o) {
    const std::vector<Take>& takes = costs_.option_at(o).takes;
    if (takes.size() > 1) continue;
    double whole = 0;
    for (const int kind : kind_of) whole += time[o][kind];
    double& price = economy.device_price[takes.front().pool];
    price = std::max(price, 1 / (whole * takes.front().devices));
  }
  std::vector<double> spend(space_.problem().model.kinds.size(), HUGE_VAL);
  for (int o = 0; o < costs_.option_count(); ++o) {
    double price = 0;
    for (const Take& take : costs_.option_at(o).takes)
      price += take.devices * economy.device_price[take.pool];
    for (std::size_t k = 0; k < spend.size(); ++k)
      spend[k] = std::min(spend[k], price * time[o][k]);
  }
  economy.least_spend.push_back(0);
  for (const int kind : kind_of)
    economy.least_spend.push_back(economy.least_spend.back() + spend[kind]);
  return economy;
}

Seconds Bounds::at_will(const Economy& economy, int left, std::span<const int> used) const {
  double worth = 0;
  for (std::size_t p = 0; p < used.size(); ++p)
    worth += (space_.pools()[p].size() - used[p]) * economy.device_price[p];
  return worth > 0 ? Seconds(economy.least_spend[left] / worth) : Seconds(left == 0 ? 0 : HUGE_VAL);
}

Seconds Bounds::any_step() const {
  const std::vector<int> nothing_used(space_.pools().size(), 0);
  const int units = space_.problem().model.unit_count();
  return settings_.micro_batches * at_will(step_, units, nothing_used);
}

// Runs of units that a stage may hold, one for each kind of run that differs in cost.
std::vector<UnitRange> Bounds::runs() const {
  const std::vector<int>& kind_of = space_.problem().model.units;
  const int units = static_cast<int>(kind_of.size());
  int repeated = 0;  // most units that follow each other with the same kind, and where they begin
  int repeated_begin = 0;
  for (int u = 0; u < units;) {
    int end = u;
    while (end < units && kind_of[end] == kind_of[u]) ++end;
    if (end - u > repeated) {
      repeated = end - u;
      repeated_begin = u;
    }
    u = end;
  }
  std::vector<UnitRange> out;
  if (units - repeated <= 4) {
    // What is not repeated stands at the ends: runs inside, runs from each end.
    const int end = repeated_begin + repeated;
    for (int n = 1; n <= repeated; ++n) out.push_back({repeated_begin, repeated_begin + n});
    for (int b = 0; b < repeated_begin; ++b)
      for (int e = b + 1; e <= units; ++e) out.push_back({b, e});
    for (int e = end + 1; e <= units; ++e)
      for (int b = repeated_begin; b < e; ++b) out.push_back({b, e});
  } else if (units <= kMostUnitsForAllRuns) {
    for (int b = 0; b < units; ++b)
      for (int e = b + 1; e <= units; ++e) out.push_back({b, e});
  }
  return out;
}

std::vector<Bounds::Step> Bounds::make_steps(int after) {
  struct Hold {
    double time;
    int pool;
    double per_device;  // worth held per device of the pool
  };
  std::vector<Hold> holds;
  for (const UnitRange& run : runs()) {
    const double worth = pipeline_.least_spend[run.end] - pipeline_.least_spend[run.begin];
    for (int o = 0; o < costs_.option_count(); ++o) {
      const double time = costs_.run_time(o, run, after).total().value;
      if (time == HUGE_VAL) continue;
      // A mixed stage counts against its pools in proportion to their devices' worth.
      double price = 0;
      for (const Take& take : costs_.option_at(o).takes)
        price += take.devices * pipeline_.device_price[take.pool];
      for (const Take& take : costs_.option_at(o).takes)
        holds.push_back({time, take.pool, worth * pipeline_.device_price[take.pool] / price});
    }
  }
  std::ranges::stable_sort(holds, {}, &Hold::time);
  std::vector<Step> steps;
  Step now{0, std::vector<double>(space_.pools().size(), 0)};
  for (const Hold& hold : holds) {
    if (hold.per_device <= now.per_device[hold.pool] * (1 + 1e-12)) continue;
    now.per_device[hold.pool] = hold.per_device;
    now.time = hold.time;
    if (!steps.empty() && steps.back().time == now.time)
      steps.back() = now;
    else
      steps.push_back(now);
  }
  return steps;
}

const std::vector<Bounds::Step>& Bounds::steps(int after) {
  // Any open stage keeps at least after + 1 micro-batches; rounded down to a power of four.
  const unsigned live = static_cast<unsigned>(std::min(settings_.micro_batches, after + 1));
  const auto level = (static_cast<std::size_t>(std::bit_width(live)) - 1) / 2;
  if (steps_.size() <= level) steps_.resize(level + 1);
  if (steps_[level].empty()) steps_[level] = make_steps((1 << 2 * level) - 1);
  return steps_[level];
}

Seconds Bounds::slowest_stage(int left, int after, std::span<const int> used) {
  const Seconds split = at_will(pipeline_, left, used);
  if (left == 0) return split;
  const std::vector<Step>& all = steps(after);
  if (all.empty()) return split;
  const auto holds = [&](const Step& step) {
    double worth = 0;
    for (std::size_t p = 0; p < used.size(); ++p)
      worth += (space_.pools()[p].size() - used[p]) * step.per_device[p];
    return worth >= pipeline_.least_spend[left] * (1 - 1e-9);
  };
  const auto at = std::ranges::partition_point(all, [&](const Step& s) { return !holds(s); });
  const Seconds whole = at == all.end() ? Seconds(HUGE_VAL) : Seconds(at->time);
  return std::max(split, whole);
}

// How long a pipeline over `left` more units takes at least, in multiples of Y: the time of its
// slowest open stage with work split at will, (1 + excess) Y with whole units. Suppose n stages of
// e Y each stand between the known stages and the slowest open one. Each holds a unit, which takes
// devices from the slowest one: it takes at least z Y, z = max((1 - r) / (1 - r / e), 1 + excess),
// r = n / units left. It is k-th from the end, k = after + n + 1, and by the closed form of 1F1B
//   k < m:   length >= 2 (R + n e Y) + (m - k + 1) z Y
//   k >= m:  length >= R + n e Y + (1 + (m - 1) / 2) z Y, since max(f, b) >= x / 2.
// The least over n and e of each; units that cost next to nothing may be stages for free.
Bounds::Rounds Bounds::rounds(int after, int left, double excess) {
  std::size_t level = 0;
  while (level + 1 < kExcess.size() && kExcess[level + 1] <= excess) ++level;
  if (static_cast<int>(rounds_.size()) <= after) rounds_.resize(after + 1);
  if (rounds_[after].empty()) rounds_[after].resize(pipeline_.least_spend.size());
  std::vector<Rounds>& row = rounds_[after][left];
  if (row.empty()) row.resize(kExcess.size());
  Rounds& known = row[level];
  if (known.made) return known;

  known.made = true;
  const double m = settings_.micro_batches;
  const int free = tiny_units_[left];
  const double whole = 1 + kExcess[level];
  constexpr int kSteps = 24;
  for (int n = 0; n < left; ++n) {
    const double r = n / large_units_[left];
    if (r >= 1) break;
    const double k = after + n + 1;
    for (int step = 1; step <= kSteps; ++step) {
      const double e = r + (1 - r) * step / kSteps;
      // One step less of e in the sum, so that the grid does not miss the least value.
      const double sum = n * (r + (1 - r) * (step - 1) / kSteps);
      const double z = std::max((1 - r) / (1 - r / e), whole);
      if (k < m) known.twice = std::min(known.twice, 2 * sum + std::max(0.0, m - k + 1 - free) * z);
      if (k + free >= m) known.once = std::min(known.once, sum + (1 + (m - 1) / 2) * z);
    }
  }
  return known;
}

Seconds Bounds::open_length(Seconds known, int after, int left, double excess, Seconds split) {
  const Rounds least = rounds(after, left, excess);
  return std::min(2 * known + least.twice * split, known + least.once * split);
}

Seconds Bounds::open_units(const Tail& tail, int left, std::span<const int> used) {
  if (left == 0 || schedule_ != Schedule::one_f_one_b) return tail.total;
  return open_length(tail.total, tail.stages + 1, left, 0, at_will(pipeline_, left, used));
}

Seconds Bounds::step(const Tail& tail, int left, std::span<const int> used) {
  const Seconds split = at_will(pipeline_, left, used);
  const Seconds slowest = slowest_stage(left, tail.stages, used);
  if (slowest == Seconds(HUGE_VAL)) return slowest;
  const Seconds open = std::max(least_latency_[left], slowest);
  const Seconds bound = std::max(tail.length(schedule_, settings_.micro_batches, open),
                                 settings_.micro_batches * at_will(step_, left, used));
  if (schedule_ != Schedule::one_f_one_b) return bound;
  return std::max(bound, open_length(tail.total, tail.stages, left, slowest / split - 1, split));
}

}  // namespace plait
