#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "profile/profile.h"
#include "runtime/launch/heartbeat.h"
#include "runtime/launch/rank.h"

namespace plait::runtime {

// A group of ranks whose collectives are measured.
struct LinkShape {
  int nodes = 1;
  int per_node = 1;
  std::vector<int> ranks;
  friend bool operator==(const LinkShape&, const LinkShape&) = default;
};

// Powers of two of a node's ranks and all of them, on one node and, with one rank and with all of
// a node's, on powers of two of the nodes and all of them. Ranks of a node are consecutive.
// Example: 8 ranks on 2 nodes give 1x2, 1x4, 2x1 and 2x4.
std::vector<LinkShape> link_shapes(int world, int per_node);

struct LinkRequest {
  RankPlace place;
  std::string device = "cpu";  // Gloo; "cuda": NCCL
  std::string device_type = "CPU";
  std::vector<int> sizes;  // bytes of the whole tensor; empty = 1 KiB to 64 MiB
  Seconds longest{1};      // for one collective of one size
  Heartbeat* heart = nullptr;
  std::function<void(const std::string& sentence)> tell;  // for people
};

using LinkCurves = std::map<CollectiveKey, std::vector<CollectivePoint>>;

}  // namespace plait::runtime
