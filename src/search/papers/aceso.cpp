// Aceso (Liu et al., EuroSys 2024): iterative bottleneck alleviation. docs/planners.md says what is
// different here.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "cost/engine.h"
#include "plan/check.h"
#include "search/inside/inside_pipelines.h"
#include "search/inside/stage_insides.h"
#include "search/papers/alleviation.h"
#include "search/space/planners.h"
#include "search/space/shortlist.h"

namespace plait {
namespace {

constexpr std::int64_t kUsualEvaluations = 20'000;
constexpr int kMostTargets = 3;        // stages that are tried as the bottleneck
constexpr int kMostRestarts = 4;       // from pipelines that were left aside
constexpr double kWorthKeeping = 1.2;  // over the best
constexpr double kNear = 2e-3;         // of the best inside, while pipelines are compared
constexpr int kMostOps = 1'500;        // of longer models the best pipelines alone have it

// A pipeline and what it costs.
struct Costed {
  Alleviated pipeline;
  Plan plan;
  Estimate cost;  // its step is a floor
  double step() const { return cost.fits ? cost.step.value : HUGE_VAL; }
};

class Alleviation {
 public:
  explicit Alleviation(const SearchContext& context)
      : context_(context),
        space_(*context.space),
        engine_(*context.engine),
        memo_(context.problem),
        op_by_op_(may_choose_inside(context)),
        found_(engine_, context.options.keep, context.options.target),
        budget_(context.options.max_evaluations > 0 ? context.options.max_evaluations
                                                    : kUsualEvaluations) {
    for (const Pool& pool : space_.pools()) {
      const std::vector<int> own = space_.tensor_degrees(pool);
      degrees_.emplace_back(own.begin(), own.end());
    }
  }

  SearchResult search();

 private:
  bool is_over() const { return evaluations_ >= budget_ || context_.should_stop(); }
  std::optional<Costed> costed(Alleviated pipeline);
  void cost(Costed& costed, const std::vector<PlacedStage>& stages);
  bool set_insides(const Costed& costed, const std::vector<PlacedStage>& stages, double precision,
                   Plan& plan);
  std::optional<Costed> costed_inside(Costed costed, const std::vector<PlacedStage>& stages);
  std::vector<int> bottlenecks(const Costed& costed) const;
  std::optional<Costed> alleviate(const Costed& from, int hops, double bar);
  std::optional<Costed> try_group(const Costed& from, int target, bool memory_only, double bar,
                                  std::vector<Costed>& others);
  void follow(Costed start);
  void offer(const Costed& costed);
  std::optional<int> first_setting() const;
  std::optional<Alleviated> pipeline_of(const Plan& plan) const;

  const SearchContext& context_;
  const Space& space_;
  const CostEngine& engine_;
  StageMemo memo_;
  bool op_by_op_;
  std::vector<std::set<int>> degrees_;   // by pool: of tensor groups
  std::map<int, StageInsides> insides_;  // by setting
  Shortlist found_;
  std::int64_t budget_;
  std::int64_t evaluations_ = 0;
  std::set<Alleviated> seen_;
  std::vector<Costed> aside_;
};

void Alleviation::cost(Costed& costed, const std::vector<PlacedStage>& stages) {
  const PlanSettings& settings = space_.settings()[costed.pipeline.setting];
  costed.plan = space_.plan_of(stages, settings, Schedule::one_f_one_b);
  if (const auto layers = space_.pins().recompute_layers)
    recompute_first(context_.problem.model, *layers, costed.plan);
  costed.cost = engine_.outline(costed.plan, &memo_);
  ++evaluations_;
}

// Every stage with the best inside of its devices, whatever degree it came with; false where one
// has none.
bool Alleviation::set_insides(const Costed& costed, const std::vector<PlacedStage>& stages,
                              double precision, Plan& plan) {
  const int setting = costed.pipeline.setting;
  StageInsides& insides =
      insides_.try_emplace(setting, space_, engine_, space_.settings()[setting]).first->second;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const Take& take = stages[s].option.takes.front();
    const StageInsides::Place place{take.pool, stages[s].begin.front(), take.devices};
    const auto* inside =
        insides.best(place, stages[s].units, static_cast<int>(stages.size() - 1 - s), precision);
    if (inside == nullptr) return false;
    plan.stages[s].spans = insides.spans(place, stages[s].units, *inside);
  }
  plan.zero = insides.settings().zero;
  plan.sequence_parallel = insides.settings().sequence_parallel;
  space_.drop_idle_switches(plan);
  return true;
}

// The same pipeline, its stages run op by op; as it was where a stage does not fit so.
std::optional<Costed> Alleviation::costed_inside(Costed costed,
                                                 const std::vector<PlacedStage>& stages) {
  Plan plan = costed.plan;
  if (!set_insides(costed, stages, kNear, plan)) return costed;
  if (!check_plan(context_.problem, plan).empty()) return costed;
  const Estimate cost = engine_.outline(plan, &memo_);
  if (cost.fits && cost.step.value < costed.step()) {
    costed.plan = std::move(plan);
    costed.cost = cost;
  }
  return costed;
}

// Primitives know nothing of what is pinned, or was measured.
bool keeps_pins(const Space& space, const std::vector<std::set<int>>& degrees,
                const std::vector<PlacedStage>& stages, const PlanSettings& settings) {
  const Pins& pins = space.pins();
  const int samples = space.problem().job.global_batch / settings.micro_batches;
  return std::ranges::all_of(stages, [&](const PlacedStage& stage) {
    const StageOption& option = stage.option;
    return degrees[option.takes.front().pool].contains(option.tensor) &&
           pins.data.value_or(option.data) == option.data &&
           (!pins.micro_batch || *pins.micro_batch * option.data == samples);
  });
}

// Each stage takes the fastest recompute that fits, judged by itself: only changed stages are
// costed again.
std::optional<Costed> Alleviation::costed(Alleviated pipeline) {
  auto stages = placed(space_, pipeline);
  if (!stages) return std::nullopt;
  Costed out;
  const std::vector<Recompute>& ways = space_.recomputes();
  const auto recompute = [&](Alleviated& own, std::size_t s, Recompute way) {
    own.stages[s].recompute = way;
    (*stages)[s].recompute = UnitsRecomputed::all(way);
  };
  for (std::size_t s = 0; s < stages->size(); ++s) recompute(pipeline, s, ways.front());
  out.pipeline = std::move(pipeline);
  const int count = static_cast<int>(stages->size());
  for (int s = 0; s < count; ++s)
    if (!space_.allows((*stages)[s].units, count - 1 - s)) return std::nullopt;
  const PlanSettings& settings = space_.settings()[out.pipeline.setting];
  if (!keeps_pins(space_, degrees_, *stages, settings)) return std::nullopt;
  if (!check_plan(context_.problem, space_.plan_of(*stages, settings, Schedule::one_f_one_b))
           .empty())
    return std::nullopt;
  cost(out, *stages);
  for (std::size_t way = 1; way < ways.size() && !out.cost.fits; ++way) {
    for (std::size_t s = 0; s < stages->size(); ++s)
      if (out.cost.stages[s].spare() < Bytes(0)) recompute(out.pipeline, s, ways[way]);
    cost(out, *stages);
  }
  const bool is_long = context_.problem.model.unit_count() > kMostOps;
  return op_by_op_ && !is_long ? costed_inside(std::move(out), *stages) : out;
}

// Stages by what is wrong with them: those that do not fit first, then the busiest.
std::vector<int> Alleviation::bottlenecks(const Costed& costed) const {
  std::vector<int> order;
  for (int s = 0; s < static_cast<int>(costed.cost.stages.size()); ++s) order.push_back(s);
  const auto key = [&](int s) {
    const StageCost& stage = costed.cost.stages[s];
    return costed.cost.fits ? -load_of(stage).value : stage.spare().value;
  };
  std::ranges::stable_sort(order, {}, key);
  if (order.size() > kMostTargets) order.resize(kMostTargets);
  return order;
}

void Alleviation::offer(const Costed& costed) {
  const auto stages = placed(space_, costed.pipeline);
  const PlanSettings& settings = space_.settings()[costed.pipeline.setting];
  std::vector<Plan> plans = space_.plans_of(*stages, settings);
  if (Plan fine = costed.plan; op_by_op_ && set_insides(costed, *stages, 0, fine))
    plans.push_back(std::move(fine));
  for (const Plan& plan : plans)
    if (check_plan(context_.problem, plan).empty() && found_.offer(plan) && context_.on_improvement)
      context_.on_improvement(found_.plans().front(), evaluations_ + found_.evaluations());
}

// All primitives of a group; the fastest new pipeline if it is below the bar.
std::optional<Costed> Alleviation::try_group(const Costed& from, int target, bool memory_only,
                                             double bar, std::vector<Costed>& others) {
  std::optional<Costed> best;
  for (const Primitive& primitive : primitives()) {
    if ((primitive.memory < 0 || (from.cost.fits && primitive.time < 0)) != memory_only) continue;
    for (Alleviated& next : primitive.apply(space_, from.pipeline, target, from.cost)) {
      if (is_over()) return best;
      for (AlleviatedStage& stage : next.stages) stage.recompute = Recompute::none;
      if (!seen_.insert(next).second) continue;
      std::optional<Costed> own = costed(std::move(next));
      if (!own) continue;
      if (own->step() < bar && (!best || own->step() < best->step()))
        best = std::move(own);
      else
        others.push_back(std::move(*own));
    }
  }
  return best;
}

// The first group of changes that helps, else what the changes of their results give, so many hops
// deep.
std::optional<Costed> Alleviation::alleviate(const Costed& from, int hops, double bar) {
  if (hops == 0) return std::nullopt;
  for (const int target : bottlenecks(from)) {
    std::vector<Costed> others;
    for (const bool direct : {true, false})
      if (auto better = try_group(from, target, direct, bar, others)) return better;
    std::ranges::stable_sort(others, {}, &Costed::step);
    for (Costed& other : others) {
      if (is_over()) return std::nullopt;
      if (other.step() < kWorthKeeping * bar) aside_.push_back(other);
      if (auto better = alleviate(other, hops - 1, bar)) return better;
    }
  }
  return std::nullopt;
}

void Alleviation::follow(Costed start) {
  double bar = start.step();
  std::optional<Costed> now = std::move(start);
  aside_.clear();
  for (int restarts = 0; now && !is_over();) {
    offer(*now);
    std::optional<Costed> better = alleviate(*now, context_.options.max_hops, bar);
    if (better) {
      bar = std::min(bar, better->step());
      now = std::move(better);
      continue;
    }
    if (aside_.empty() || ++restarts > kMostRestarts) break;
    const auto next = std::ranges::min_element(aside_, {}, &Costed::step);
    now = std::move(*next);
    aside_.erase(next);
  }
}

// The smallest micro-batch without what Aceso does not have, as far as the pins allow.
std::optional<int> Alleviation::first_setting() const {
  std::optional<int> best;
  const auto key = [&](const PlanSettings& s) {
    return std::tuple(static_cast<int>(s.zero), s.context, s.expert, s.sequence_parallel,
                      -s.micro_batches);
  };
  const auto& all = space_.settings();
  for (int i = 0; i < static_cast<int>(all.size()); ++i)
    if (!best || key(all[i]) < key(all[*best])) best = i;
  return best;
}

// A plan as a pipeline: of stages with several spans, the first one's degrees.
std::optional<Alleviated> Alleviation::pipeline_of(const Plan& plan) const {
  Alleviated out;
  const auto& all = space_.settings();
  const auto same = [&](const PlanSettings& s) { return s.micro_batches == plan.micro_batches; };
  const auto setting = std::ranges::find_if(all, same);
  if (setting == all.end()) return std::nullopt;
  out.setting = static_cast<int>(setting - all.begin());
  for (const Stage& stage : plan.stages)
    out.stages.push_back({stage.spans.back().units.end - stage.spans.front().units.begin,
                          static_cast<int>(stage.devices.size()), stage.spans.front().tensor,
                          Recompute::none});
  return out;
}

SearchResult Alleviation::search() {
  SearchResult out;
  const std::optional<int> setting = first_setting();
  const SearchOptions& options = context_.options;
  for (const Plan& plan : options.initial)
    if (const auto start = pipeline_of(plan))
      if (auto own = costed(*start)) follow(std::move(*own));
  const int devices = context_.problem.cluster.device_count();
  const int most = std::min({options.last_stages, devices, context_.problem.model.unit_count()});
  const int first = std::max(options.first_stages, options.pins.pipeline.value_or(1));
  const int last = std::min(most, options.pins.pipeline.value_or(most));
  const std::int64_t all = budget_;
  for (int stages = first; setting && stages <= last && !context_.should_stop(); ++stages) {
    budget_ = all * (stages - first + 1) / std::max(1, last - first + 1);
    if (context_.on_progress)
      context_.on_progress(static_cast<double>(stages - first) / (last - first + 1));
    // Larger micro-batches where the smallest leave no plan.
    for (std::optional<Alleviated> start = balanced_pipeline(space_, stages, *setting); start;) {
      std::optional<Costed> own = costed(*start);
      if (own) {
        seen_.insert(*start);
        follow(std::move(*own));
        break;
      }
      bool changed = false;
      for (AlleviatedStage& stage : start->stages)
        if (stage.tensor % 2 == 0) {
          stage.tensor /= 2;
          changed = true;
        }
      if (changed) continue;
      auto larger = primitives()[4].apply(space_, *start, 0, {});
      if (larger.empty()) break;
      start = std::move(larger.front());
    }
  }
  out.plans = found_.plans();
  out.nearest = found_.nearest();
  out.evaluations = evaluations_ + found_.evaluations();
  out.cut_short = context_.should_stop();
  if (out.plans.empty())
    out.reason = "aceso found no pipeline of powers of two of devices that fits";
  return out;
}

}  // namespace

SearchResult search_like_aceso(const SearchContext& context) {
  return Alleviation(context).search();
}

}  // namespace plait
