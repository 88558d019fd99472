#pragma once

#include <span>
#include <vector>

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

// How many of some devices a node has.
struct NodeShare {
  int node = 0;
  int devices = 0;
};
// By node, ascending; nodes without any are left out.
std::vector<NodeShare> by_node(const Cluster& cluster, std::span<const DeviceId> devices);
// Of a node that has some.
int devices_on(const std::vector<NodeShare>& shares, int node);

// Of the links of a device inside its node, what a group of so many neighbours can use.
double links_within(const DeviceType& type, int members);

// The group of `members` on `cluster`; `sharing` such groups use each node's network at once.
Group group_of(const Cluster& cluster, std::span<const DeviceId> members, double sharing = 1);

// Times of one collective over `size` bytes, where size is the whole tensor: what every member has
// before an all-reduce or reduce-scatter, and after an all-gather. A group of one takes no time.
//   every link carries (k-1)/k of the tensor for a reduce-scatter or an all-gather, twice that for
//   an all-reduce; the latency is that of a ring of k - 1 hops inside a node and of a tree of
//   log2 k hops across nodes (NCCL picks by size)
// Formulas and sources: docs/cost-model.md#collectives.
// A Ring is a group whose reduce-scatters and all-gathers are asked for many times.
class Ring {
 public:
  Ring() = default;
  explicit Ring(const Group& group);
  Seconds one_way(Bytes size) const {
    if (part_ <= 0 || size <= Bytes(0)) return {};
    return size * part_ / bandwidth_ + latency_;
  }
  // What one_way() of something is made of.
  Seconds start() const { return part_ <= 0 ? Seconds(0) : latency_; }
  // Of a small collective that has no tree: reduce-scatters and all-gathers go round.
  Seconds ring_latency() const { return part_ <= 0 ? Seconds(0) : ring_latency_; }
  Seconds of_byte() const { return part_ <= 0 ? Seconds(0) : Bytes(part_) / bandwidth_; }

 private:
  double part_ = 0;           // of the tensor, over each link; nothing in a group of one
  BytesPerSecond bandwidth_;  // of the narrowest hop
  Seconds latency_;
  Seconds ring_latency_;
};
Seconds all_reduce(const Group& group, Bytes size);
// Of the time of a collective, the part in which the group keeps its share of the network between
// nodes busy: 0 inside a node, 1 where the network is the narrowest hop.
double network_share(const Group& group);
// The same of the links inside a node, which carry every byte: 1 where they are the narrowest hop.
double links_share(const Group& group);
Seconds all_gather(const Group& group, Bytes size);
Seconds reduce_scatter(const Group& group, Bytes size);
// Where the copies of a token go: to experts in any `chosen` of `groups` equal groups of
// neighbours.
struct Visits {
  double copies = 1;
  double groups = 1;
  double chosen = 1;
};
// Tokens go to experts: every member sends `size` bytes, in copies of each token that go to
// different members; a node is sent one copy, which its devices pass on among themselves.
Seconds all_to_all(const Group& group, Bytes size, const Visits& visits);

Seconds send(const Link& link, Bytes size);

}  // namespace plait
