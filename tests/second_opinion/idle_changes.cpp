#include "second_opinion/idle_changes.h"

#include <algorithm>

namespace plait::second_opinion {

// Replicas that have a device on one node stop.
bool leave_node(const Problem& problem, Sketch& sketch, Random& random) {
  const int node = pick(random, 0, static_cast<int>(problem.cluster.nodes.size()) - 1);
  for (Part& part : sketch.parts) {
    const int group = part.tensor * sketch.settings.context;
    std::vector<DeviceId> kept;
    for (int d = 0; d < part.data; ++d) {
      const auto begin = part.devices.begin() + static_cast<std::ptrdiff_t>(d) * group;
      const auto on_node = [&](DeviceId id) { return problem.cluster.device(id).node == node; };
      if (std::none_of(begin, begin + group, on_node))
        kept.insert(kept.end(), begin, begin + group);
    }
    if (kept.empty()) return false;
    part.devices = std::move(kept);
    part.data = static_cast<int>(part.devices.size()) / group;
  }
  return set_all_shares(problem, sketch);
}

bool leave_replica(const Problem& problem, Sketch& sketch, Random& random) {
  Part& part = any_part(sketch, random);
  if (part.data < 2) return false;
  const int group = part.tensor * sketch.settings.context;
  const auto begin =
      part.devices.begin() + static_cast<std::ptrdiff_t>(group) * pick(random, 0, part.data - 1);
  part.devices.erase(begin, begin + group);
  part.data -= 1;
  return set_all_shares(problem, sketch);
}

// Idle devices join a stage, or make a stage of their own.
bool use_idle(const Problem& problem, Sketch& sketch, Random& random) {
  const std::vector<DeviceId> idle = idle_devices(problem, sketch);
  const int at = pick(random, 0, sketch.part_count() - 1);
  Part& part = sketch.parts[at];
  const int group = part.tensor * sketch.settings.context;
  const int most = static_cast<int>(idle.size()) / group;
  if (most == 0) return false;
  const int replicas = random() % 2 == 0 ? most : pick(random, 1, most);
  const auto end = idle.begin() + static_cast<std::ptrdiff_t>(replicas) * group;
  if (random() % 2 == 0) {
    part.devices.insert(part.devices.end(), idle.begin(), end);
    part.data += replicas;
    return set_all_shares(problem, sketch);
  }
  if (part.unit_count() < 2 * sketch.chunks()) return false;
  Part added = part;
  added.devices.assign(idle.begin(), end);
  added.data = replicas;
  for (std::size_t c = 0; c < part.units.size(); ++c) {
    added.units[c] = part.units[c] / 2;
    part.units[c] -= added.units[c];
  }
  sketch.parts.insert(sketch.parts.begin() + at + (random() % 2 == 0 ? 0 : 1), added);
  return set_all_shares(problem, sketch);
}

}  // namespace plait::second_opinion
