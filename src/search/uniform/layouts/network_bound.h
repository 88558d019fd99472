#pragma once

#include <vector>

#include "plan/problem.h"
#include "search/uniform/layouts/uniform_layouts.h"
#include "search/uniform/mixes/node_mixes.h"

namespace plait {

// How long the network of some node is busy in a step with what stages hand over, at least, in
// whatever order the hosts are. Replicas are on one node each and stages have consecutive devices,
// so that what a device hands over goes to the device a stage further on. Of a node with n devices
// and stages of z, min(n, z) devices hand over to other nodes on each side, or twice as many halves
// of them where stages straddle nodes (busiest_network() in cost/engine.cpp counts a hand-over for
// both of its stages): once forward and once backward for each chunk. Only nodes that the first or
// the last stage has a part of may have nothing on one side: at most ceil(z / n) of a kind at
// either end.
//
// Example: three nodes of two stages, 64 micro-batches, 10 ms each over the network: 1.28 s, as one
// of the nodes is in the middle.
class NetworkBound {
 public:
  NetworkBound(const Problem& problem, const std::vector<NodeKind>& kinds);

  struct Busy {
    // With all that its stages hand over: at most the step, whatever follows the pipeline.
    Seconds node;
    // With what one stage hands over to the next: at most the pipeline, which waits for it. Of
    // stages that do not straddle nodes, under schedules without chunks that fill no gaps.
    Seconds link;
  };
  Busy of(const UniformLayout& layout, const NodeMix& mix);
  // Of embeddings that the first and the last stage share: what their sum takes at least.
  Seconds tied(const UniformLayout& layout, const NodeMix& mix) const;
  // Of a micro-batch that a device of a node of that kind hands over to one of another node.
  Seconds of_a_device(const UniformLayout& layout, int kind, const NodeMix& mix);

 private:
  bool has_whole_stages(const UniformLayout& layout, const NodeMix& mix) const;
  Seconds tied_on(const UniformLayout& layout, int first, int other) const;

  const Problem& problem_;
  const std::vector<NodeKind>& kinds_;
  std::vector<int> cuts_;  // a unit of each kind that a stage may begin with
};

}  // namespace plait
