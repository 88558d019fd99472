#include "search/inside/inside_pipelines.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include "base/parallel.h"
#include "plan/check.h"
#include "search/inside/cut_pipeline.h"
#include "search/space/schedules.h"
#include "search/space/space.h"

namespace plait {
namespace {

constexpr int kFewDevices = 8;     // up to which stages may have different numbers of them
constexpr int kMostOutlines = 48;  // that are looked at
constexpr int kMostRefined = 12;   // of them
constexpr int kMostFinished = 3;
constexpr double kWorthFinishing = 1.01;
constexpr double kWorthRefining = 1.12;  // of the best, when cut between layers
constexpr double kHopeless = 1.5;        // of the best plan: no better cut makes up for it
constexpr double kOptimism = 1.02;       // what a promise may fall short of the best plan by
constexpr int kShifts = 3;               // units that a cut is moved by at the end
constexpr int kMostShiftRounds = 4;
constexpr int kLongModel = 1'500;  // units; of longer ones fewer are looked at ..
constexpr int kMostShifted = 200;  // .. and the cuts between stages that are longer stay

// A division of devices into stages, with settings.
struct Outline {
  int setting = 0;
  StagePlaces places;
  friend auto operator<=>(const Outline&, const Outline&) = default;
};

// Stages of powers of two that fill all pools, first pool first.
void fill(const Space& space, bool any_sizes, StagePlaces& so_far, int pool, int used,
          std::vector<StagePlaces>& out) {
  while (pool < static_cast<int>(space.pools().size()) && used == space.pools()[pool].size()) {
    ++pool;
    used = 0;
  }
  if (pool == static_cast<int>(space.pools().size())) return out.push_back(so_far);
  const Pool& own = space.pools()[pool];
  for (int devices = 1; used + devices <= own.size(); devices *= 2) {
    if (!any_sizes && !so_far.empty() && devices != so_far.front().devices) continue;
    const bool inside_node = used % own.per_node + devices <= own.per_node;
    if (!inside_node && used % own.per_node != 0) continue;
    so_far.push_back({pool, used, devices});
    fill(space, any_sizes, so_far, pool, used + devices, out);
    so_far.pop_back();
  }
}

std::vector<StagePlaces> divisions(const Space& space) {
  std::vector<StagePlaces> out;
  StagePlaces so_far;
  const bool few = space.problem().cluster.device_count() <= kFewDevices;
  fill(space, few, so_far, 0, 0, out);
  return out;
}

// Where the stages of a plan are; nothing where they are not in a row in a pool.
std::optional<StagePlaces> places_of(const Space& space, const Plan& plan) {
  StagePlaces places;
  for (const Stage& stage : plan.stages) {
    std::optional<StageInsides::Place> place;
    for (int p = 0; p < static_cast<int>(space.pools().size()); ++p) {
      const std::vector<DeviceId>& devices = space.pools()[p].devices;
      // Not std::ranges::search: clang 14 cannot compile GCC 12's subranges.
      const auto at =
          std::search(devices.begin(), devices.end(), stage.devices.begin(), stage.devices.end());
      if (at != devices.end())
        place = {p, static_cast<int>(at - devices.begin()), static_cast<int>(stage.devices.size())};
    }
    if (!place || !stage.shares.empty()) return std::nullopt;
    places.push_back(*place);
  }
  return places;
}

class Insides {
 public:
  Insides(const SearchContext& context, Shortlist& found, const std::function<bool()>& stop)
      : context_(context),
        space_(*context.space),
        engine_(*context.engine),
        found_(found),
        stop_(stop),
        insides_(space_.settings().size()) {}

  void run();

 private:
  struct Candidate {
    std::unique_ptr<PipelineCuts> cuts;
    double promise = 0;
    std::optional<CutPipeline> pipeline;
    double step() const { return pipeline ? pipeline->step : HUGE_VAL; }
  };
  StageInsides& insides(int setting) {
    auto& own = insides_[setting];
    if (!own) own = std::make_unique<StageInsides>(space_, engine_, space_.settings()[setting]);
    return *own;
  }
  // Of so many that are worth a look, where the model is not long.
  std::size_t share_of(int many) const {
    const int units = context_.problem.model.unit_count();
    return static_cast<std::size_t>(std::max(3, many * kLongModel / std::max(kLongModel, units)));
  }
  std::set<Outline> outlines() const;
  std::set<Outline> known_outlines() const;
  std::vector<Candidate> candidates();
  static void narrow(std::vector<Candidate>& all, std::size_t most, double worth);
  void finish(Candidate& candidate);
  // The step that a simulation gives; infinite where the plan is of no use.
  double offer(Candidate& candidate, const CutPipeline& cuts);

  const SearchContext& context_;
  const Space& space_;
  const CostEngine& engine_;
  Shortlist& found_;
  const std::function<bool()>& stop_;
  std::vector<std::unique_ptr<StageInsides>> insides_;  // by setting
};

std::set<Outline> Insides::outlines() const {
  std::set<Outline> out;
  const auto& all = space_.settings();
  const std::vector<StagePlaces> divisions = plait::divisions(space_);
  for (int i = 0; i < static_cast<int>(all.size()); ++i) {
    // Their weights are gathered for two layers at a time, which is not a sum over ops.
    if (all[i].zero == ZeroStage::parameters) continue;
    for (const StagePlaces& places : divisions) {
      const int stages = static_cast<int>(places.size());
      if (stages >= space_.min_stages() && stages <= space_.max_stages(all[i]))
        out.insert({i, places});
    }
  }
  return out;
}

// Those of the plans found so far, which fit.
std::set<Outline> Insides::known_outlines() const {
  std::set<Outline> out;
  const auto& all = space_.settings();
  for (int i = 0; i < static_cast<int>(all.size()); ++i) {
    if (all[i].zero == ZeroStage::parameters) continue;
    for (const RankedPlan& ranked : found_.plans()) {
      const Plan& plan = ranked.plan;
      const bool alike = plan.micro_batches == all[i].micro_batches &&
                         plan.context == all[i].context && plan.expert == all[i].expert &&
                         plan.zero == all[i].zero && plan.schedule == Schedule::one_f_one_b;
      if (!alike) continue;
      if (auto places = places_of(space_, plan)) out.insert({i, std::move(*places)});
    }
  }
  return out;
}

std::vector<Insides::Candidate> Insides::candidates() {
  std::vector<Candidate> out;
  const auto add = [&](const Outline& outline) {
    Candidate one{
        std::make_unique<PipelineCuts>(insides(outline.setting), space_, engine_, outline.places),
        0, std::nullopt};
    one.promise = one.cuts->promise();
    if (one.promise < found_.best().value) out.push_back(std::move(one));
  };
  const std::set<Outline> known = known_outlines();
  for (const Outline& outline : outlines())
    if (!known.contains(outline) && !stop_()) add(outline);
  std::ranges::stable_sort(out, {}, &Candidate::promise);
  const std::size_t most = share_of(kMostOutlines);
  if (out.size() > most) out.resize(most);
  // A promise says nothing of memory.
  for (const Outline& outline : known)
    if (!stop_()) add(outline);
  std::ranges::stable_sort(out, {}, &Candidate::promise);
  return out;
}

double Insides::offer(Candidate& candidate, const CutPipeline& cuts) {
  const auto plan = candidate.cuts->plan(cuts);
  if (!plan || !check_plan(context_.problem, *plan).empty()) return HUGE_VAL;
  const Estimate cost = engine_.simulate(*plan);
  if (!cost.fits) return HUGE_VAL;
  if (cost.step < found_.worst_kept() && found_.offer(*plan) && context_.on_improvement)
    context_.on_improvement(found_.plans().front(), found_.evaluations());
  return cost.step.value;
}

// The last word has the simulation: cuts are moved by single ops as long as that helps.
void Insides::finish(Candidate& candidate) {
  CutPipeline now = *candidate.pipeline;
  double step = offer(candidate, now);
  const int units = context_.problem.model.unit_count();
  if (units > kMostShifted * std::ssize(now.begins)) return;
  for (int round = 0; round < kMostShiftRounds; ++round) {
    bool better = false;
    for (std::size_t s = 1; s < now.begins.size(); ++s)
      for (int by = -kShifts; by <= kShifts && !stop_(); ++by) {
        CutPipeline next = now;
        next.begins[s] += by;
        const int end = s + 1 < now.begins.size() ? now.begins[s + 1] : units;
        if (by == 0 || next.begins[s] <= now.begins[s - 1] || next.begins[s] >= end) continue;
        const double own = offer(candidate, next);
        if (own >= step) continue;
        step = own;
        now = std::move(next);
        better = true;
        break;
      }
    if (!better || stop_()) return;
  }
}

void Insides::run() {
  std::vector<Candidate> all = candidates();
  double bar = HUGE_VAL;
  for (Candidate& one : all) {
    if (stop_()) break;
    if (one.promise > kOptimism * std::min(bar, found_.best().value)) continue;
    one.pipeline = one.cuts->between_layers(
        std::min(kWorthRefining * bar, kHopeless * found_.best().value), stop_);
    bar = std::min(bar, one.step());
  }
  narrow(all, share_of(kMostRefined), kWorthRefining);
  for (Candidate& one : all) one.pipeline = one.cuts->refined(*one.pipeline, stop_);
  narrow(all, kMostFinished, kWorthFinishing);
  for (Candidate& one : all) finish(one);
}

// The best ones alone, best first.
void Insides::narrow(std::vector<Candidate>& all, std::size_t most, double worth) {
  std::erase_if(all, [](const Candidate& one) { return !one.pipeline; });
  std::ranges::stable_sort(all, {}, &Candidate::step);
  if (all.size() > most) all.resize(most);
  std::erase_if(all, [&](const Candidate& one) { return one.step() > worth * all.front().step(); });
}

}  // namespace

bool may_choose_inside(const SearchContext& context) {
  const Problem& problem = context.problem;
  const Target& target = context.options.target;
  const Pins& pins = context.options.pins;
  const bool in_ops = std::ranges::any_of(problem.model.kinds,
                                          [](const LayerKind& kind) { return !kind.starts_layer; });
  const bool plain =
      searched_schedule(pins) == Schedule::one_f_one_b &&
      (!pins.schedule || *pins.schedule == Schedule::one_f_one_b) &&
      std::ranges::find(target.schedules, Schedule::one_f_one_b) != target.schedules.end();
  return in_ops && plain && target.cuts == CutRule::between_ops && target.recompute_by_stage &&
         target.recompute_layers == RecomputeLayers::any && pins.stages.empty() &&
         !pins.recompute_layers && !pins.even_layers && !context.space->violation();
}

void offer_insides(const SearchContext& context, Shortlist& found,
                   const std::function<bool()>& stop) {
  Insides(context, found, stop).run();
}

}  // namespace plait
