#include "search/uniform/layouts/smaller_mixes.h"

#include "search/bound/cluster_lower_bound.h"

namespace plait {
namespace {

ClusterLowerBound floor_under(const SearchContext& context) {
  return {*context.engine, context.options.pins, context.options.target,
          [&] { return context.should_stop(); }};
}

std::vector<int> devices_of(const SearchContext& context, const std::vector<NodeKind>& kinds,
                            const NodeMix& mix) {
  std::vector<int> devices(context.problem.cluster.device_types.size());
  for (std::size_t k = 0; k < kinds.size(); ++k)
    for (const int type : kinds[k].types) devices[type] += mix[k];
  return devices;
}

}  // namespace

Seconds least_step(const SearchContext& context, const std::vector<NodeKind>& kinds,
                   const NodeMix& mix) {
  return floor_under(context).step(devices_of(context, kinds, mix));
}

std::optional<std::vector<BoundedMix>> smaller_mixes(const SearchContext& context,
                                                     const std::vector<NodeKind>& kinds,
                                                     const std::vector<NodeMix>& mixes,
                                                     const UniformLayouts& layouts, Seconds limit) {
  if (context.should_stop()) return std::nullopt;
  const ClusterLowerBound floor = floor_under(context);
  std::vector<BoundedMix> out;
  for (int i = 1; i < static_cast<int>(mixes.size()); ++i) {
    if (context.should_stop()) return std::nullopt;
    if (!layouts.has_degrees(mixes[i])) continue;
    const Seconds least = floor.step(devices_of(context, kinds, mixes[i]));
    if (least < limit) out.push_back({i, least});
  }
  return out;
}

}  // namespace plait
