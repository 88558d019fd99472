#include "search/bound/stage_table.h"

#include <algorithm>
#include <cmath>

namespace plait {
namespace {

constexpr StageTime kNever{Seconds(HUGE_VAL), Seconds(HUGE_VAL), Seconds(HUGE_VAL)};

}  // namespace

StageTable::StageTable(const Space& space, const CostEngine& engine, const PlanSettings& settings,
                       Schedule schedule, const std::function<bool()>& stop)
    : space_(space),
      engine_(engine),
      settings_(settings),
      schedule_(schedule),
      tables_(
          [this](const ReplicaShape& shape) -> const UnitTable& { return engine_.table(shape); }),
      sends_(space, settings),
      options_(space.stage_options(settings)),
      runs_(options_.size()) {
  bool is_cut = false;
  const std::function<bool()> cut = [&] { return is_cut = is_cut || stop(); };
  if (engine.problem().cluster.device_count() > kExactDevices) drop_dominated_options(cut);
  tied_ = std::make_unique<TiedSyncLowerBound>(space, options_);
  for (const StageOption& option : options_)
    if (!cut()) tied_to_.push_back(tied_->with_last(option));
  bounds_ = std::make_unique<Bounds>(space, settings, schedule, *this, cut);
  if (is_cut) bounds_.reset();
}

bool StageTable::place(int o, std::span<const int> used, std::vector<int>& begin) const {
  begin.clear();
  for (const Take& take : options_[o].takes) {
    const int at = space_.aligned(take.pool, used[take.pool], options_[o].tensor);
    if (at + take.devices > space_.pools()[take.pool].size()) return false;
    begin.push_back(at);
  }
  return true;
}

bool StageTable::take(int o, std::vector<int>& used, std::vector<int>& begin) const {
  if (!place(o, used, begin)) return false;
  const std::vector<Take>& takes = options_[o].takes;
  for (std::size_t i = 0; i < takes.size(); ++i) used[takes[i].pool] = begin[i] + takes[i].devices;
  return true;
}

RunCosts& StageTable::runs(int o, const std::vector<int>& begin) {
  const StageOption& option = options_[o];
  // Nodes of a pool are alike, so only the place inside the first node matters.
  std::size_t place = 0;
  for (std::size_t i = 0; i < begin.size(); ++i) {
    const int per_node = space_.pools()[option.takes[i].pool].per_node;
    place = place * per_node + begin[i] % per_node;
  }
  std::vector<std::unique_ptr<RunCosts>>& runs = runs_[o];
  if (runs.size() <= place) runs.resize(place + 1);
  if (!runs[place]) {
    const Stage stage = space_.stage_of({option, begin, {}, {}});
    runs[place] =
        std::make_unique<RunCosts>(space_, rhythm(),
                                   SpanFrame(engine_.problem(), settings_, stage.devices,
                                             option.tensor, option.data, stage.shares, tables_));
  }
  return *runs[place];
}

RunCosts* StageTable::first_runs(int o) {
  if (first_runs_.empty()) first_runs_.resize(options_.size());
  std::optional<RunCosts*>& first = first_runs_[o];
  if (!first) {
    const std::vector<int> nothing_used(space_.pools().size(), 0);
    std::vector<int> begin;
    first = place(o, nothing_used, begin) ? &runs(o, begin) : nullptr;
  }
  return *first;
}

Seconds StageTable::hand_over(int from, int to, int unit) {
  const Model& model = engine_.problem().model;
  if (hand_overs_.empty()) hand_overs_.resize(options_.size());
  std::vector<Seconds>& row = hand_overs_[from];
  if (row.empty()) row.assign(options_.size() * model.kinds.size(), Seconds(-1));
  Seconds& known = row[to * model.kinds.size() + model.units[unit - 1]];
  if (known < Seconds(0)) known = sends_.between(options_[from], options_[to], unit);
  return known;
}

StageTime StageTable::run_time(int o, const UnitRange& units) {
  RunCosts* on = first_runs(o);
  return on != nullptr ? on->alone(units) : kNever;
}

void StageTable::last_times(int o, int begin, std::span<const int> ends, Seconds limit,
                            std::vector<StageTime>& times) {
  times.clear();
  RunCosts* on = first_runs(o);
  if (on == nullptr) return;
  if (settings_.zero != ZeroStage::parameters) return on->last_times(begin, ends, limit, times);
  // Weights that are gathered unit by unit take as much memory as the units do on average.
  for (const int end : ends) {
    const auto choice = on->choose({begin, end}, 0);
    if (!choice) return;
    times.push_back(*choice);
  }
}

// Options that take the same devices differ in how they cut them. One that is slower on every unit
// and needs as much memory for each, in every part, is no better but for what its neighbours have
// to send to it.
void StageTable::drop_dominated_options(const std::function<bool()>& stop) {
  const Model& model = engine_.problem().model;
  std::vector<int> units;  // one of each kind
  for (int k = 0; k < static_cast<int>(model.kinds.size()); ++k) {
    const auto at = std::ranges::find(model.units, k);
    if (at != model.units.end()) units.push_back(static_cast<int>(at - model.units.begin()));
  }
  std::vector<std::vector<double>> traits(options_.size());  // smaller is better
  for (int o = 0; o < option_count(); ++o) {
    if (stop()) return;
    const RunCosts* runs = first_runs(o);
    if (runs == nullptr) continue;
    const SpanFrame& on = runs->frame();
    for (const int u : units) {
      for (const Recompute recompute : space_.recomputes()) {
        const StageTime time = runs->cost({u, u + 1}, UnitsRecomputed::all(recompute));
        SpanFrame::Memory memory;
        double fixed = 0;
        double saved = 0;
        for (int r = 0; r < on.replica_count(); ++r) {
          memory = on.memory(r, {u, u + 1}, recompute, 0);
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
    if (stop()) return;
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
  std::vector<std::vector<std::unique_ptr<RunCosts>>> runs;
  for (int o = 0; o < option_count(); ++o) {
    if (keep[o] == 0) continue;
    kept.push_back(options_[o]);
    runs.push_back(std::move(runs_[o]));
  }
  options_ = std::move(kept);
  runs_ = std::move(runs);
  first_runs_.clear();
}

}  // namespace plait
