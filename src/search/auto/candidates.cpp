#include "search/auto/candidates.h"

#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "search/space/worthwhile.h"

namespace plait {
namespace {

constexpr std::size_t kPair = 2;  // that are taken at once, lowest first

// Whether plans whose replicas cut the optimizer's state make the others all but superfluous. They
// do not where the program has none.
bool skips_whole_optimizer(const SearchContext& context, const Space& space) {
  const auto has_cut = [](const std::vector<ZeroStage>& zeros) {
    return std::ranges::find(zeros, ZeroStage::optimizer) != zeros.end();
  };
  return !context.options.pins.zero && has_cut(space.target().zero) &&
         has_cut(space.target().zero_in_pipeline) && gains_by_cut_optimizer(context.problem);
}

}  // namespace

Candidates::Candidates(const SearchContext& context, const Space& space, const CostEngine& engine,
                       Schedule schedule, Kinds kinds)
    : is_listed_(true) {
  list(context, space, kinds);
  parallel_for(static_cast<int>(pipelined_.size()), context.options.threads, [&](int i) {
    Candidate& c = pipelined_[i];
    if (context.should_stop()) return;  // and nothing is known of it
    c.table = std::make_unique<StageTable>(space, engine, c.settings, schedule,
                                           [&] { return context.should_stop(); });
    if (!c.table->is_whole()) return c.table.reset();
    c.bound = c.table->bounds().any_step();
  });
  is_complete_ =
      std::ranges::all_of(pipelined_, [](const Candidate& c) { return c.table != nullptr; });
  std::erase_if(pipelined_,
                [](const Candidate& c) { return !c.table || c.table->options().empty(); });
  std::ranges::stable_sort(pipelined_, {}, [](const Candidate& c) { return c.bound; });
}

void Candidates::list(const SearchContext& context, const Space& space, Kinds kinds) {
  const bool skips_whole = !kinds.every_zero && skips_whole_optimizer(context, space);
  for (const PlanSettings& settings : space.settings()) {
    if (skips_whole && settings.zero == ZeroStage::off) continue;
    if (!is_promising(context, settings.micro_batches)) continue;
    const bool apart = kinds.single_apart && space.max_stages(settings) == 1;
    (apart ? single_stages_ : pipelined_).push_back({settings, nullptr, {}, false});
  }
}

Seconds Candidates::lowest_bound() const {
  Seconds bound(is_listed_ && is_complete_ ? HUGE_VAL : 0);
  for (const Candidate& c : pipelined_) bound = std::min(bound, c.bound);
  for (const Candidate& c : single_stages_) bound = std::min(bound, c.bound);
  return bound;
}

std::vector<int> Candidates::lowest_open(const std::set<int>& done, Seconds limit) const {
  for (const int i : done) limit = std::min(limit, pipelined_[i].bound);
  std::vector<int> open;
  for (int i = 0; i < static_cast<int>(pipelined_.size()); ++i)
    if (!done.contains(i) && !pipelined_[i].exact && pipelined_[i].bound < limit) open.push_back(i);
  std::ranges::stable_sort(open, {}, [&](int i) { return pipelined_[i].bound; });
  if (open.size() > kPair) open.resize(kPair);
  return open;
}

Seconds Candidates::raise_efforts(Seconds middle, bool only_lowest, double& effort) {
  std::vector<int> lower;
  for (int i = 0; i < static_cast<int>(pipelined_.size()); ++i)
    if (pipelined_[i].bound < middle) lower.push_back(i);
  if (only_lowest) std::ranges::stable_sort(lower, {}, [&](int i) { return pipelined_[i].bound; });
  for (const int i : lower) {
    Candidate& c = pipelined_[i];
    if (only_lowest && i != lower.front() && effort < 4 * c.effort) return c.bound;
    c.effort *= 4;
    effort -= c.effort;
  }
  return middle;
}

}  // namespace plait
