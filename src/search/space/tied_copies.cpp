#include "search/space/tied_copies.h"

#include <algorithm>

namespace plait {

TiedCopies::TiedCopies(const Model& model) {
  for (const Tie& tie : model.ties) {
    auto owner = std::ranges::find(owners_, tie.first, &Owner::unit);
    if (owner == owners_.end())
      owner = owners_.insert(owner, {tie.first, std::vector<double>(model.unit_count() + 1, 0)});
    owner->used_before[tie.second + 1] += tie.parameters;
  }
  for (Owner& owner : owners_)
    for (std::size_t i = 1; i < owner.used_before.size(); ++i)
      owner.used_before[i] += owner.used_before[i - 1];
}

}  // namespace plait
