#include <algorithm>

#include "search/papers/paper_search.h"
#include "search/papers/partition.h"
#include "search/space/planners.h"

// FASOP (Hwang et al., ICPP 2023): as AMP, over cyclic orders of the nodes, with stages balanced by
// moving layers from the slowest to the fastest.
namespace plait {
namespace {

// The longest stage, and how many are as long.
struct Peak {
  double time = 0;
  int stages = 0;
  bool below(const Peak& other) const {
    if (time < other.time * (1 - kSameTime)) return true;
    return time <= other.time * (1 + kSameTime) && stages < other.stages;
  }
};

class MinMax {
 public:
  MinMax(PaperSearch& search, const Layout& layout) : search_(search), layout_(layout) {}

  // Starts with as many units for each stage; moves one from the slowest to the fastest stage, all
  // stages between them shifting by one, as long as the peak falls.
  std::vector<int> run() {
    const int stages = layout_.stages();
    cuts_ = even_cuts(search_.units(), stages);
    times_.resize(stages);
    Peak peak = measure();
    while (!search_.stopped()) {
      const auto slowest = static_cast<int>(std::ranges::max_element(times_) - times_.begin());
      const auto fastest = static_cast<int>(std::ranges::min_element(times_) - times_.begin());
      if (slowest == fastest || cuts_[slowest + 1] - cuts_[slowest] == 1) break;
      std::vector<int> before = cuts_;
      for (int s = slowest + 1; s <= fastest; ++s) --cuts_[s];
      for (int s = fastest + 1; s <= slowest; ++s) ++cuts_[s];
      const Peak next = measure();
      if (!next.below(peak)) return before;
      peak = next;
    }
    return cuts_;
  }

 private:
  Peak measure() {
    for (std::size_t s = 0; s < times_.size(); ++s)
      times_[s] = search_.time(*layout_.frames[s], {cuts_[s], cuts_[s + 1]}).value;
    Peak peak{*std::ranges::max_element(times_), 0};
    for (const double time : times_) peak.stages += time >= peak.time * (1 - kSameTime) ? 1 : 0;
    return peak;
  }

  PaperSearch& search_;
  const Layout& layout_;
  std::vector<int> cuts_;
  std::vector<double> times_;
};

// After how many nodes the order repeats itself, but for the names of equal nodes: rotations by
// less are all different.
int period_of(const Cluster& cluster, const Space& space, const std::vector<int>& nodes) {
  std::vector<int> pool_of(cluster.nodes.size(), -1);
  for (int p = 0; p < static_cast<int>(space.pools().size()); ++p)
    for (const DeviceId id : space.pools()[p].devices) pool_of[cluster.device(id).node] = p;
  const int count = static_cast<int>(nodes.size());
  for (const int period : divisors_of(count)) {
    bool repeats = true;
    for (int i = period; i < count && repeats; ++i)
      repeats = pool_of[nodes[i]] == pool_of[nodes[i - period]];
    if (repeats) return period;
  }
  return count;
}

void try_order(PaperSearch& search, const std::vector<DeviceId>& order,
               const std::vector<Degrees>& all) {
  for (const Degrees& degrees : all) {
    if (search.stopped()) return;
    const std::optional<Layout> layout = search.uniform_layout(order, degrees);
    if (!layout) continue;
    const std::vector<int> pinned = pinned_cuts(search.space().pins());
    search.offer(*layout, pinned.empty() ? MinMax(search, *layout).run() : pinned);
  }
}

}  // namespace

SearchResult search_like_fasop(const SearchContext& context) {
  PaperSearch search(context);
  const std::string nothing = no_uniform_layout("fasop");
  if (!search.obstacle().empty()) return search.result(nothing);
  const std::vector<Degrees> all = search.uniform_degrees(context.options.max_tensor);
  const Cluster& cluster = context.problem.cluster;
  const std::vector<int> nodes = nodes_by_type(cluster, node_types(cluster));
  const int period = period_of(cluster, search.space(), nodes);
  const int wanted = context.options.rotations;
  const int count = wanted > 0 ? std::min(wanted, period) : period;
  for (int i = 0; i < count && !search.stopped(); ++i) {
    search.report_progress(static_cast<double>(i) / count);
    std::vector<int> rotated = nodes;
    std::rotate(rotated.begin(), rotated.begin() + static_cast<long>(period) * i / count,
                rotated.end());
    try_order(search, devices_of(cluster, rotated), all);
  }
  return search.result(nothing);
}

}  // namespace plait
