#include "search/auto/branch_and_bound.h"

#include <algorithm>

namespace plait {
namespace {

// Floating-point sums of the same times in another order differ by a few ulp; a bound that exceeds
// the best by no more than this may still be a tie.
constexpr double kRounding = 1e-12;

class BranchAndBound {
 public:
  BranchAndBound(const Space& space, StageTable& table, Shortlist& found, std::int64_t& nodes,
                 const std::function<bool()>& stop)
      : space_(space),
        table_(table),
        found_(found),
        nodes_(nodes),
        stop_(stop),
        rhythm_(table.rhythm()),
        max_stages_(space.max_stages(table.settings())),
        used_(space.pools().size(), 0) {}

  bool run() {
    extend(space_.problem().model.unit_count(), PipelineSuffix{}, 0);
    return complete_;
  }

 private:
  bool hopeless(Seconds bound) const { return bound > found_.worst_kept() * (1 + kRounding); }

  // `next`: the option of the first stage that is there.
  void extend(int end, const PipelineSuffix& tail, int next) {
    if (tail.stages >= max_stages_) return;
    for (int o = 0; o < static_cast<int>(table_.options().size()) && complete_; ++o) {
      const std::vector<int> before = used_;
      std::vector<int> begin;
      if (!table_.take(o, used_, begin)) continue;
      const StageOption& option = table_.options()[o];
      RunCosts& runs = table_.runs(o, begin);
      const Seconds send = tail.stages > 0 ? table_.hand_over(o, next, end) : Seconds(0);
      for (int from = end - 1; from >= 0 && complete_; --from) {
        const UnitRange units{from, end};
        if (!space_.allows(units, tail.stages)) continue;
        const auto choice = runs.choose(units, tail.stages);
        if (!choice) {  // more units need more memory, unless they spare a tied copy
          from = space_.tied_copies().next_owner(units) + 1;
          continue;
        }
        PipelineSuffix longer = tail;
        longer.prepend(*choice, send, rhythm_);
        if (hopeless(longer.length())) break;
        stages_.push_back({option, begin, units, choice->recompute});
        if (tail.stages == 0) last_ = o;
        visit(longer, o, from);
        stages_.pop_back();
      }
      used_ = before;
    }
  }

  void visit(const PipelineSuffix& tail, int first, int left) {
    if (--nodes_ <= 0 || (nodes_ % 256 == 0 && stop_())) {
      complete_ = false;
      return;
    }
    if (left == 0) {
      const Seconds tied =
          tail.stages > 1 ? table_.tied(first, stages_.back().begin, last_) : Seconds(0);
      if (tail.stages < space_.min_stages() || hopeless(tail.step() + tied)) return;
      const std::vector<PlacedStage> in_order(stages_.rbegin(), stages_.rend());
      for (const Plan& plan : space_.plans_of(in_order, table_.settings())) found_.offer(plan);
      return;
    }
    table_.bounds().set_rest(used_, rest_);
    if (!hopeless(table_.bounds().step(tail, left, rest_, table_.tied_to(last_))))
      extend(left, tail, first);
  }

  const Space& space_;
  StageTable& table_;
  Shortlist& found_;
  std::int64_t& nodes_;
  const std::function<bool()>& stop_;
  ScheduleSetting rhythm_;
  int max_stages_;
  std::vector<int> used_;
  Bounds::Rest rest_;
  std::vector<PlacedStage> stages_;  // last stage of the pipeline first
  int last_ = 0;                     // option of the last stage
  bool complete_ = true;
};

}  // namespace

bool branch_and_bound(const Space& space, StageTable& table, Shortlist& found, std::int64_t& nodes,
                      const std::function<bool()>& stop) {
  return BranchAndBound(space, table, found, nodes, stop).run();
}

}  // namespace plait
