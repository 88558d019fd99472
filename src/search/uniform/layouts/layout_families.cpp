#include <algorithm>
#include <numeric>

#include "search/space/space.h"
#include "search/uniform/layouts/uniform_layouts.h"

namespace plait {
namespace {

// How many mixes of these nodes have so many devices, by their number.
std::vector<double> mixes_by_devices(const std::vector<NodeKind>& kinds, const NodeMix& nodes,
                                     const NodeMix& steps) {
  std::vector<double> ways{1};
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    const auto own = static_cast<std::size_t>(kinds[k].devices());
    std::vector<double> next(ways.size() + own * nodes[k]);
    for (std::size_t d = 0; d < ways.size(); ++d)
      for (int n = 0; n <= nodes[k]; n += steps[k]) next[d + n * own] += ways[d];
    ways = std::move(next);
  }
  return ways;
}

}  // namespace

// A kind of node is launched in numbers that hold whole replicas: multiples of its step.
UniformLayouts::UsableNodes UniformLayouts::nodes_for(int tensor, int context) const {
  UsableNodes out{NodeMix(kinds_.size(), 0), NodeMix(kinds_.size(), 1)};
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    const int replica = tensor * context;
    out.steps[k] = replica / std::gcd(replica, kinds_[k].devices());
    NodeMix alone(kinds_.size(), 0);
    alone[k] = out.steps[k];
    if (out.steps[k] <= kinds_[k].count() && tensor_fits(alone, tensor, context))
      out.most[k] = kinds_[k].count() / out.steps[k] * out.steps[k];
  }
  return out;
}

// `open`: mixes that are not listed, by their devices.
void UniformLayouts::list_degrees_of(int mix, const std::vector<double>& open,
                                     const ReplicaDegrees& replica,
                                     std::vector<UniformLayout>& out) const {
  const int most = static_cast<int>(open.size()) - 1;
  UniformLayout layout{.mix = mix, .of_any_nodes = true, .tensor = replica.tensor};
  layout.settings.context = replica.context;
  layout.settings.expert = replica.expert;
  for (layout.data = 1; layout.stage_devices() <= most; ++layout.data) {
    if (problem_.job.global_batch % layout.data != 0) continue;
    for (layout.stages = space_.min_stages(); layout.stages <= most_stages_; ++layout.stages)
      if (layout.devices() <= most && open[layout.devices()] > 0) list_data(layout, out);
  }
}

UniformLayouts::Listed UniformLayouts::list_families(std::vector<NodeMix>& mixes,
                                                     const std::vector<int>& listed, Seconds limit,
                                                     const std::function<bool()>& stop) {
  std::vector<UniformLayout> all;
  for (const int tensor : tensors_)
    for (const auto& [context, expert] : contexts_) {
      const auto [nodes, steps] = nodes_for(tensor, context);
      std::vector<double> open = mixes_by_devices(kinds_, nodes, steps);
      for (const int at : listed) {
        int devices = 0;
        bool is_here = true;
        for (std::size_t k = 0; k < kinds_.size(); ++k) {
          devices += mixes[at][k] * kinds_[k].devices();
          is_here = is_here && mixes[at][k] <= nodes[k] && mixes[at][k] % steps[k] == 0;
        }
        if (is_here) --open[devices];
      }
      list_degrees_of(static_cast<int>(mixes.size()), open, {tensor, context, expert}, all);
      mixes.push_back(nodes);
      if (stop()) return {.layouts = {}, .are_all = false};
    }
  return bounded(mixes, std::move(all), limit, stop);
}

}  // namespace plait
