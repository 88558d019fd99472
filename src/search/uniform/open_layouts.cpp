#include "search/uniform/open_layouts.h"

#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "search/space/worthwhile.h"
#include "search/uniform/all_orders.h"

namespace plait {
namespace {

constexpr std::size_t kBoundedAtOnce = 16;

Seconds bound_in_any_order(const UniformGround& ground, const UniformLayout& layout, Seconds step) {
  AllOrders all(ground, layout, *ground.spaces.at(layout.recompute), kThoroughOrderWork);
  return all.closes(step) ? step : all.bound();
}

}  // namespace

void raise_lowest(const UniformGround& ground, std::vector<OpenLayout*> open, Seconds wanted,
                  std::size_t most) {
  std::erase_if(open, [](const OpenLayout* own) { return own->listed <= own->layout.bound; });
  std::ranges::stable_sort(open, {}, [](const OpenLayout* own) { return own->layout.bound; });
  Seconds known(HUGE_VAL);  // the lowest bound of those that were looked at
  for (std::size_t begin = 0; begin < std::min(most, open.size()) && !ground.stop();
       begin += kBoundedAtOnce) {
    const Seconds next = open[begin]->layout.bound;
    if (known <= next || (1 + kProven) * next >= wanted) return;
    const auto count = static_cast<int>(std::min(kBoundedAtOnce, open.size() - begin));
    parallel_for(count, ground.context.options.threads, [&](int i) {
      auto& [layout, listed] = *open[begin + static_cast<std::size_t>(i)];
      const Seconds bound = bound_in_any_order(ground, layout, wanted);
      layout.bound = std::max(layout.bound, std::min(listed, bound));
    });
    for (int i = 0; i < count; ++i)
      known = std::min(known, open[begin + static_cast<std::size_t>(i)]->layout.bound);
  }
}

Seconds bound_of_families(const UniformGround& ground, UniformLayouts& layouts,
                          std::vector<NodeMix>& mixes, const std::vector<int>& listed,
                          Seconds wanted, std::size_t most) {
  const auto [families, are_all] = layouts.list_families(mixes, listed, wanted, ground.stop);
  if (!are_all) return Seconds(0);
  std::vector<OpenLayout> open;
  for (const UniformLayout& family : families)
    if (is_promising(ground.context, family.settings.micro_batches))
      open.push_back({family, Seconds(HUGE_VAL)});
  std::vector<OpenLayout*> all;
  for (OpenLayout& own : open) all.push_back(&own);
  raise_lowest(ground, all, wanted, most);
  Seconds least = wanted;
  for (const OpenLayout& own : open) least = std::min(least, own.layout.bound);
  return least;
}

}  // namespace plait
