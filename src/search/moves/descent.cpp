#include "search/moves/descent.h"

#include <algorithm>
#include <cmath>

namespace plait {
namespace {

constexpr double kLeastGain = 1e-4;    // of a move that is worth taking, relative
constexpr double kHopeless = 1.03;     // balanced stages that take so many times the limit
constexpr double kCold = 0.0005;       // last
constexpr double kDescentAfter = 0.2;  // of the work of a walk is left for the descent at its end
constexpr double kAlike = 0.8;         // of what a floor lacks, that of a neighbour lacks
constexpr int kBalancings = 2;         // rounds
constexpr int kMoreLayers = 2;         // that are recomputed where a guess was too low
constexpr int kUnitsForMemory = 3;     // that are moved off a stage that is too full
constexpr double kDear = 4;            // of a simulation, in outlines: walks guess instead ..
constexpr int kMostGuesses = 12;       // .. so many times in a row

double work_of_outline(const Draft& draft) {
  std::size_t devices = 0;
  for (const DraftStage& stage : draft.stages) devices += stage.devices.size();
  return 1 + 0.4 * draft.stage_count() + 0.02 * static_cast<double>(devices);
}

// Simulations under schedules that fill gaps try several orders.
double work_of_simulation(const Draft& draft, Schedule schedule) {
  const double stages = draft.stage_count();
  const double tasks = stages * draft.chunks() * draft.settings.micro_batches;
  const bool fills_gaps = schedule == Schedule::zb_2p || schedule == Schedule::zb_v;
  return 2 + tasks * (fills_gaps ? 0.09 + 0.003 * stages : 0.025);
}

// Whether a simulation is worth it: its floor is below the limit, and would be if it were about as
// far from the step as that of a neighbour under the same schedule.
bool may_beat(const Settled& next, const Settled& neighbour, Seconds limit) {
  if (next.floor() >= limit) return false;
  if (next.draft.settings.schedule != neighbour.draft.settings.schedule) return true;
  const double above = neighbour.step / neighbour.floor() - 1;
  return next.floor() * (1 + kAlike * above) < limit;
}

// Recomputes this part of the units of a chunk that are not yet recomputed so, one at least. False
// when all are.
bool recompute_more(DraftStage& stage, Recompute kind, double part) {
  UnitsRecomputed& recompute = stage.recompute;
  int& count = kind == Recompute::full ? recompute.full : recompute.selective;
  const int units = *std::ranges::max_element(stage.units);
  if (count >= units) return false;
  const double more = std::ceil((units - count) * std::clamp(part, 0.0, 1.0));
  count += std::max(1, static_cast<int>(more));
  if (count >= units) count = UnitsRecomputed::kAll;
  return true;
}

// One unit of every chunk; false when none is recomputed.
bool recompute_one_less(DraftStage& stage) {
  UnitsRecomputed& recompute = stage.recompute;
  int& count = recompute.full > 0 ? recompute.full : recompute.selective;
  if (count == 0) return false;
  count = std::min(count, *std::ranges::max_element(stage.units)) - 1;
  return true;
}

}  // namespace

Descent::Descent(const Ground& ground, const CostEngine& engine, StageMemo& memo, double work,
                 const std::function<bool()>& stop)
    : ground_(ground), engine_(engine), work_(work), stop_(stop), memo_(memo) {
  for (const Move& move : moves()) {
    all_.push_back(&move);
    if (move.regular) regular_.push_back(&move);
    drawn_.insert(drawn_.end(), move.weight, &move);
  }
}

std::optional<Settled> Descent::outlined(Draft draft) {
  work_ -= 0.2;
  if (!ground_.is_sound(draft)) return std::nullopt;
  ground_.lay_out(draft, plan_);
  work_ -= work_of_outline(draft);
  return Settled{std::move(draft), engine_.outline(plan_, &memo_)};
}

void Descent::simulate(Settled& settled, Seconds limit) {
  ground_.lay_out(settled.draft, plan_);
  work_ -= work_of_simulation(settled.draft, plan_.schedule);
  ++simulations_;
  const Estimate estimate = engine_.simulate(plan_, nullptr, &memo_, limit);
  settled.step = estimate.fits ? estimate.step : Seconds(HUGE_VAL);
}

void Descent::balance(Settled& settled, Seconds limit) {
  if (!ground_.pins().stages.empty()) return;
  for (int round = 0; round < kBalancings && settled.draft.stage_count() > 1; ++round) {
    const std::vector<double> targets =
        balanced_weights(settled.draft, settled.cost, ground_.prefix());
    Draft draft = settled.draft;
    cut_units(draft, draft.chunks(), targets, ground_.prefix());
    const bool same = std::ranges::equal(draft.stages, settled.draft.stages, {}, &DraftStage::units,
                                         &DraftStage::units);
    if (same) return;
    std::optional<Settled> next = outlined(std::move(draft));
    if (!next || next->cost.step >= settled.cost.step) return;
    settled = *std::move(next);
    if (settled.cost.step > kHopeless * limit) return;
  }
}

void Descent::recompute_all(Settled& settled) {
  Draft draft = settled.draft;
  const UnitsRecomputed most = UnitsRecomputed::all(ground_.recomputes().back());
  for (int s = 0; s < draft.stage_count(); ++s)
    if (settled.cost.stages[s].spare() < Bytes(0)) draft.stages[s].recompute = most;
  if (std::optional<Settled> next = outlined(std::move(draft))) settled = *std::move(next);
}

// Memory is about linear in the layers that are recomputed. What part of its activations a stage is
// spared when all are is learnt from the first that is asked for; then a guess is mostly right.
void Descent::recompute_some(Settled& settled) {
  for (const Recompute kind : ground_.recomputes()) {
    if (kind == ground_.recomputes().front()) continue;
    std::vector<int> full;  // stages
    for (int s = 0; s < settled.draft.stage_count(); ++s)
      if (settled.cost.stages[s].spare() < Bytes(0)) full.push_back(s);
    if (full.empty()) return;
    std::optional<Settled> most;  // with all of them recomputed
    const auto look_at_all = [&] {
      Draft draft = settled.draft;
      for (const int s : full) draft.stages[s].recompute = UnitsRecomputed::all(kind);
      most = outlined(std::move(draft));
    };
    double& spared = spared_[static_cast<std::size_t>(kind)];
    if (spared == 0) {
      look_at_all();
      if (!most) return;
      const StageCost& before = settled.cost.stages[full.front()];
      const StageCost& after = most->cost.stages[full.front()];
      spared = std::max(0.01, (before.activations - after.activations) / before.activations);
    }
    Draft draft = settled.draft;
    for (const int s : full) {
      const StageCost& stage = settled.cost.stages[s];
      recompute_more(draft.stages[s], kind,
                     (Bytes(0) - stage.spare()) / (spared * stage.activations));
    }
    std::optional<Settled> next = outlined(draft);
    for (int i = 0; i < kMoreLayers && next && !next->fits(); ++i) {
      bool more = false;
      for (const int s : full)
        if (next->cost.stages[s].spare() < Bytes(0))
          more |= recompute_more(draft.stages[s], kind, 0);
      if (!more) break;
      next = outlined(draft);
    }
    if (next && next->fits()) {
      settled = *std::move(next);
      return;
    }
    if (!most) look_at_all();
    if (most) settled = *std::move(most);
  }
}

// As many as a guess says instead of all, then one less on every stage as long as that fits.
void Descent::recompute_less(Settled& settled) {
  const UnitsRecomputed least = UnitsRecomputed::all(ground_.recomputes().front());
  const auto recomputes = [&](const DraftStage& stage) { return stage.recompute != least; };
  if (!ground_.recomputes_by_layer() || !settled.fits()) return;
  if (std::ranges::none_of(settled.draft.stages, recomputes)) return;
  Draft draft = settled.draft;
  for (DraftStage& stage : draft.stages) stage.recompute = least;
  std::optional<Settled> next = outlined(draft);
  if (next && !next->fits()) recompute_some(*next);
  if (next && next->fits() && next->cost.step < settled.cost.step) settled = *std::move(next);
  std::vector<bool> open(settled.draft.stages.size(), true);
  for (bool goes_on = true; goes_on;) {
    draft = settled.draft;
    goes_on = false;
    for (std::size_t s = 0; s < open.size(); ++s) {
      open[s] = open[s] && recompute_one_less(draft.stages[s]);
      goes_on = goes_on || open[s];
    }
    next = goes_on ? outlined(draft) : std::nullopt;
    if (!next) return;
    if (!next->fits()) {
      for (std::size_t s = 0; s < open.size(); ++s) {
        if (next->cost.stages[s].spare() >= Bytes(0)) continue;
        draft.stages[s].recompute = settled.draft.stages[s].recompute;
        open[s] = false;
      }
      next = outlined(draft);
    }
    if (!next || !next->fits()) return;
    settled = *std::move(next);
  }
}

void Descent::make_room(Settled& settled) {
  const auto adopt = [&](Draft draft) {
    std::optional<Settled> next = outlined(std::move(draft));
    if (next) settled = *std::move(next);
    return next.has_value();
  };
  if (ground_.recomputes_by_layer())
    recompute_some(settled);
  else
    recompute_all(settled);
  if (settled.fits()) return;
  Draft draft = settled.draft;
  if (settled.draft.settings.zero == ZeroStage::off && ground_.zeros().size() > 1) {
    draft = settled.draft;
    draft.settings.zero = ZeroStage::optimizer;
    if (!adopt(draft) || settled.fits()) return;
  }
  if (!ground_.pins().stages.empty()) return;
  for (int i = 0; i < kUnitsForMemory && !settled.fits(); ++i) {
    const auto by_spare = [](const StageCost& a, const StageCost& b) {
      return a.spare() / a.capacity < b.spare() / b.capacity;
    };
    const auto& stages = settled.cost.stages;
    const auto [full, empty] = std::ranges::minmax_element(stages, by_spare);
    draft = settled.draft;
    auto& from = draft.stages[full - stages.begin()].units;
    auto& to = draft.stages[empty - stages.begin()].units;
    --*std::ranges::max_element(from);
    ++*std::ranges::min_element(to);
    if (!adopt(draft)) return;
  }
}

std::optional<Settled> Descent::settle(Draft draft, bool unbalanced, Seconds limit) {
  std::optional<Settled> settled = outlined(std::move(draft));
  if (!settled) return settled;
  if (unbalanced && (settled->cost.step >= limit || !settled->fits())) balance(*settled, limit);
  if (settled->cost.step > kHopeless * limit) return settled;
  if (!settled->fits()) {
    make_room(*settled);
    if (unbalanced && settled->fits() && settled->cost.step >= limit) {
      Settled other = *settled;
      balance(other, limit);
      if (other.fits()) settled = std::move(other);
    }
  }
  return settled;
}

bool Descent::try_move(const Move& move, Settled& settled) {
  bool taken = false;
  const Settled start = settled;
  Visitor visit([&](Draft&& draft) {
    if (is_over()) return true;
    const Seconds limit = (1 - kLeastGain) * settled.step;
    std::optional<Settled> next = settle(std::move(draft), move.unbalances, limit);
    if (!next || !may_beat(*next, settled, limit)) return false;
    simulate(*next, limit);
    if (next->step >= limit) return false;
    settled = *std::move(next);
    taken = true;
    return true;
  });
  move.list({ground_, start.draft, start.cost}, visit);
  return taken;
}

void Descent::descend(Settled& settled) { descend(settled, all_, 0); }

void Descent::descend_regularly(Settled& settled, double part) {
  descend(settled, regular_, (1 - part) * work_);
}

void Descent::descend(Settled& settled, std::span<const Move* const> kinds, double work_left) {
  const auto goes_on = [&] { return work_ > work_left && !is_over(); };
  std::size_t idle = 0;  // kinds in a row that did not help
  for (std::size_t i = 0; idle < kinds.size() && goes_on(); i = (i + 1) % kinds.size()) {
    idle = try_move(*kinds[i], settled) ? 0 : idle + 1;
    while (idle == 0 && goes_on() && try_move(*kinds[i], settled)) continue;
  }
}

std::optional<Settled> Descent::step_at_random(const Settled& settled, std::mt19937_64& random,
                                               Seconds limit) {
  const Move& move = *drawn_[random() % drawn_.size()];
  const Place place{ground_, settled.draft, settled.cost};
  Visitor counting([](Draft&&) { return true; }, Visitor::kNone);
  move.list(place, counting);
  work_ -= 0.5;
  std::optional<Settled> next;
  if (counting.count() == 0) return next;
  Visitor making(
      [&](Draft&& draft) {
        next = settle(std::move(draft), move.unbalances, limit);
        return true;
      },
      static_cast<int>(random() % static_cast<unsigned>(counting.count())));
  move.list(place, making);
  return next;
}

// Its step is as far above its floor as that of a neighbour.
bool Descent::guess(Settled& next, const Settled& neighbour) const {
  if (next.draft.settings.schedule != neighbour.draft.settings.schedule) return false;
  const Schedule schedule = ground_.schedule_of(next.draft);
  if (work_of_simulation(next.draft, schedule) < kDear * work_of_outline(next.draft)) return false;
  next.step = next.floor() * (neighbour.step / neighbour.floor());
  return true;
}

// Where many micro-batches make a simulation as dear as many outlines, steps are guessed; only what
// may be the best so far is simulated, and each time after a few guesses.
void Descent::wander(Settled& settled, double hot, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Settled now = settled;
  int guesses = 0;
  const double all = work_;
  while (work_ > kDescentAfter * all && !is_over()) {
    const double way = (all - work_) / ((1 - kDescentAfter) * all);
    const double temperature = hot * std::pow(kCold / hot, way);
    // What a neighbour may take is drawn before it is looked at: most need no simulation then.
    const double draw = (1 + static_cast<double>(random() % 1'000'000)) / 1e6;
    const Seconds limit = (1 - temperature * std::log(draw)) * now.step;
    std::optional<Settled> next = step_at_random(now, random, limit);
    if (!next || !may_beat(*next, now, limit)) continue;
    const bool guessed = guesses < kMostGuesses && guess(*next, now) && next->step >= settled.step;
    if (!guessed) simulate(*next, limit);
    if (next->step >= limit) continue;
    guesses = guessed ? guesses + 1 : 0;
    now = *std::move(next);
    if (now.step < settled.step) settled = now;
  }
  descend(settled);
  Settled less = settled;
  recompute_less(less);
  if (less.cost.step >= settled.cost.step) return;
  simulate(less);
  if (less.step < settled.step) settled = std::move(less);
}

}  // namespace plait
