#pragma once

#include <span>

#include "base/units.h"
#include "cluster/cluster.h"

namespace plait {

// The devices that take part in a collective, reduced to what its time depends on. Bandwidths are
// what the group really gets: after the calibrated efficiency of the links, and after sharing the
// node's network adapters with the groups that run at the same moment.
struct Group {
  int members = 1;
  int nodes = 1;
  int per_node = 1;  // most members on one node
  Link intra;        // slowest member's link inside its node; unused when per_node == 1
  Link inter;        // slowest node's share of the network; unused when nodes == 1
  friend auto operator<=>(const Group&, const Group&) = default;
};

// The group of `members` on `cluster`; `sharing` such groups use each node's network at once.
Group group_of(const Cluster& cluster, std::span<const DeviceId> members, double sharing = 1);

// Times of one collective over `size` bytes, where size is the whole tensor: what every member has
// before an all-reduce or reduce-scatter, and after an all-gather. A group of one takes no time.
//   ring:        every link carries (k-1)/k of the tensor for a reduce-scatter or an all-gather
//   all-reduce:  twice that, with the latency of a tree where the tree is faster (NCCL picks)
// Formulas and sources: docs/cost-model.md#collectives.
Seconds all_reduce(const Group& group, Bytes size);
Seconds all_gather(const Group& group, Bytes size);
Seconds reduce_scatter(const Group& group, Bytes size);
// Every member sends size / members to each other member.
Seconds all_to_all(const Group& group, Bytes size);

Seconds send(const Link& link, Bytes size);

}  // namespace plait
