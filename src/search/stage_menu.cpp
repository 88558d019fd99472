#include "search/stage_menu.h"

#include <algorithm>
#include <cmath>

#include "cost/schedule.h"

namespace plait {

StageMenu::StageMenu(const Space& space, const CostEngine& engine, const PlanSettings& settings,
                     Schedule schedule)
    : space_(space),
      engine_(engine),
      settings_(settings),
      schedule_(schedule),
      tables_(
          [this](const ReplicaShape& shape) -> const UnitTable& { return engine_.table(shape); }),
      options_(space.stage_options(settings)),
      frames_(options_.size()) {
  find_bounds();
}

bool StageMenu::place(int o, std::span<const int> used, std::vector<int>& begin) const {
  begin.clear();
  for (const Take& take : options_[o].takes) {
    const int at = space_.aligned(take.pool, used[take.pool], options_[o].tensor);
    if (at + take.devices > space_.pools()[take.pool].size()) return false;
    begin.push_back(at);
  }
  return true;
}

const SpanFrame& StageMenu::frame(int o, const std::vector<int>& begin) {
  const StageOption& option = options_[o];
  // Nodes of a pool are alike, so only the place inside the first node matters.
  std::size_t place = 0;
  for (std::size_t i = 0; i < begin.size(); ++i) {
    const int per_node = space_.pools()[option.takes[i].pool].per_node;
    place = place * per_node + begin[i] % per_node;
  }
  std::vector<std::unique_ptr<SpanFrame>>& frames = frames_[o];
  if (frames.size() <= place) frames.resize(place + 1);
  if (!frames[place]) {
    const Stage stage = space_.stage_of({option, begin, {}, Recompute::none});
    frames[place] = std::make_unique<SpanFrame>(engine_.problem(), settings_, stage.devices,
                                                option.tensor, option.data, stage.shares, tables_);
  }
  return *frames[place];
}

StageMenu::Choice StageMenu::cost(const SpanFrame& frame, const UnitRange& units,
                                  Recompute recompute) const {
  const UnitCost time = frame.time(units, recompute);
  return {{time.forward_total(), time.backward_total()}, recompute};
}

bool StageMenu::fits(const SpanFrame& frame, const UnitRange& units, Recompute recompute,
                     int after) const {
  // Enough stages for the stage to be as far from the end as it is; the stages before it do not
  // matter to the schedules that the menu is used with.
  const int live = chunks_in_flight(schedule_, after + 1, 0, settings_.micro_batches, 1);
  const double tied = tied_copies(engine_.problem().model, {&units, 1});
  for (int r = 0; r < frame.replica_count(); ++r)
    if (frame.memory(r, units, recompute, tied).spare(live) < Bytes(0)) return false;
  return true;
}

std::optional<StageMenu::Choice> StageMenu::choose(const SpanFrame& frame, const UnitRange& units,
                                                   int after) const {
  for (const Recompute recompute : space_.recomputes())
    if (fits(frame, units, recompute, after)) return cost(frame, units, recompute);
  return std::nullopt;
}

Seconds StageMenu::least_stage(int i, std::span<const int> used) const {
  double worth = 0;
  for (std::size_t p = 0; p < used.size(); ++p)
    worth += (space_.pools()[p].size() - used[p]) * device_price_[p];
  return worth > 0 ? Seconds(least_spend_[i] / worth) : Seconds(i == 0 ? 0 : HUGE_VAL);
}

// The least G such that a pipeline over `left` more units takes G times least_stage() longer than
// twice its tail: m - k for one more stage, and no less for more of them unless m is small against
// the units left, when short stages before a long one may help:
//   G = min over n, e of 2 n e + (m - k - n) (1 - r) / (1 - r / e),  r = n / units left
double StageMenu::fewest_rounds(int after, int left) const {
  if (static_cast<int>(rounds_.size()) <= after) rounds_.resize(after + 1);
  std::vector<double>& row = rounds_[after];
  if (row.empty()) row.assign(least_spend_.size(), -1);
  double& known = row[left];
  if (known >= 0) return known;
  const double rounds = settings_.micro_batches - after - tiny_units_[left];
  const double units = large_units_[left];
  known = std::max(0.0, rounds);
  constexpr int kSteps = 32;
  for (int n = 1; n < left && n < rounds; ++n) {
    const double r = n / units;
    if (r >= 1) break;
    for (int step = 1; step <= kSteps; ++step) {
      const double e = r + (1 - r) * step / kSteps;
      known = std::min(known, 2 * n * e + (rounds - n) * (1 - r) / (1 - r / e));
    }
    if (rounds > units / 3) break;  // then one long stage is best
  }
  return known;
}

Seconds StageMenu::bound(const Tail& tail, int left, std::span<const int> used) const {
  const double m = settings_.micro_batches;
  const Seconds slowest = least_stage(left, used);
  const Seconds open = std::max(least_latency_[left], slowest);
  Seconds bound = tail.length(schedule_, settings_.micro_batches, open);
  if (schedule_ == Schedule::one_f_one_b) {
    bound = std::max(bound, tail.total + (1 + (m - 1) / 2) * slowest);
    bound = std::max(bound, 2 * tail.total + fewest_rounds(tail.stages, left) * slowest);
  }
  return bound;
}

void StageMenu::find_bounds() {
  const int units = engine_.problem().model.unit_count();
  const std::vector<int> nothing_used(space_.pools().size(), 0);
  std::vector<std::vector<double>> time;  // [option][unit], fastest recompute
  std::vector<double> fastest(units, HUGE_VAL);
  std::vector<int> begin;
  for (int o = 0; o < static_cast<int>(options_.size()); ++o) {
    time.emplace_back(units, HUGE_VAL);
    if (!place(o, nothing_used, begin)) continue;
    const SpanFrame& on = frame(o, begin);
    for (int u = 0; u < units; ++u) {
      for (const Recompute recompute : space_.recomputes())
        time[o][u] = std::min(time[o][u], cost(on, {u, u + 1}, recompute).total().value);
      fastest[u] = std::min(fastest[u], time[o][u]);
    }
  }

  // The price of a pool's device: what it does of the whole model in a second when used best.
  device_price_.assign(space_.pools().size(), 0);
  for (std::size_t o = 0; o < options_.size(); ++o) {
    if (options_[o].takes.size() > 1) continue;
    double whole = 0;
    for (const double t : time[o]) whole += t;
    double& price = device_price_[options_[o].takes.front().pool];
    price = std::max(price, 1 / (whole * options_[o].takes.front().devices));
  }
  std::vector<double> spend(units, HUGE_VAL);
  for (int u = 0; u < units; ++u) {
    for (std::size_t o = 0; o < options_.size(); ++o) {
      double price = 0;
      for (const Take& take : options_[o].takes) price += take.devices * device_price_[take.pool];
      spend[u] = std::min(spend[u], price * time[o][u]);
    }
  }
  least_latency_.emplace_back();
  least_spend_.push_back(0);
  tiny_units_.push_back(0);
  large_units_.push_back(1);
  double least = HUGE_VAL;  // spend of a unit that is not tiny
  for (int u = 0; u < units; ++u) {
    least_spend_.push_back(least_spend_.back() + spend[u]);
    least_latency_.push_back(least_latency_.back() + Seconds(fastest[u]));
    const bool tiny = spend[u] < 0.3 * least_spend_.back() / (u + 1);
    if (!tiny) least = std::min(least, spend[u]);
    tiny_units_.push_back(tiny_units_.back() + (tiny ? 1 : 0));
    large_units_.push_back(std::max(1.0, least_spend_.back() / least));
  }
}

}  // namespace plait
