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
      sends_(space, settings),
      options_(space.stage_options(settings)),
      frames_(options_.size()) {
  if (engine.problem().cluster.device_count() > kExactDevices) drop_dominated_options();
  tied_ = std::make_unique<TiedFloor>(space, options_);
  for (const StageOption& option : options_) tied_to_.push_back(tied_->with_last(option));
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
  const int waiting = schedule_ == Schedule::gpipe ? live - 1 : 0;
  const double tied = tied_copies(engine_.problem().model, {&units, 1});
  for (int r = 0; r < frame.replica_count(); ++r)
    if (frame.memory(r, units, recompute, tied).spare(live, waiting) < Bytes(0)) return false;
  return true;
}

std::optional<StageMenu::Choice> StageMenu::choose(const SpanFrame& frame, const UnitRange& units,
                                                   int after) const {
  for (const Recompute recompute : space_.recomputes())
    if (fits(frame, units, recompute, after)) return cost(frame, units, recompute);
  return std::nullopt;
}

const SpanFrame* StageMenu::first_frame(int o) {
  if (first_frames_.empty()) first_frames_.resize(options_.size());
  std::optional<const SpanFrame*>& first = first_frames_[o];
  if (!first) {
    const std::vector<int> nothing_used(space_.pools().size(), 0);
    std::vector<int> begin;
    first = place(o, nothing_used, begin) ? &frame(o, begin) : nullptr;
  }
  return *first;
}

// On the replica that is slowest over the whole model: a sum over units that no run exceeds.
StageTime StageMenu::alone(const SpanFrame& on, const UnitRange& units) const {
  const Recompute recompute = space_.recomputes().front();
  const UnitRange whole{0, engine_.problem().model.unit_count()};
  int slowest = 0;
  for (int r = 1; r < on.replica_count(); ++r)
    if (on.time_on(r, whole, recompute).total() > on.time_on(slowest, whole, recompute).total())
      slowest = r;
  const UnitCost time = on.time_on(slowest, units, recompute);
  return {time.forward_total(), time.backward_total(),
          on.gradient_sync(units) + on.optimizer(units)};
}

StageTime StageMenu::run_time(int o, const UnitRange& units, int after) {
  const StageTime never{Seconds(HUGE_VAL), Seconds(HUGE_VAL), Seconds(HUGE_VAL)};
  const SpanFrame* on = first_frame(o);
  if (on == nullptr) return never;
  if (after < 0) return alone(*on, units);
  const auto choice = choose(*on, units, after);
  return choice ? StageTime(*choice) : never;
}

// Options that take the same devices differ in how they cut them. One that is slower on every unit
// and needs as much memory for each, in every part, is no better but for what its neighbours have
// to send to it.
void StageMenu::drop_dominated_options() {
  const Model& model = engine_.problem().model;
  std::vector<int> units;  // one of each kind
  for (int k = 0; k < static_cast<int>(model.kinds.size()); ++k) {
    const auto at = std::ranges::find(model.units, k);
    if (at != model.units.end()) units.push_back(static_cast<int>(at - model.units.begin()));
  }
  std::vector<std::vector<double>> traits(options_.size());  // smaller is better
  for (int o = 0; o < option_count(); ++o) {
    const SpanFrame* on = first_frame(o);
    if (on == nullptr) continue;
    for (const int u : units) {
      for (const Recompute recompute : space_.recomputes()) {
        const Choice time = cost(*on, {u, u + 1}, recompute);
        SpanFrame::Memory memory;
        double fixed = 0;
        double saved = 0;
        for (int r = 0; r < on->replica_count(); ++r) {
          memory = on->memory(r, {u, u + 1}, recompute, 0);
          fixed = std::max(fixed, memory.peak(0).value);
          saved = std::max(saved, memory.saved.value);
        }
        traits[o].insert(traits[o].end(), {time.forward.value, time.backward.value,
                                           time.finish.value, fixed, saved});
      }
    }
  }
  const auto same_devices = [&](int a, int b) {
    return std::ranges::equal(
        options_[a].takes, options_[b].takes,
        [](const Take& x, const Take& y) { return x.pool == y.pool && x.devices == y.devices; });
  };
  std::vector<char> keep(options_.size(), 1);
  for (int a = 0; a < option_count(); ++a) {
    if (traits[a].empty()) keep[a] = 0;
    for (int b = 0; b < option_count() && keep[a]; ++b) {
      if (a == b || !keep[b] || traits[b].empty() || !same_devices(a, b)) continue;
      bool beaten = true;
      for (std::size_t i = 0; i < traits[a].size() && beaten; ++i)
        beaten = traits[b][i] <= traits[a][i];
      const bool equal = traits[a] == traits[b];
      if (beaten && (!equal || b < a)) keep[a] = 0;
    }
  }
  std::vector<StageOption> kept;
  std::vector<std::vector<std::unique_ptr<SpanFrame>>> frames;
  for (int o = 0; o < option_count(); ++o) {
    if (keep[o] == 0) continue;
    kept.push_back(options_[o]);
    frames.push_back(std::move(frames_[o]));
  }
  options_ = std::move(kept);
  frames_ = std::move(frames);
  first_frames_.clear();
}

}  // namespace plait
