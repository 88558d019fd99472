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
  bounds_ = std::make_unique<Bounds>(space, settings, schedule, *this);
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
  return {{time.forward_total(), time.backward_total(),
           frame.gradient_sync(units) + frame.optimizer(units)},
          recompute};
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

const SpanFrame* StageMenu::first_frame(int o) {
  const std::vector<int> nothing_used(space_.pools().size(), 0);
  std::vector<int> begin;
  return place(o, nothing_used, begin) ? &frame(o, begin) : nullptr;
}

double StageMenu::unit_time(int o, int unit) {
  const SpanFrame* on = first_frame(o);
  double time = HUGE_VAL;
  if (on == nullptr) return time;
  for (const Recompute recompute : space_.recomputes())
    time = std::min(time, cost(*on, {unit, unit + 1}, recompute).total().value);
  return time;
}

double StageMenu::run_time(int o, const UnitRange& units, int after) {
  const SpanFrame* on = first_frame(o);
  if (on == nullptr) return HUGE_VAL;
  const auto choice = choose(*on, units, after);
  return choice ? choice->total().value : HUGE_VAL;
}

}  // namespace plait
