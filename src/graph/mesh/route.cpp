#include "graph/mesh/route.h"

#include <algorithm>
#include <map>

namespace plait::graph {
namespace {

// Axes of each dimension that has some, the coarsest first.
using Lists = std::map<int, std::vector<int>>;

Lists lists_of(const Mesh& mesh, const Placement& placement) {
  Lists made;
  for (int a = 0; a < mesh.axes(); ++a)
    if (placement.dim[a] >= 0) made[placement.dim[a]] = placement.axes_of(placement.dim[a]);
  return made;
}

Placement placement_of(const Lists& lists) {
  Placement made;
  for (const auto& [dim, axes] : lists)
    for (std::size_t i = 0; i < axes.size(); ++i) {
      made.dim[axes[i]] = static_cast<std::int8_t>(dim);
      made.rank[axes[i]] = static_cast<std::int8_t>(i);
    }
  return made;
}

bool is_prefix(const std::vector<int>& part, const std::vector<int>& whole) {
  return part.size() <= whole.size() && std::equal(part.begin(), part.end(), whole.begin());
}

class Router {
 public:
  Router(const Mesh& mesh, Bytes size, const Placement& from, const Placement& to)
      : mesh_(mesh), size_(size), now_(lists_of(mesh, from)), to_(lists_of(mesh, to)), end_(to) {}

  std::vector<Leg> run() {
    while (placement_of(now_) != end_)
      if (!slice() && !permute_to_end() && !exchange() && !bring_to_end()) gather();
    return std::move(legs_);
  }

 private:
  std::vector<int>& now(int dim) { return now_[dim]; }
  std::vector<int> wanted(int dim) const {
    const auto found = to_.find(dim);
    return found == to_.end() ? std::vector<int>() : found->second;
  }
  AxisSet used() const { return placement_of(now_).axes(); }
  Bytes local() const { return size_ / mesh_.size_of(used()); }

  void add(std::optional<Transfer> transfer) {
    std::erase_if(now_, [](const auto& entry) { return entry.second.empty(); });
    legs_.push_back({transfer, placement_of(now_)});
  }

  bool slice() {
    bool any = false;
    for (const auto& [dim, axes] : to_) {
      std::vector<int>& here = now(dim);
      while (is_prefix(here, axes) && here.size() < axes.size() &&
             (used() >> axes[here.size()] & 1U) == 0) {
        here.push_back(axes[here.size()]);
        any = true;
      }
    }
    if (any) add(std::nullopt);
    return any;
  }

  // Parts of the same sizes: devices only exchange them.
  bool permute_to_end() {
    std::map<int, int> parts;
    for (const auto& [dim, axes] : now_)
      for (const int a : axes) parts[dim] = std::max(parts[dim], 1) * mesh_.sizes[a];
    std::map<int, int> wanted;
    for (const auto& [dim, axes] : to_)
      for (const int a : axes) wanted[dim] = std::max(wanted[dim], 1) * mesh_.sizes[a];
    if (parts != wanted) return false;
    permute(to_);
    return true;
  }

  void permute(const Lists& next) {
    AxisSet moved = 0;
    const Placement before = placement_of(now_);
    const Placement after = placement_of(next);
    for (int a = 0; a < mesh_.axes(); ++a)
      if (before.dim[a] != after.dim[a] || before.rank[a] != after.rank[a]) moved |= 1U << a;
    const Transfer transfer{CollectiveKind::permute, moved, local()};
    now_ = next;
    add(transfer);
  }

  // The axes at the end of dimension `from` that the target has next in dimension `to`.
  std::size_t run_length(const std::vector<int>& from, int to) {
    const std::vector<int> target = wanted(to);
    const std::vector<int>& there = now(to);
    if (!is_prefix(there, target)) return 0;
    for (std::size_t count = std::min(from.size(), target.size() - there.size()); count > 0;
         --count)
      if (std::equal(from.end() - static_cast<std::ptrdiff_t>(count), from.end(),
                     target.begin() + static_cast<std::ptrdiff_t>(there.size())))
        return count;
    return 0;
  }

  bool exchange() {
    const Lists before = now_;
    for (const auto& [dim, axes] : before)
      for (const auto& [other, ignored] : to_) {
        if (other == dim) continue;
        const std::size_t count = run_length(axes, other);
        if (count == 0) continue;
        Transfer transfer{CollectiveKind::all_to_all, 0, local()};
        for (std::size_t i = axes.size() - count; i < axes.size(); ++i) {
          transfer.axes |= 1U << axes[i];
          now(other).push_back(axes[i]);
        }
        now(dim).resize(axes.size() - count);
        add(transfer);
        return true;
      }
    return false;
  }

  // Of each dimension: first the axes that the target has there in its order, then those that go
  // away, then those that move elsewhere.
  bool bring_to_end() {
    Lists next;
    for (const auto& [dim, axes] : now_) {
      const std::vector<int> target = wanted(dim);
      std::vector<int>& order = next[dim];
      for (const int a : target)
        if (std::ranges::find(axes, a) != axes.end()) order.push_back(a);
      for (const bool moving : {false, true})
        for (const int a : axes)
          if (std::ranges::find(target, a) == target.end() && (end_.dim[a] >= 0) == moving)
            order.push_back(a);
      if (order.empty()) next.erase(dim);
    }
    if (placement_of(next) == placement_of(now_)) return false;
    permute(next);
    return true;
  }

  // From the end of the first dimension whose axes are not a beginning of the target's.
  void gather() {
    for (auto& entry : now_) {
      const int dim = entry.first;  // clang 14 captures no parts of a pair by name
      std::vector<int>& axes = entry.second;
      const std::vector<int> target = wanted(dim);
      if (is_prefix(axes, target)) continue;
      const Bytes before = local();
      Transfer transfer{CollectiveKind::all_gather, 0, {}};
      while (!axes.empty() && !is_prefix(axes, target)) {
        transfer.axes |= 1U << axes.back();
        axes.pop_back();
        if (std::ranges::any_of(to_, [&](const auto& other) {
              return other.first != dim && run_length(axes, other.first) > 0;
            }))
          break;
      }
      transfer.size = before * mesh_.size_of(transfer.axes);
      add(transfer);
      return;
    }
  }

  const Mesh& mesh_;
  Bytes size_;
  Lists now_;
  Lists to_;
  Placement end_;
  std::vector<Leg> legs_;
};

}  // namespace

std::vector<Leg> route(const Mesh& mesh, Bytes size, const Placement& from, const Placement& to) {
  if (from == to) return {};
  return Router(mesh, size, from, to).run();
}

std::vector<Transfer> transfers(const Mesh& mesh, Bytes size, const Placement& from,
                                const Placement& to) {
  std::vector<Transfer> all;
  for (const Leg& leg : route(mesh, size, from, to))
    if (leg.transfer) all.push_back(*leg.transfer);
  return all;
}

}  // namespace plait::graph
