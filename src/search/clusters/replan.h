#pragma once

#include <optional>
#include <string>
#include <vector>

#include "search/space/search.h"

namespace plait {

// What happened to a cluster.
struct ClusterChange {
  std::vector<bool> lost;      // by device; empty = none
  std::vector<double> speed;   // by node, of what it was; empty = all 1
  std::vector<Cluster> added;  // nodes of these; a zone of the same name is the same zone
};

struct ChangedCluster {
  Cluster cluster;
  std::vector<int> before;  // by device: its id in the old cluster; -1 = new
};

// The cluster after the change. Devices of a slowed node become a type of their own, with peak and
// memory bandwidth scaled: "A100-80GB at 50 %". Names of added nodes are made unique; an added type
// that differs from an old one of its name gets another. May be without devices.
ChangedCluster changed_cluster(const Cluster& before, const ClusterChange& change);

// Adds what was measured on devices that became slower, under their new type: times are as much
// longer, memory and collectives stay.
void add_slowed_points(const Cluster& before, const ClusterChange& change, Profile& profile);

// Weights and optimizer state of one device under the new plan.
struct DeviceState {
  DeviceId device = DeviceId(0);
  Bytes needed;
  Bytes received;  // of that, what the device did not hold before
};

// State that changes places between two plans. A unit's parameters are cut evenly over tensor and
// expert degrees, its optimizer state over the copies too where ZeRO says so, weights likewise
// under ZeRO-3; what a device holds of both plans stays.
struct Migration {
  std::vector<DeviceState> devices;  // of the new plan, ascending
  Bytes moved;                       // received by all
  Bytes over_network;                // of that, not from the same node
  Bytes lost;                        // that no surviving device holds: read from a checkpoint
  // Longest of all nodes to receive, or to send when the nodes that hold a stage share the work.
  Seconds transfer;
};
Migration migration(const Problem& before, const Plan& old_plan, const Problem& after,
                    const Plan& new_plan, const std::vector<int>& device_before);

struct Replanned {
  std::optional<RankedPlan> plan;  // nothing when nothing fits
  Migration migration;
  bool kept = false;  // the old plan, still possible, is still the best
  SearchResult search;
};

// The best plan of `context.problem`, whose devices were device_before[i] of `before`; its equal
// nodes take the roles for which they hold most already, the best matches first (with more than
// kMatchedNodes of a kind, as they come).
Replanned replan(const Planner& planner, const SearchContext& context, const Problem& before,
                 const Plan& old_plan, const std::vector<int>& device_before);

inline constexpr int kMatchedNodes = 256;

}  // namespace plait
