#include "search/inside/stage_insides.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cost/layer/model_layers.h"
#include "cost/pipeline/schedule.h"
#include "cost/resharding.h"
#include "model/op_cuts.h"

namespace plait {
namespace {

constexpr int kMostShrinks = 4;      // of the memory, where what does not add up was missed
constexpr std::size_t kLabels = 48;  // chain_choice.h
constexpr std::size_t kMostKept = 20'000;
constexpr int kVeryLong = 400;    // units, whose choices are not listed
constexpr int kLong = 100;        // units, of which the best choice is not looked for to the end ..
constexpr double kNearly = 1e-4;  // .. but that near: one op of hundreds weighs more

}  // namespace

StageInsides::StageInsides(const Space& space, const CostEngine& engine,
                           const PlanSettings& settings)
    : space_(space),
      engine_(engine),
      settings_(settings),
      tables_([&engine](const ReplicaShape& shape) -> const UnitTable& {
        return engine.table(shape);
      }) {
  const int samples = space.problem().job.global_batch / settings.micro_batches;
  for (StageOption& option : space.stage_options(settings))
    if (option.takes.size() == 1 && samples % option.data == 0)
      options_.push_back(std::move(option));
  const ModelLayers layers = layers_of(space.problem().model);
  std::vector<int> first(layers.shapes.size(), -1);
  for (int l = 0; l < layers.count(); ++l) {
    int& at = first[layers.shape_of[l]];
    if (at < 0) at = static_cast<int>(first_of_.size());
    for (int u = layers.begin[l]; u < layers.begin[l + 1]; ++u) {
      distinct_of_.push_back(at + u - layers.begin[l]);
      if (distinct_of_.back() == static_cast<int>(first_of_.size())) first_of_.push_back(u);
    }
  }
}

std::vector<DeviceId> StageInsides::devices_of(const Place& place) const {
  const auto from = space_.pools()[place.pool].devices.begin() + place.begin;
  return {from, from + place.devices};
}

// Nodes of a pool are alike.
StageInsides::Place StageInsides::canonical(const Place& place) const {
  return {place.pool, place.begin % space_.pools()[place.pool].per_node, place.devices};
}

StageInsides::Ground& StageInsides::ground(const Place& place) {
  const auto [at, is_new] = grounds_.try_emplace(canonical(place));
  Ground& ground = at->second;
  if (!is_new) return ground;
  const std::vector<DeviceId> devices = devices_of(place);
  for (const StageOption& option : options_) {
    const Take& take = option.takes.front();
    if (take.pool != place.pool || take.devices != place.devices) continue;
    if (space_.aligned(place.pool, place.begin, option.tensor) != place.begin) continue;
    const int splits = option.tensor > 1 ? space_.split_choices() : 1;
    for (int split = 0; split < splits; ++split)
      ground.cuts.push_back(
          {option.tensor, option.data, split,
           std::make_unique<SpanFrame>(space_.problem(), settings_, devices, option.tensor,
                                       option.data, std::span<const int>(), tables_, split)});
  }
  add_units(ground);
  return ground;
}

StageInsides::UnitWay StageInsides::unit_way(const Cut& cut, int index, int unit,
                                             Recompute recompute) const {
  const UnitRange one{unit, unit + 1};
  const SpanFrame& frame = *cut.frame;
  const SpanFrame::Memory memory = frame.memory(0, one, recompute, 0);
  UnitWay out;
  out.time = frame.pass_time(one, recompute).total().value;
  out.optimizer = frame.optimizer(one).value;
  out.finish = frame.least_gradient_sync(one).value + out.optimizer;
  out.gradients = memory.keeps_gradients ? memory.gradients.value : 0;
  out.held = (memory.weights + memory.optimizer_state + memory.workspace).value + out.gradients;
  out.way.repeated = memory.working_set.value;
  out.way.transient = memory.transient.value;
  out.loss = memory.loss.value;
  if (recompute == Recompute::full) {
    out.way.opened = frame.recompute_input(0, unit).value;
    out.way.run = 1;
  } else if (recompute == Recompute::selective) {
    out.way.run = 2 + index;
  }
  out.saved = memory.saved.value - out.way.opened;
  return out;
}

void StageInsides::add_units(Ground& ground) {
  if (ground.cuts.empty()) return;
  std::vector<double> least(first_of_.size(), HUGE_VAL);
  for (std::size_t d = 0; d < first_of_.size(); ++d) {
    std::vector<UnitWay>& ways = ground.units.emplace_back();
    const LayerKind& unit = space_.problem().model.unit(first_of_[d]);
    for (std::size_t c = 0; c < ground.cuts.size(); ++c)
      for (const Recompute recompute : space_.recomputes()) {
        const int split = ground.cuts[c].split;
        const bool has_way =
            split == 0 || (split < ways_to_cut(space_.target(), unit) &&
                           is_divided(with_cut(unit.ops.front(), split), ground.cuts[c].tensor));
        if (!has_way) {
          ways.emplace_back().time = HUGE_VAL;
          continue;
        }
        ways.push_back(unit_way(ground.cuts[c], static_cast<int>(c), first_of_[d], recompute));
        least[d] = std::min(least[d], ways.back().time);
      }
  }
  ground.least_times.push_back(0);
  for (const int d : distinct_of_)
    ground.least_times.push_back(ground.least_times.back() + least[d]);
}

const std::vector<double>& StageInsides::least_times(const Place& place) {
  return ground(place).least_times;
}

Bytes StageInsides::room(const Place& place) {
  const SpanFrame::Memory memory =
      ground(place).cuts.front().frame->memory(0, {0, 1}, Recompute::none, 0);
  return memory.capacity - memory.reserve - memory.fixed;
}

Span StageInsides::span_of(const Ground& ground, int way, int unit) const {
  const int kinds = static_cast<int>(space_.recomputes().size());
  const Cut& cut = ground.cuts[way / kinds];
  return {.units = {unit, unit + 1},
          .tensor = cut.tensor,
          .data = cut.data,
          .split = cut.split,
          .recompute = space_.recomputes()[way % kinds]};
}

// After a unit, from each way to each other one.
const std::vector<double>& StageInsides::changes(Ground& ground, const Place& place, int unit) {
  const Model& model = space_.problem().model;
  const auto [at, is_new] = ground.changes.try_emplace({model.units[unit], model.units[unit + 1]});
  std::vector<double>& out = at->second;
  if (!is_new) return out;
  const int count = static_cast<int>(ground.cuts.size() * space_.recomputes().size());
  out.assign(count * count, 0);
  const std::vector<UnitWay>& before = ground.units[distinct_of_[unit]];
  const std::vector<UnitWay>& after = ground.units[distinct_of_[unit + 1]];
  const std::vector<DeviceId> devices = devices_of(place);
  for (int v = 0; v < count; ++v)
    for (int w = 0; w < count; ++w) {
      if (before[v].time == HUGE_VAL || after[w].time == HUGE_VAL) continue;
      const Resharding time = resharding(space_.problem(), settings_, devices,
                                         span_of(ground, v, unit), span_of(ground, w, unit + 1));
      out[v * count + w] = settings_.micro_batches * (time.forward + time.backward).value;
    }
  return out;
}

ChainTask StageInsides::task(Ground& ground, const Place& place, const UnitRange& units, int after,
                             const std::vector<int>& cuts) {
  const std::size_t kinds = space_.recomputes().size();
  const double live =
      chunks_in_flight(Schedule::one_f_one_b, after + 1, 0, settings_.micro_batches, 1);
  const SpanFrame& frame = *ground.cuts[cuts.front()].frame;
  const bool mixes = cuts.size() > 1;
  const bool mixes_degrees = std::ranges::any_of(
      cuts, [&](int c) { return ground.cuts[c].tensor != ground.cuts[cuts.front()].tensor; });
  const bool packs = mixes_degrees && space_.problem().job.framework.traits.packs_gradients;
  ChainTask task;
  const double tied = space_.tied_copies().of(units);
  const UnitRange last{units.end - 1, units.end};
  const SpanFrame::Memory none = frame.memory(0, last, Recompute::none, 0);
  const SpanFrame::Memory with = frame.memory(0, last, Recompute::none, tied);
  const Bytes room = none.capacity - none.reserve - none.fixed - (with.peak(0) - none.peak(0)) -
                     live * frame.passing_by(0, units.begin);
  task.memory = room.value;
  std::vector<int> kind_of(first_of_.size(), -1);  // by distinct unit, into the task's kinds
  std::vector<double> loss_of;                     // by kind
  const auto add_kind = [&](int distinct) {
    kind_of[distinct] = static_cast<int>(task.kinds.size());
    std::vector<ChainWay>& ways = task.kinds.emplace_back();
    double& loss = loss_of.emplace_back(HUGE_VAL);
    for (const int c : cuts)
      for (std::size_t r = 0; r < kinds; ++r) {
        const UnitWay& own = ground.units[distinct][c * kinds + r];
        ChainWay& way = ways.emplace_back(own.way);
        way.time = HUGE_VAL;
        if (own.time == HUGE_VAL) continue;
        way.time = settings_.micro_batches * own.time + (mixes ? own.finish : 0);
        way.kept = own.held + (packs ? own.gradients : 0) + live * own.saved;
        way.opened *= live;
        loss = std::min(loss, own.loss);
      }
  };
  task.ops.reserve(units.size());
  for (int u = units.begin; u < units.end; ++u) {
    int& kind = kind_of[distinct_of_[u]];
    if (kind < 0) add_kind(distinct_of_[u]);
    ChainOp& op = task.ops.emplace_back();
    op.kind = kind;
    op.starts_layer = space_.problem().model.unit(u).starts_layer;
    if (mixes && u + 1 < units.end) op.change = &changes(ground, place, u);
    task.at_least += loss_of[kind];
  }
  return task;
}

Plan StageInsides::plan_of(const Place& place, std::vector<Span> spans, int after) const {
  Plan plan = plan_under(settings_, Schedule::one_f_one_b);
  plan.stages.resize(after + 1);
  plan.stages.front() = {std::move(spans), devices_of(place), {}};
  return plan;
}

std::vector<Span> StageInsides::spans(const Place& place, const UnitRange& units,
                                      const Inside& inside) {
  const Ground& own = ground(place);
  Stage stage;
  for (int u = units.begin; u < units.end; ++u)
    stage.spans.push_back(span_of(own, inside.ways[u - units.begin], u));
  join_alike(stage);
  return std::move(stage.spans);
}

// As the engine costs it; `excess` is what does not fit.
std::optional<StageInsides::Inside> StageInsides::costed(const Place& place, const UnitRange& units,
                                                         int after, std::vector<std::int16_t> ways,
                                                         Bytes& excess) {
  Inside inside{std::move(ways), {}, {}};
  const Plan plan = plan_of(place, spans(place, units, inside), after);
  const StageCost cost = stage_cost(space_.problem(), plan, 0, tables_).cost;
  excess = Bytes(0) - cost.spare();
  if (excess > Bytes(0)) return std::nullopt;
  inside.time = cost.forward_total() + cost.backward_total();
  inside.finish = cost.gradient_sync + cost.optimizer;
  return inside;
}

std::optional<StageInsides::Inside> StageInsides::with_cuts(const Place& place,
                                                            const UnitRange& units, int after,
                                                            const std::vector<int>& cuts,
                                                            double precision) {
  const int kinds = static_cast<int>(space_.recomputes().size());
  ChainTask task = this->task(ground(place), place, units, after, cuts);
  const ChainEffort effort{std::max(precision, units.size() > kLong ? kNearly : 0),
                           precision > 0 || units.size() > kVeryLong ? 0 : kLabels};
  for (int i = 0; i <= kMostShrinks; ++i) {
    ++evaluations_;
    const auto answer = choose_in_chain(task, effort);
    if (!answer) return std::nullopt;
    std::vector<std::int16_t> ways;
    ways.reserve(units.size());
    for (const int way : answer->ways)
      ways.push_back(static_cast<std::int16_t>(cuts[way / kinds] * kinds + way % kinds));
    Bytes excess;
    if (auto inside = costed(place, units, after, std::move(ways), excess)) return inside;
    task.memory = std::min(task.memory, answer->memory) - 1.001 * excess.value;
  }
  return std::nullopt;
}

const StageInsides::Inside* StageInsides::best(const Place& place, const UnitRange& units,
                                               int after, double precision) {
  const int live =
      chunks_in_flight(Schedule::one_f_one_b, after + 1, 0, settings_.micro_batches, 1);
  const Key key{canonical(place), space_.run_classes().of(units), live, precision > 0 ? 0 : 1};
  if (known_.size() >= kMostKept && !known_.contains(key)) known_.clear();
  const auto [known, is_new] = known_.try_emplace(key);
  std::optional<Inside>& best = known->second;
  if (is_new) {
    const auto look = [&](const std::vector<int>& cuts) {
      auto inside = with_cuts(place, units, after, cuts, precision);
      const auto load = [&](const Inside& i) {
        return settings_.micro_batches * i.time + i.finish;
      };
      if (inside && (!best || load(*inside) < load(*best))) best = std::move(inside);
    };
    const Ground& own = ground(place);
    std::vector<int> all(own.cuts.size());
    std::iota(all.begin(), all.end(), 0);
    for (const int c : all)
      if (own.cuts[c].split == 0) look({c});
    if (all.size() > 1 && !space_.target().one_layout) look(all);
  }
  return best ? &*best : nullptr;
}

}  // namespace plait
