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
  const int units = space.problem().model.unit_count();
  const int options = costs.option_count();
  // Units of one kind cost the same.
  std::vector<int> first_of_kind(space.problem().model.kinds.size(), -1);
  std::vector<std::vector<double>> time(options);  // [option][kind]
  for (int u = 0; u < units; ++u) {
    int& first = first_of_kind[space.problem().model.units[u]];
    if (first < 0) first = u;
  }
  for (int o = 0; o < options; ++o)
    for (const int u : first_of_kind) time[o].push_back(u < 0 ? 0 : costs.unit_time(o, u));

  const std::vector<int>& kind_of = space.problem().model.units;
  device_price_.assign(space.pools().size(), 0);
  for (int o = 0; o < options; ++o) {
    const std::vector<Take>& takes = costs.option_at(o).takes;
    if (takes.size() > 1) continue;
    double whole = 0;
    for (const int kind : kind_of) whole += time[o][kind];
    double& price = device_price_[takes.front().pool];
    price = std::max(price, 1 / (whole * takes.front().devices));
  }

  const std::size_t kinds = first_of_kind.size();
  std::vector<double> spend(kinds, HUGE_VAL);
  std::vector<double> fastest(kinds, HUGE_VAL);
  for (int o = 0; o < options; ++o) {
    double price = 0;
    for (const Take& take : costs.option_at(o).takes)
      price += take.devices * device_price_[take.pool];
    for (std::size_t k = 0; k < kinds; ++k) {
      spend[k] = std::min(spend[k], price * time[o][k]);
      fastest[k] = std::min(fastest[k], time[o][k]);
    }
  }
  least_spend_.push_back(0);
  least_latency_.emplace_back();
  tiny_units_.push_back(0);
  large_units_.push_back(1);
  double average = 0;
  for (const int kind : kind_of) average += spend[kind] / units;
  double least = average;  // spend of a unit that is not tiny
  for (int u = 0; u < units; ++u) {
    const double own = spend[kind_of[u]];
    least_spend_.push_back(least_spend_.back() + own);
    least_latency_.push_back(least_latency_.back() + Seconds(fastest[kind_of[u]]));
    const bool tiny = own < 0.3 * average;
    if (!tiny) least = std::min(least, own);
    tiny_units_.push_back(tiny_units_.back() + (tiny ? 1 : 0));
    large_units_.push_back(std::max(1.0, least_spend_.back() / least));
  }
}

Seconds Bounds::slowest_stage_at_will(int left, std::span<const int> used) const {
  double worth = 0;
  for (std::size_t p = 0; p < used.size(); ++p)
    worth += (space_.pools()[p].size() - used[p]) * device_price_[p];
  return worth > 0 ? Seconds(least_spend_[left] / worth) : Seconds(left == 0 ? 0 : HUGE_VAL);
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
    const double worth = least_spend_[run.end] - least_spend_[run.begin];
    for (int o = 0; o < costs_.option_count(); ++o) {
      const double time = costs_.run_time(o, run, after);
      if (time == HUGE_VAL) continue;
      // A mixed stage counts against its pools in proportion to their devices' worth.
      double price = 0;
      for (const Take& take : costs_.option_at(o).takes)
        price += take.devices * device_price_[take.pool];
      for (const Take& take : costs_.option_at(o).takes)
        holds.push_back({time, take.pool, worth * device_price_[take.pool] / price});
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
  // Any open stage keeps at least after + 1 micro-batches; rounded down to a power of two.
  const unsigned live = static_cast<unsigned>(std::min(settings_.micro_batches, after + 1));
  const auto level = static_cast<std::size_t>(std::bit_width(live)) - 1;
  if (steps_.size() <= level) steps_.resize(level + 1);
  if (steps_[level].empty()) steps_[level] = make_steps((1 << level) - 1);
  return steps_[level];
}

Seconds Bounds::slowest_stage(int left, int after, std::span<const int> used) {
  const Seconds at_will = slowest_stage_at_will(left, used);
  if (left == 0) return at_will;
  const std::vector<Step>& all = steps(after);
  if (all.empty()) return at_will;
  const auto holds = [&](const Step& step) {
    double worth = 0;
    for (std::size_t p = 0; p < used.size(); ++p)
      worth += (space_.pools()[p].size() - used[p]) * step.per_device[p];
    return worth >= least_spend_[left] * (1 - 1e-9);
  };
  const auto at = std::ranges::partition_point(all, [&](const Step& s) { return !holds(s); });
  const Seconds whole = at == all.end() ? Seconds(HUGE_VAL) : Seconds(at->time);
  return std::max(at_will, whole);
}

// The least G such that a pipeline over `left` more units is at least 2 R + G Y long, where Y is
// the time of the slowest stage with work split at will and (1 + excess) Y with whole units. If n
// stages of e Y each stand between the known stages and the slowest open one, then
//   G = min over n, e of max(2 n e + (M - n) (1 - r) / (1 - r / e), 2 n e + (M - n) (1 + excess))
// with M = micro-batches - stages after, and r = n / units left (each short stage holds a unit).
double Bounds::fewest_rounds(int after, int left, double excess) {
  std::size_t level = 0;
  while (level + 1 < kExcess.size() && kExcess[level + 1] <= excess) ++level;
  if (static_cast<int>(rounds_.size()) <= after) rounds_.resize(after + 1);
  if (rounds_[after].empty()) rounds_[after].resize(least_spend_.size());
  std::vector<double>& row = rounds_[after][left];
  if (row.empty()) row.assign(kExcess.size(), -1);
  double& known = row[level];
  if (known >= 0) return known;

  const double rounds = settings_.micro_batches - after - tiny_units_[left];
  const double whole = 1 + kExcess[level];
  known = std::max(0.0, rounds * whole);
  constexpr int kSteps = 24;
  for (int n = 1; n < left && n < rounds; ++n) {
    const double r = n / large_units_[left];
    if (r >= 1) break;
    double best = HUGE_VAL;
    for (int step = 1; step <= kSteps; ++step) {
      const double e = r + (1 - r) * step / kSteps;
      const double at_will = (1 - r) / (1 - r / e);
      // One step less of e on the left, so that the grid does not miss the least value.
      const double before = r + (1 - r) * (step - 1) / kSteps;
      best = std::min(best, 2 * n * before + (rounds - n) * std::max(at_will, whole));
    }
    known = std::min(known, best);
  }
  return known;
}

Seconds Bounds::open_units(const Tail& tail, int left, std::span<const int> used) {
  if (left == 0 || schedule_ != Schedule::one_f_one_b) return tail.total;
  return 2 * tail.total +
         fewest_rounds(tail.stages + 1, left, 0) * slowest_stage_at_will(left, used);
}

Seconds Bounds::pipeline(const Tail& tail, int left, std::span<const int> used) {
  const double m = settings_.micro_batches;
  const Seconds at_will = slowest_stage_at_will(left, used);
  const Seconds slowest = slowest_stage(left, tail.stages, used);
  if (slowest == Seconds(HUGE_VAL)) return slowest;
  const Seconds open = std::max(least_latency_[left], slowest);
  Seconds bound = tail.length(schedule_, settings_.micro_batches, open);
  if (schedule_ != Schedule::one_f_one_b) return bound;
  bound = std::max(bound, tail.total + (1 + (m - 1) / 2) * slowest);
  const double excess = slowest / at_will - 1;
  return std::max(bound, 2 * tail.total + fewest_rounds(tail.stages, left, excess) * at_will);
}

}  // namespace plait
