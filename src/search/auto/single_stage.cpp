#include "search/auto/single_stage.h"

#include <algorithm>
#include <cmath>

#include "search/space/run_costs.h"

namespace plait {
namespace {

struct Ranked {
  StageOption option;
  Seconds floor;
};

class SingleStageSearch {
 public:
  SingleStageSearch(const Space& space, const CostEngine& engine, const SingleStage& wanted)
      : space_(space),
        engine_(engine),
        wanted_(wanted),
        whole_{0, space.problem().model.unit_count()},
        tables_([this](const ReplicaShape& shape) -> const UnitTable& {
          return engine_.table(shape);
        }) {}

  Seconds run(Shortlist& found, const std::function<bool()>& stop) {
    if (space_.min_stages() > 1 || !space_.allows(whole_, 0)) return Seconds(HUGE_VAL);
    Seconds bound(HUGE_VAL);
    Seconds limit = wanted_.limit;
    for (const Ranked& ranked : ranked_options()) {
      if (stop()) return {};
      if (ranked.floor >= limit) return std::min(bound, ranked.floor);
      RunCosts runs(space_, rhythm(), frame(ranked.option, wanted_.settings));
      const auto choice = runs.choose(whole_, 0);
      if (!choice) continue;
      PipelineSuffix tail;
      tail.prepend(*choice, Seconds(0), rhythm());
      bound = std::min(bound, tail.step());
      if (tail.step() >= limit) continue;
      const PlacedStage stage{ranked.option, beginning(ranked.option), whole_, choice->recompute};
      for (const Plan& plan : space_.plans_of({stage}, wanted_.settings)) found.offer(plan);
      limit = std::min(limit, found.best());
    }
    return bound;
  }

 private:
  ScheduleSetting rhythm() const { return {wanted_.schedule, wanted_.settings.micro_batches}; }

  static std::vector<int> beginning(const StageOption& option) {
    return std::vector<int>(option.takes.size(), 0);
  }

  SpanFrame frame(const StageOption& option, const PlanSettings& settings) const {
    const Stage stage = space_.stage_of({option, beginning(option), {}, {}});
    return SpanFrame(space_.problem(), settings, stage.devices, option.tensor, option.data,
                     stage.shares, tables_);
  }

  std::vector<Ranked> ranked_options() const {
    PlanSettings plain = wanted_.settings;
    if (plain.zero == ZeroStage::parameters) plain.zero = ZeroStage::optimizer;
    std::vector<Ranked> ranked;
    for (const StageOption& option : space_.stage_options(wanted_.settings)) {
      const UnitCost time = frame(option, plain).time(whole_, space_.recomputes().front());
      ranked.push_back({option, plain.micro_batches * time.total()});
    }
    std::ranges::stable_sort(ranked, {}, &Ranked::floor);
    return ranked;
  }

  const Space& space_;
  const CostEngine& engine_;
  const SingleStage& wanted_;
  UnitRange whole_;
  TableSource tables_;
};

}  // namespace

Seconds single_stage_plans(const Space& space, const CostEngine& engine, const SingleStage& wanted,
                           Shortlist& found, const std::function<bool()>& stop) {
  return SingleStageSearch(space, engine, wanted).run(found, stop);
}

}  // namespace plait
