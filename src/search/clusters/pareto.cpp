#include "search/clusters/pareto.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <numeric>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/parallel.h"
#include "cost/price.h"
#include "search/bound/cluster_lower_bound.h"
#include "search/space/sub_cluster.h"

namespace plait {
namespace {

// Mixes that are planned side by side; all see the same front, so threads change nothing.
constexpr int kRound = 4;
// Mixes of a cluster beyond which mix_kinds leaves counts out. A limit of work: seconds.
constexpr std::int64_t kManyMixes = 2'000;

// Sums of the same prices in another order differ by less.
constexpr double kSame = 1 + 1e-12;

// No worse in price and time.
bool covers(const MixPoint& a, const MixPoint& b) {
  return a.price() <= b.price() * kSame && a.step() <= b.step() * kSame;
}

// A mix before it is planned.
struct Candidate {
  Mix mix;
  UsdPerSecond rent;
  Seconds floor;  // no step is shorter
  int layer = 0;  // 0 = no other mix looks better, 1 = only those of layer 0 do ...
};

class ParetoSearch {
 public:
  ParetoSearch(const Planner& planner, const SearchContext& context, std::span<const MixKind> kinds)
      : planner_(planner),
        context_(context),
        whole_(context.problem.cluster),
        kinds_(kinds),
        floor_(CostEngine(context.problem), context.options.pins, context.options.target,
               [this] { return stopped(); }) {}

  ParetoResult run(std::optional<Seconds> enough) {
    list_candidates();
    rank_candidates();
    result_.cut_short = stopped();
    const int count = static_cast<int>(candidates_.size());
    for (int first = 0; first < count && !result_.cut_short;) {
      std::vector<int> round;
      std::vector<Seconds> cutoffs;
      // Without a front nothing can be left out, so that the first is planned alone where the
      // planner loses nothing by that; moves in the free space stop early under a cutoff.
      const bool alone = result_.front.empty() && context_.options.target.one_layout;
      const std::size_t most = alone ? 1 : kRound;
      for (; first < count && round.size() < most; ++first) {
        const Seconds cutoff = cutoff_of(candidates_[first].rent);
        if (!(candidates_[first].floor < cutoff)) continue;
        round.push_back(first);
        cutoffs.push_back(cutoff);
      }
      plan_round(round, cutoffs);
      if (context_.on_progress) context_.on_progress(first / (count + 0.0));
    }
    if (!result_.front.empty()) result_.nearest.reset();
    if (enough) find_fewest_nodes(*enough);
    std::ranges::sort(result_.behind, {}, &MixPoint::mix);
    return std::move(result_);
  }

 private:
  std::vector<int> devices_by_type(const Mix& mix) const {
    std::vector<int> out(whole_.device_types.size());
    for (std::size_t k = 0; k < kinds_.size(); ++k)
      for (std::size_t t = 0; t < out.size(); ++t) out[t] += mix[k] * in_node_[k][t];
    return out;
  }

  void list_candidates() {
    std::vector<std::vector<int>> by_node(whole_.nodes.size(),
                                          std::vector<int>(whole_.device_types.size()));
    for (const Device& device : whole_.devices) ++by_node[device.node][device.type];
    for (const MixKind& kind : kinds_) in_node_.push_back(by_node[kind.nodes.front()]);
    std::vector<std::size_t> at(kinds_.size());
    for (bool more = true; more && !stopped();) {
      Candidate candidate;
      for (std::size_t k = 0; k < kinds_.size(); ++k) {
        candidate.mix.push_back(kinds_[k].counts[at[k]]);
      }
      candidate.rent = rent_of(candidate.mix);
      const std::vector<int> devices = devices_by_type(candidate.mix);
      candidate.floor = floor_.step(devices);
      if (std::ranges::any_of(devices, [](int n) { return n > 0; }))
        candidates_.push_back(std::move(candidate));
      more = false;
      for (std::size_t k = kinds_.size(); k-- > 0 && !more;) {
        more = ++at[k] < kinds_[k].counts.size();
        if (!more) at[k] = 0;
      }
    }
    result_.mixes = static_cast<std::int64_t>(candidates_.size());
  }

  UsdPerSecond rent_of(const Mix& mix) const {
    UsdPerSecond rent;
    for (std::size_t k = 0; k < kinds_.size(); ++k)
      rent += mix[k] * whole_.nodes[kinds_[k].nodes.front()].price;
    return rent;
  }

  // By layers of dominance between the floors: what is likely on the front comes first and makes
  // the rest superfluous.
  void rank_candidates() {
    // Cheapest first, so that only earlier ones can dominate.
    std::ranges::stable_sort(candidates_, {}, [](const Candidate& c) {
      return std::make_pair(c.rent * c.floor, c.floor);
    });
    std::vector<Seconds> fastest;  // by layer, so far
    for (Candidate& c : candidates_) {
      const auto it = std::ranges::find_if(fastest, [&](Seconds f) { return c.floor < f; });
      c.layer = static_cast<int>(it - fastest.begin());
      if (it == fastest.end())
        fastest.push_back(c.floor);
      else
        *it = c.floor;
    }
    std::ranges::stable_sort(candidates_, {}, &Candidate::layer);
  }

  // The step that a plan at this rent must beat not to be dominated.
  Seconds cutoff_of(UsdPerSecond rent) const {
    Seconds cutoff(HUGE_VAL);
    for (const MixPoint& point : result_.front)
      cutoff = std::min(cutoff, std::max(point.step(), point.price() / rent));
    return cutoff;
  }

  struct Planned {
    SearchResult result;
    std::optional<MixPoint> point;
  };

  Planned plan_mix(const Candidate& candidate, Seconds cutoff) const {
    std::vector<bool> nodes(whole_.nodes.size());
    for (std::size_t k = 0; k < kinds_.size(); ++k)
      for (int i = 0; i < candidate.mix[k]; ++i) nodes[kinds_[k].nodes[i]] = true;
    std::vector<bool> devices;
    for (const Device& device : whole_.devices) devices.push_back(nodes[device.node]);
    const SubCluster part = keep_devices(whole_, devices);
    Problem problem = context_.problem;
    problem.cluster = part.cluster;
    SearchOptions options = context_.options;
    options.threads = 1;
    options.keep = 1;
    options.cutoff = cutoff;
    options.promising_micro_batches = floor_.micro_batches(devices_by_type(candidate.mix), cutoff);
    options.time_limit = left();
    Planned planned;
    if (violation_of(problem, options.pins, options.target)) return planned;
    planned.result = run_search(planner_, {problem, options, context_.stop, {}, {}});
    if (planned.result.nearest)
      planned.result.nearest->plan = in_whole(part, planned.result.nearest->plan);
    if (planned.result.plans.empty()) return planned;
    RankedPlan best = planned.result.plans.front();
    best.plan = in_whole(part, best.plan);
    planned.point = MixPoint{mix_of(whole_, kinds_, best.plan), std::move(best), {}};
    planned.point->rent = rent_of(planned.point->mix);
    return planned;
  }

  void plan_round(const std::vector<int>& round, const std::vector<Seconds>& cutoffs) {
    std::vector<Planned> planned(round.size());
    parallel_for(static_cast<int>(round.size()), context_.options.threads,
                 [&](int i) { planned[i] = plan_mix(candidates_[round[i]], cutoffs[i]); });
    for (Planned& one : planned) {
      ++result_.planned;
      result_.evaluations += one.result.evaluations;
      result_.cut_short = result_.cut_short || one.result.cut_short;
      if (one.result.nearest) result_.nearest = std::move(one.result.nearest);
      if (one.point) file(std::move(*one.point));
    }
    if (stopped()) result_.cut_short = true;
  }

  // The front has what is cheap and fast; a few nodes may be neither, and in time.
  void find_fewest_nodes(Seconds enough) {
    for (const auto* points : {&result_.front, &result_.behind})
      for (const MixPoint& point : *points)
        if (point.step() <= enough) take_if_fewer(point);
    if (!result_.fewest) return;
    // The fewest first; of as many, the cheapest.
    std::ranges::stable_sort(candidates_, {}, [](const Candidate& c) {
      return std::make_pair(node_count(c.mix), c.rent);
    });
    const auto fewer = [&](const Candidate& c) {
      return node_count(c.mix) < node_count(result_.fewest->mix) && !stopped();
    };
    for (const Candidate& candidate : candidates_) {
      if (!fewer(candidate)) break;
      if (candidate.floor > enough) continue;
      const Planned planned = plan_mix(candidate, enough * kSame);
      if (planned.point && planned.point->step() <= enough) take_if_fewer(*planned.point);
    }
    const Candidate* fastest = nullptr;
    for (const Candidate& c : candidates_)
      if (fewer(c) && (fastest == nullptr || c.floor < fastest->floor)) fastest = &c;
    if (fastest != nullptr) result_.too_slow = plan_mix(*fastest, Seconds(HUGE_VAL)).point;
    if (result_.too_slow && result_.too_slow->step() <= enough) {
      take_if_fewer(*result_.too_slow);
      result_.too_slow.reset();
    }
    if (stopped()) result_.cut_short = true;
  }

  void take_if_fewer(const MixPoint& point) {
    const auto rank = [](const MixPoint& p) {
      return std::make_pair(node_count(p.mix), p.rent.value);
    };
    if (!result_.fewest || rank(point) < rank(*result_.fewest)) result_.fewest = point;
  }

  void file(MixPoint point) {
    std::vector<MixPoint>& front = result_.front;
    for (const MixPoint& p : front) {
      if (!covers(p, point)) continue;
      if (!covers(point, p)) result_.behind.push_back(std::move(point));
      return;
    }
    const auto beaten = [&](const MixPoint& p) { return covers(point, p); };
    std::ranges::copy_if(front, std::back_inserter(result_.behind), beaten);
    std::erase_if(front, beaten);
    const auto place =
        std::ranges::find_if(front, [&](const MixPoint& p) { return point.price() < p.price(); });
    front.insert(place, std::move(point));
  }

  Seconds left() const {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin_;
    return std::max(Seconds(0), context_.options.time_limit - Seconds(spent.count()));
  }
  bool stopped() const { return context_.stop.stop_requested() || left() <= Seconds(0); }

  const Planner& planner_;
  const SearchContext& context_;
  const Cluster& whole_;
  std::span<const MixKind> kinds_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  const ClusterLowerBound floor_;
  std::vector<std::vector<int>> in_node_;  // devices of a node, by kind and device type
  std::vector<Candidate> candidates_;
  ParetoResult result_;
};

}  // namespace

int node_count(const Mix& mix) { return std::accumulate(mix.begin(), mix.end(), 0); }

std::int64_t mix_count(std::span<const MixKind> kinds) {
  double product = 1;
  for (const MixKind& kind : kinds) product *= static_cast<double>(kind.counts.size());
  return static_cast<std::int64_t>(std::min(product, 1e18));
}

std::vector<MixKind> mix_kinds(const Cluster& cluster) {
  std::vector<MixKind> kinds;
  for (std::vector<int>& nodes : node_kinds(cluster)) kinds.push_back({std::move(nodes), {}});
  for (const bool all : {true, false}) {
    for (MixKind& kind : kinds) {
      const int most = static_cast<int>(kind.nodes.size());
      std::set<int> counts{0, most};
      for (int n = 1; n <= most; n = all || n < 8 ? n + 1 : 2 * n) {
        counts.insert(n);
        if (!all && n >= 8 && n / 2 * 3 <= most) counts.insert(n / 2 * 3);
      }
      kind.counts.assign(counts.begin(), counts.end());
    }
    if (mix_count(kinds) <= kManyMixes) break;
  }
  // Of many kinds every other count of the kind with most of them goes, none and all apart.
  while (mix_count(kinds) > kManyMixes) {
    std::vector<int>& counts = std::ranges::max_element(kinds, {}, [](const MixKind& kind) {
                                 return kind.counts.size();
                               })->counts;
    if (counts.size() <= 2) break;
    std::vector<int> fewer;
    for (std::size_t i = 0; i < counts.size(); ++i)
      if (i % 2 == 0 || i + 1 == counts.size()) fewer.push_back(counts[i]);
    if (fewer.size() == counts.size()) fewer.erase(fewer.begin() + 1);
    counts = std::move(fewer);
  }
  return kinds;
}

Mix mix_of(const Cluster& cluster, std::span<const MixKind> kinds, const Plan& plan) {
  std::vector<bool> used(cluster.nodes.size());
  for (const Stage& stage : plan.stages)
    for (const DeviceId id : stage.devices) used[cluster.device(id).node] = true;
  Mix mix;
  for (const MixKind& kind : kinds)
    mix.push_back(std::max(kind.counts.front(),
                           static_cast<int>(std::ranges::count_if(
                               kind.nodes, [&](int n) { return static_cast<bool>(used[n]); }))));
  return mix;
}

ParetoResult pareto_front(const Planner& planner, const SearchContext& context,
                          std::span<const MixKind> kinds, std::optional<Seconds> enough) {
  PLAIT_CHECK(unpriced_node(context.problem.cluster).empty());
  PLAIT_CHECK(mix_count(kinds) <= kMaxMixes);
  return ParetoSearch(planner, context, kinds).run(enough);
}

}  // namespace plait
