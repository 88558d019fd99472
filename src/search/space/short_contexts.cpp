#include "search/space/short_contexts.h"

#include <algorithm>

namespace plait {
namespace {

constexpr int kMostShortContext = 8;  // devices that share a sequence which is not long

}  // namespace

std::vector<int> short_contexts(const Space& space) {
  const Target& target = space.target();
  const auto is_cut = [](const PlanSettings& settings) { return settings.context > 1; };
  if (space.pins().context || !target.one_layout || !target.ranks_in_order ||
      !has_context(target, space.problem().job) || std::ranges::any_of(space.settings(), is_cut))
    return {};
  const int sequence = space.problem().model.sequence_length;
  std::vector<int> out;
  for (int c = 2; c <= kMostShortContext && sequence % (2 * c) == 0; c *= 2) out.push_back(c);
  return out;
}

}  // namespace plait
