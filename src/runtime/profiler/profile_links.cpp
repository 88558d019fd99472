#include "runtime/profiler/profile_links.h"

#include <algorithm>

namespace plait::runtime {
namespace {

// 2, 4, 8 ... below `most`, and `most` itself.
std::vector<int> doublings(int first, int most) {
  std::vector<int> sizes;
  for (int size = first; size < most; size *= 2) sizes.push_back(size);
  if (most >= first) sizes.push_back(most);
  return sizes;
}

}  // namespace

std::vector<LinkShape> link_shapes(int world, int per_node) {
  per_node = std::clamp(per_node, 1, world);
  const int nodes = world / per_node;
  std::vector<LinkShape> shapes;
  const auto add = [&](int on, int each) {
    LinkShape shape{on, each, {}};
    for (int node = 0; node < on; ++node)
      for (int i = 0; i < each; ++i) shape.ranks.push_back(node * per_node + i);
    if (std::ranges::find(shapes, shape) == shapes.end()) shapes.push_back(std::move(shape));
  };
  for (const int each : doublings(2, per_node)) add(1, each);
  for (const int on : doublings(2, nodes)) {
    add(on, 1);
    add(on, per_node);
  }
  return shapes;
}

}  // namespace plait::runtime
