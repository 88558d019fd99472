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
constexpr int kUnitsForMemory = 3;     // that are moved off a stage that is too full

// Simulations under schedules that fill gaps try several orders.
double work_of_simulation(const Plan& plan) {
  const double stages = plan.stage_count();
  const double tasks = stages * chunk_count(plan.stages.front()) * plan.micro_batches;
  const bool fills_gaps = plan.schedule == Schedule::zb_2p || plan.schedule == Schedule::zb_v;
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

}  // namespace

Descent::Descent(const Ground& ground, const CostEngine& engine, double work,
                 const std::function<bool()>& stop)
    : ground_(ground), engine_(engine), work_(work), stop_(stop), memo_(ground.problem()) {
  for (const Move& move : moves()) drawn_.insert(drawn_.end(), move.weight, &move);
}

std::optional<Settled> Descent::outlined(Draft draft) {
  work_ -= 0.2;
  if (!ground_.is_sound(draft)) return std::nullopt;
  const Plan plan = ground_.plan_of(draft);
  std::size_t devices = 0;
  for (const DraftStage& stage : draft.stages) devices += stage.devices.size();
  work_ -= 1 + 0.4 * plan.stage_count() + 0.02 * static_cast<double>(devices);
  return Settled{std::move(draft), engine_.outline(plan, &memo_)};
}

void Descent::simulate(Settled& settled, Seconds limit) {
  const Plan plan = ground_.plan_of(settled.draft);
  work_ -= work_of_simulation(plan);
  ++simulations_;
  const Estimate estimate = engine_.simulate(plan, nullptr, &memo_, limit);
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

void Descent::make_room(Settled& settled) {
  const auto is_full = [&](int s) { return settled.cost.stages[s].spare() < Bytes(0); };
  const auto adopt = [&](Draft draft) {
    std::optional<Settled> next = outlined(std::move(draft));
    if (next) settled = *std::move(next);
    return next.has_value();
  };
  Draft draft = settled.draft;
  for (int s = 0; s < draft.stage_count(); ++s)
    if (is_full(s)) draft.stages[s].recompute = ground_.recomputes().back();
  if (!adopt(draft) || settled.fits()) return;
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

void Descent::descend(Settled& settled) {
  const std::span<const Move> all = moves();
  std::size_t idle = 0;  // kinds in a row that did not help
  for (std::size_t i = 0; idle < all.size() && !is_over(); i = (i + 1) % all.size()) {
    idle = try_move(all[i], settled) ? 0 : idle + 1;
    while (idle == 0 && !is_over() && try_move(all[i], settled)) continue;
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

void Descent::wander(Settled& settled, double hot, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Settled now = settled;
  const double all = work_;
  while (work_ > kDescentAfter * all && !is_over()) {
    const double way = (all - work_) / ((1 - kDescentAfter) * all);
    const double temperature = hot * std::pow(kCold / hot, way);
    // What a neighbour may take is drawn before it is looked at: most need no simulation then.
    const double draw = (1 + static_cast<double>(random() % 1'000'000)) / 1e6;
    const Seconds limit = (1 - temperature * std::log(draw)) * now.step;
    std::optional<Settled> next = step_at_random(now, random, limit);
    if (!next || !may_beat(*next, now, limit)) continue;
    simulate(*next, limit);
    if (next->step >= limit) continue;
    now = *std::move(next);
    if (now.step < settled.step) settled = now;
  }
  descend(settled);
}

}  // namespace plait
