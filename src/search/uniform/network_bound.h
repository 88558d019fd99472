#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "plan/problem.h"
#include "search/uniform/node_mixes.h"
#include "search/uniform/uniform_layouts.h"

namespace plait {

// How long the network of some node is busy in a step with what stages hand over, at least, in
// whatever order the hosts are. Where every node has whole stages on it, all of a micro-batch goes
// from the last stage of a node to the first one of the next, once forward and once backward for
// each chunk; and with three nodes or more, the one in the middle has two neighbours.
//
// Example: three nodes of two stages, 64 micro-batches, 10 ms each over the network: 1.28 s.
class NetworkBound {
 public:
  NetworkBound(const Problem& problem, const std::vector<NodeKind>& kinds);

  Seconds of(const UniformLayout& layout, const NodeMix& mix);

 private:
  // tensor, data, context, micro-batches, sequence parallelism; kinds of the two nodes
  using Key = std::tuple<int, int, int, int, bool, int, int>;
  Seconds between(const UniformLayout& layout, int from, int to);

  const Problem& problem_;
  const std::vector<NodeKind>& kinds_;
  std::vector<int> cuts_;  // a unit of each kind that a stage may begin with
  std::map<Key, Seconds> known_;
};

}  // namespace plait
