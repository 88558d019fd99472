#include "app/clusters/replan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "app/clusters/fewer_devices.h"
#include "app/plan/quick_search.h"
#include "app/request/request_error.h"
#include "app/request/saved_target.h"
#include "app/request/search_request.h"
#include "cost/engine.h"
#include "cost/known_times.h"
#include "io/cluster/cluster_shorthand.h"
#include "io/cluster/load_cluster.h"

namespace plait {
namespace {

int node_named(const Cluster& cluster, const char* field, const std::string& name) {
  std::vector<std::string_view> names;
  for (std::size_t n = 0; n < cluster.nodes.size(); ++n) {
    if (cluster.nodes[n].name == name) return static_cast<int>(n);
    names.push_back(cluster.nodes[n].name);
  }
  const bool many = names.size() > 8;
  const std::string near = suggestion(name, names);
  if (many) names.resize(8);
  throw RequestError(
      field, fmt::format("no node is called '{}'{}; they are {}{}", name.substr(0, 40), near,
                         fmt::join(names, ", "), many ? " ..." : ""));
}

void lose_devices(const ReplanRequest& request, const Cluster& cluster, ClusterChange& change) {
  change.lost.assign(cluster.devices.size(), false);
  for (const std::string& name : request.lost) {
    const int node = node_named(cluster, "lost", name);
    for (int i = 0; i < cluster.device_count(); ++i)
      if (cluster.devices[i].node == node) change.lost[i] = true;
  }
  for (const auto& [first, last] : request.lost_devices) {
    if (first < 0 || last < first || last >= cluster.device_count())
      throw RequestError(
          "lost_devices",
          fmt::format("ids are from 0 to {}, not '{}'", cluster.device_count() - 1,
                      first == last ? std::to_string(first) : fmt::format("{}-{}", first, last)));
    for (int i = first; i <= last; ++i) change.lost[i] = true;
  }
}

// The nodes of one entry of `add`.
Cluster added_nodes(const std::string& text, const Catalogue& catalogue, const Cluster& cluster) {
  Cluster added = read_cluster_shorthand(text, catalogue, "`add`").cluster;
  take_cluster_constants(added, catalogue);
  for (const std::string& zone : added.zones)
    if (cluster.zones.size() > 1 && zone != "default" &&
        std::ranges::find(cluster.zones, zone) == cluster.zones.end())
      throw RequestError("add", fmt::format("there is no zone '{}' in the plan", zone));
  return added;
}

Catalogue catalogue_of(const ReplanRequest& request) {
  return request.catalogue.empty() ? builtin_catalogue() : load_catalogue(request.catalogue);
}

ClusterChange change_of(const ReplanRequest& request, const Cluster& cluster) {
  ClusterChange change;
  lose_devices(request, cluster, change);
  change.speed.assign(cluster.nodes.size(), 1);
  for (const auto& [node, speed] : request.slow) {
    if (!(speed >= 0.001 && speed <= 1000))
      throw RequestError("slow", fmt::format("must be from 0.001 to 1000, is {}", speed));
    change.speed[node_named(cluster, "slow", node)] = speed;
  }
  const Catalogue catalogue = catalogue_of(request);
  for (const std::string& text : request.add)
    change.added.push_back(added_nodes(text, catalogue, cluster));
  return change;
}

}  // namespace

void check_change(const ReplanRequest& request) {
  if (request.lost.empty() && request.lost_devices.empty() && request.slow.empty() &&
      request.add.empty())
    throw InputError("plait replan", "what changed? Give `lost`, `lost_devices`, `slow` or `add`");
}

namespace {

// The cluster after the change, and its best plan.
ReplanAnswer planned(const ReplanRequest& request, const ClusterChange& change,
                     SearchOptions search, const Session& session) {
  const Problem& before = request.before.problem;
  Cluster cluster = before.cluster;
  if (!change.added.empty()) take_cluster_constants(cluster, catalogue_of(request));
  ChangedCluster changed = changed_cluster(cluster, change);
  if (changed.cluster.devices.empty())
    throw RequestError(request.lost.empty() ? "lost_devices" : "lost",
                       "takes all devices; nothing is left to plan for");
  refuse_several_collectives(changed.cluster, search.target, "add");
  ReplanAnswer out;
  out.before = request.before;
  out.old_cost = CostEngine(before).simulate(request.before.plan);
  out.after = before;
  out.after.cluster = std::move(changed.cluster);
  add_slowed_points(before.cluster, change, out.after.profile);
  refuse_unknown_times(out.after);
  apply(request.memory, out.after.job);
  memory_warnings(out.after.cluster, out.after.job);
  out.device_before = std::move(changed.before);
  out.restart = request.restart;
  if (!is_hopeless(out.after, search.pins))
    out.result = replan(planner_named(request.planner), search_context(out.after, search, session),
                        before, request.before.plan, out.device_before);
  return out;
}

// The same where fewer devices of a node may be faster: by 1 % at least.
void try_fewer_devices(const ReplanRequest& request, const ClusterChange& change,
                       const SearchOptions& search, const Session& session, const Stopwatch& watch,
                       ReplanAnswer& best) {
  constexpr double kWorthwhile = 0.99;
  const int all = best.after.cluster.device_count();
  for (const ClusterChange& fewer : with_fewer_devices(request.before.problem.cluster, change)) {
    SearchOptions rest = search;
    rest.time_limit -= watch.elapsed();
    if (session.stop.stop_requested() || rest.time_limit <= Seconds(0)) return;
    ReplanAnswer other = planned(request, fewer, rest, session);
    if (!other.found() ||
        (best.found() && other.result.plan->cost.step >= kWorthwhile * best.result.plan->cost.step))
      continue;
    best = std::move(other);
    best.left_out = all - best.after.cluster.device_count();
  }
}

}  // namespace

ReplanAnswer answer(const ReplanRequest& request, const Session& session) {
  check_change(request);
  planner_named(request.planner);
  SearchOptions search = request.search;
  if (request.before.plan.offload > 0 && !search.pins.offload)
    search.pins.offload = request.before.plan.offload;
  search.target = saved_target(request.before);
  const ClusterChange change = change_of(request, request.before.problem.cluster);
  const Stopwatch watch;
  ReplanAnswer out = planned(request, change, search, session);
  if (search.target.one_layout && !search.target.idle_in_node)
    try_fewer_devices(request, change, search, session, watch, out);
  out.elapsed = watch.elapsed();
  out.interrupted = session.stop.stop_requested();
  if (!out.found())
    out.no_plan =
        why_no_plan(out.after, in_time_left(search, out.elapsed), out.result.search, session);
  return out;
}

}  // namespace plait
