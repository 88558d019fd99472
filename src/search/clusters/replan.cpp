#include "search/clusters/replan.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "cost/engine.h"
#include "plan/check.h"
#include "search/clusters/held_state.h"
#include "search/space/sub_cluster.h"

namespace plait {
namespace {

std::string slowed_name(const std::string& name, double speed) {
  return fmt::format("{} at {:.4g} %", name, speed * 100);
}

int type_at_speed(Cluster& cluster, int type, double speed) {
  DeviceType slowed = cluster.device_types[type];
  slowed.name = slowed_name(slowed.name, speed);
  for (FlopsPerSecond& peak : slowed.peak) peak = peak * speed;
  slowed.memory_bandwidth = slowed.memory_bandwidth * speed;
  const auto it = std::ranges::find(cluster.device_types, slowed);
  if (it != cluster.device_types.end()) return static_cast<int>(it - cluster.device_types.begin());
  cluster.device_types.push_back(std::move(slowed));
  return static_cast<int>(cluster.device_types.size()) - 1;
}

int added_type(Cluster& cluster, DeviceType type) {
  const std::string name = type.name;
  for (int number = 2;; ++number) {
    const auto it = std::ranges::find(cluster.device_types, type.name, &DeviceType::name);
    if (it == cluster.device_types.end()) {
      cluster.device_types.push_back(std::move(type));
      return static_cast<int>(cluster.device_types.size()) - 1;
    }
    if (*it == type) return static_cast<int>(it - cluster.device_types.begin());
    type.name = fmt::format("{} ({})", name, number);
  }
}

int added_zone(Cluster& cluster, const std::string& name) {
  // A cluster of one zone takes in nodes of no particular zone.
  if (cluster.zones.size() == 1 && name == "default") return 0;
  const auto it = std::ranges::find(cluster.zones, name);
  if (it != cluster.zones.end()) return static_cast<int>(it - cluster.zones.begin());
  cluster.zones.push_back(name);
  return static_cast<int>(cluster.zones.size()) - 1;
}

void add_nodes(Cluster& cluster, const Cluster& added) {
  std::set<std::string> names;
  for (const Node& node : cluster.nodes) names.insert(node.name);
  const int first = static_cast<int>(cluster.nodes.size());
  for (Node node : added.nodes) {
    const std::string name = node.name;
    for (int number = 2; !names.insert(node.name).second; ++number)
      node.name = fmt::format("{}-{}", name, number);
    node.zone = added_zone(cluster, added.zones[node.zone]);
    cluster.nodes.push_back(std::move(node));
  }
  for (const Device& device : added.devices)
    cluster.devices.push_back(
        {added_type(cluster, added.device_types[device.type]), first + device.node});
}

// The plan with device d in place of where[d].
Plan relocated(Plan plan, const std::vector<DeviceId>& where) {
  for (Stage& stage : plan.stages)
    for (DeviceId& id : stage.devices) id = where[index(id)];
  return plan;
}

// Lets the equal nodes of each kind take the roles for which they hold most already, the best
// matches first.
Plan with_roles_matched(const Problem& after, const Plan& plan, const HeldState& old_state,
                        const std::vector<int>& device_before) {
  const HeldState wanted(after.model, after.job, plan, after.cluster.device_count());
  std::vector<std::vector<int>> devices_of(after.cluster.nodes.size());
  for (int i = 0; i < after.cluster.device_count(); ++i)
    devices_of[after.cluster.devices[i].node].push_back(i);
  std::vector<DeviceId> where;
  for (int i = 0; i < after.cluster.device_count(); ++i) where.push_back(DeviceId(i));
  struct Match {
    double kept = 0;
    bool moves = false;
    int role = 0;
    int node = 0;
  };
  for (const std::vector<int>& nodes : node_kinds(after.cluster)) {
    if (nodes.size() < 2 || nodes.size() > kMatchedNodes) continue;
    std::vector<Match> matches;
    for (const int role : nodes)
      for (const int node : nodes) {
        Match match{0, role != node, role, node};
        for (std::size_t i = 0; i < devices_of[role].size(); ++i) {
          const int old = device_before[devices_of[node][i]];
          if (old >= 0) match.kept += wanted.kept(devices_of[role][i], old_state, old).value;
        }
        matches.push_back(match);
      }
    std::ranges::stable_sort(matches, [](const Match& a, const Match& b) {
      if (a.kept != b.kept) return a.kept > b.kept;
      return a.moves < b.moves;
    });
    std::set<int> given;
    std::set<int> taken;
    for (const Match& match : matches) {
      if (given.contains(match.role) || taken.contains(match.node)) continue;
      given.insert(match.role);
      taken.insert(match.node);
      for (std::size_t i = 0; i < devices_of[match.role].size(); ++i)
        where[devices_of[match.role][i]] = DeviceId(devices_of[match.node][i]);
    }
  }
  return relocated(plan, where);
}

// The old plan on the new cluster, where all its devices are still there and it fits.
std::optional<RankedPlan> kept_plan(const Problem& after, const Plan& old_plan,
                                    const std::vector<int>& device_before, int old_devices) {
  std::vector<int> now(old_devices, -1);
  for (std::size_t i = 0; i < device_before.size(); ++i)
    if (device_before[i] >= 0) now[device_before[i]] = static_cast<int>(i);
  RankedPlan ranked{old_plan, {}};
  for (Stage& stage : ranked.plan.stages)
    for (DeviceId& id : stage.devices) {
      if (now[index(id)] < 0) return std::nullopt;
      id = DeviceId(now[index(id)]);
    }
  if (!check_plan(after, ranked.plan).empty()) return std::nullopt;
  ranked.cost = CostEngine(after).simulate(ranked.plan);
  if (!ranked.cost.fits) return std::nullopt;
  return ranked;
}

}  // namespace

ChangedCluster changed_cluster(const Cluster& before, const ClusterChange& change) {
  Cluster slowed = before;
  for (Device& device : slowed.devices)
    if (!change.speed.empty() && change.speed[device.node] != 1)
      device.type = type_at_speed(slowed, device.type, change.speed[device.node]);
  std::vector<bool> kept(before.devices.size(), true);
  for (std::size_t i = 0; i < change.lost.size(); ++i) kept[i] = !change.lost[i];
  SubCluster part = keep_devices(slowed, kept);
  ChangedCluster out{std::move(part.cluster), {}};
  for (const DeviceId id : part.original) out.before.push_back(index(id));
  for (const Cluster& added : change.added) add_nodes(out.cluster, added);
  out.before.resize(out.cluster.devices.size(), -1);
  return out;
}

namespace {

template <typename Sample, std::size_t count>
void lengthen(Sample& sample, std::optional<Seconds> Sample::*const (&times)[count], double speed) {
  for (const auto time : times)
    if (sample.*time) sample.*time = *(sample.*time) / speed;
}

// Copies all entries of one device type to another.
template <typename Entries, typename Change>
void copy_entries(Entries& entries, const std::string& from, const std::string& to, Change change) {
  Entries copies;
  for (const auto& [key, value] : entries) {
    if (key.device_type != from) continue;
    auto copied = key;
    copied.device_type = to;
    change(copies.emplace(copied, value).first->second);
  }
  entries.merge(copies);
}

}  // namespace

void add_slowed_points(const Cluster& before, const ClusterChange& change, Profile& profile) {
  if (change.speed.empty()) return;
  for (const Device& device : before.devices) {
    const double speed = change.speed[device.node];
    if (speed == 1) continue;
    const std::string& from = before.device_types[device.type].name;
    const std::string to = slowed_name(from, speed);
    copy_entries(profile.compute, from, to, [&](ComputeSample& sample) {
      lengthen(sample,
               {&ComputeSample::forward, &ComputeSample::backward, &ComputeSample::both,
                &ComputeSample::optimizer},
               speed);
    });
    copy_entries(profile.ops, from, to, [&](OpSample& sample) {
      lengthen(sample, {&OpSample::forward, &OpSample::backward, &OpSample::weight_gradient},
               speed);
    });
    copy_entries(profile.collectives, from, to, [](const auto&) {});
  }
}

Migration migration(const Problem& before, const Plan& old_plan, const Problem& after,
                    const Plan& new_plan, const std::vector<int>& device_before) {
  const HeldState old_state(before.model, before.job, old_plan, before.cluster.device_count());
  const HeldState new_state(after.model, after.job, new_plan, after.cluster.device_count());
  const Cluster& cluster = after.cluster;
  std::vector<std::vector<int>> neighbours(cluster.nodes.size());  // old ids
  std::vector<bool> survives(before.cluster.devices.size());
  for (int i = 0; i < cluster.device_count(); ++i) {
    if (device_before[i] < 0) continue;
    neighbours[cluster.devices[i].node].push_back(device_before[i]);
    survives[device_before[i]] = true;
  }
  Migration out;
  out.lost = old_state.lost(survives);
  std::vector<Bytes> in(cluster.nodes.size());
  for (int i = 0; i < cluster.device_count(); ++i) {
    DeviceState state{DeviceId(i), new_state.held(i), {}};
    if (state.needed <= Bytes(0)) continue;
    const int node = cluster.devices[i].node;
    const Bytes own =
        device_before[i] < 0 ? Bytes(0) : new_state.kept(i, old_state, device_before[i]);
    const Bytes near = std::max(own, new_state.kept_by_any(i, old_state, neighbours[node]));
    state.received = std::max(Bytes(0), state.needed - own);
    // Rounding of fractions does not count as movement.
    if (state.received.value < 1e-9 * state.needed.value) state.received = Bytes(0);
    const Bytes far =
        state.received > Bytes(0) ? std::max(Bytes(0), state.needed - near) : Bytes(0);
    out.moved += state.received;
    out.over_network += far;
    in[node] += far;
    out.transfer =
        std::max(out.transfer, (state.received - far) / cluster.nodes[node].intra.bandwidth);
    out.devices.push_back(state);
  }
  // Senders: the nodes that still hold something share what crosses the network.
  BytesPerSecond senders;
  for (std::size_t n = 0; n < cluster.nodes.size(); ++n) {
    out.transfer = std::max(out.transfer, in[n] / cluster.nodes[n].uplink.bandwidth);
    if (!neighbours[n].empty()) senders += cluster.nodes[n].uplink.bandwidth;
  }
  if (senders > BytesPerSecond(0))
    out.transfer = std::max(out.transfer, out.over_network / senders);
  return out;
}

Replanned replan(const Planner& planner, const SearchContext& context, const Problem& before,
                 const Plan& old_plan, const std::vector<int>& device_before) {
  const Problem& after = context.problem;
  Replanned out;
  out.search = run_search(planner, context);
  if (!out.search.plans.empty()) out.plan = out.search.plans.front();
  const auto kept = kept_plan(after, old_plan, device_before, before.cluster.device_count());
  if (kept && (!out.plan || !(out.plan->cost.step < kept->cost.step))) {
    out.plan = kept;
    out.kept = true;
  }
  if (!out.plan) return out;
  if (!out.kept) {
    const HeldState old_state(before.model, before.job, old_plan, before.cluster.device_count());
    out.plan->plan = with_roles_matched(after, out.plan->plan, old_state, device_before);
    PLAIT_CHECK(check_plan(after, out.plan->plan).empty());
    out.plan->cost = CostEngine(after).simulate(out.plan->plan);
  }
  out.migration = migration(before, old_plan, after, out.plan->plan, device_before);
  return out;
}

}  // namespace plait
