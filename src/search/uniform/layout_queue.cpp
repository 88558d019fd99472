#include "search/uniform/layout_queue.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "cost/pipeline/schedule.h"

namespace plait {
namespace {

constexpr std::size_t kRound = 16;    // layouts that start from the same incumbent
constexpr double kMostLeaders = 600;  // that come before others, with the usual work

}  // namespace

LayoutQueue::LayoutQueue(std::vector<UniformLayout> layouts, double most)
    : layouts_(std::move(layouts)), most_(most) {
  sort_rest();
  lead_by_degrees();
}

// Puts the layout with the lowest bound of each mix of nodes and each degree first; those that
// gather weights, and those that put weight gradients aside, by themselves. Bounds know little of
// slow links: in their order alone, many layouts of one kind would come before any of another.
void LayoutQueue::lead_by_degrees() {
  std::set<std::tuple<int, int, int, int, bool, bool>> seen;
  const auto rest =
      std::stable_partition(layouts_.begin(), layouts_.end(), [&](const UniformLayout& layout) {
        return seen
            .insert({layout.mix, layout.tensor, layout.stages, layout.settings.context,
                     layout.settings.zero == ZeroStage::parameters,
                     splits_backward(layout.schedule)})
            .second;
      });
  leaders_ = static_cast<std::size_t>(rest - layouts_.begin());
}

void LayoutQueue::sort_rest() {
  std::ranges::stable_sort(layouts_.begin() + static_cast<long>(next_), layouts_.end(), {},
                           &UniformLayout::bound);
}

std::span<const UniformLayout> LayoutQueue::next(double work, Seconds wanted) {
  const double most = work * most_;
  if (next_ >= leaders_ || costed_ >= std::min(work * kMostLeaders, most)) {
    if (leaders_ > 0) sort_rest();
    leaders_ = 0;
    const bool none = next_ == layouts_.size() || layouts_[next_].bound >= wanted;
    if (none || costed_ >= most) return {};
  }
  const std::size_t first = next_;
  next_ = std::min(layouts_.size(), first + kRound);
  return std::span(layouts_).subspan(first, next_ - first);
}

Seconds LayoutQueue::bound() const {
  Seconds least(HUGE_VAL);
  for (const UniformLayout& layout : rest()) least = std::min(least, layout.bound);
  return least;
}

}  // namespace plait
