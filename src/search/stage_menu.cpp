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
      options_(space.stage_options(settings)) {
  find_bounds();
}

std::optional<std::vector<int>> StageMenu::place(int o, const std::vector<int>& used) const {
  std::vector<int> begin;
  for (const Take& take : options_[o].takes) {
    const int at = space_.aligned(take.pool, used[take.pool], options_[o].tensor);
    if (at + take.devices > space_.pools()[take.pool].size()) return std::nullopt;
    begin.push_back(at);
  }
  return begin;
}

const SpanFrame& StageMenu::frame(int o, const std::vector<int>& begin) {
  const StageOption& option = options_[o];
  // Nodes of a pool are alike, so only the place inside the first node matters.
  std::vector<int> offset = begin;
  for (std::size_t i = 0; i < offset.size(); ++i)
    offset[i] %= space_.pools()[option.takes[i].pool].per_node;
  const auto key = std::make_pair(o, offset);
  const auto it = frames_.find(key);
  if (it != frames_.end()) return it->second;
  const Stage stage = space_.stage_of({option, begin, {}, Recompute::none});
  return frames_
      .emplace(key, SpanFrame(engine_.problem(), settings_, stage.devices, option.tensor,
                              option.data, stage.shares, tables_))
      .first->second;
}

StageMenu::Choice StageMenu::cost(const SpanFrame& frame, const UnitRange& units,
                                  Recompute recompute) const {
  const UnitCost time = frame.time(units, recompute);
  return {recompute, time.forward_total(), time.backward_total()};
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

Seconds StageMenu::least_stage(int i, const std::vector<int>& used) const {
  double worth = 0;
  for (std::size_t p = 0; p < used.size(); ++p)
    worth += (space_.pools()[p].size() - used[p]) * device_price_[p];
  return worth > 0 ? Seconds(least_spend_[i] / worth) : Seconds(i == 0 ? 0 : HUGE_VAL);
}

void StageMenu::find_bounds() {
  const int units = engine_.problem().model.unit_count();
  const std::vector<int> nothing_used(space_.pools().size(), 0);
  std::vector<std::vector<double>> time;  // [option][unit], fastest recompute
  std::vector<double> fastest(units, HUGE_VAL);
  for (int o = 0; o < static_cast<int>(options_.size()); ++o) {
    time.emplace_back(units, HUGE_VAL);
    const auto begin = place(o, nothing_used);
    if (!begin) continue;
    const SpanFrame& on = frame(o, *begin);
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
  least_latency_.emplace_back();
  least_spend_.push_back(0);
  for (int u = 0; u < units; ++u) {
    double spend = HUGE_VAL;
    for (std::size_t o = 0; o < options_.size(); ++o) {
      double price = 0;
      for (const Take& take : options_[o].takes) price += take.devices * device_price_[take.pool];
      spend = std::min(spend, price * time[o][u]);
    }
    least_spend_.push_back(least_spend_.back() + spend);
    least_latency_.push_back(least_latency_.back() + Seconds(fastest[u]));
  }
}

}  // namespace plait
