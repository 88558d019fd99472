#include "second_opinion/changes.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "second_opinion/idle_changes.h"

namespace plait::second_opinion {

int pick(Random& random, int least, int most) {
  return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
}

std::vector<int> divisors(int n) {
  std::vector<int> out;
  for (int d = 1; d <= n; ++d)
    if (n % d == 0) out.push_back(d);
  return out;
}

std::vector<Schedule> schedules_of(const Problem&) {
  return {Schedule::one_f_one_b, Schedule::interleaved, Schedule::zb_h1, Schedule::zb_2p,
          Schedule::zb_v};
}

Part& any_part(Sketch& sketch, Random& random) {
  return sketch.parts[pick(random, 0, sketch.part_count() - 1)];
}

namespace {

// Units over the boundary between two neighbours in execution order.
bool move_cut(const Problem&, Sketch& sketch, Random& random) {
  const int positions = sketch.part_count() * sketch.chunks();
  if (positions < 2) return false;
  std::vector<int*> at(positions);
  for (int s = 0; s < sketch.part_count(); ++s)
    for (int c = 0; c < sketch.chunks(); ++c)
      at[chunk_position(sketch.settings.schedule, sketch.part_count(), s, c)] =
          &sketch.parts[s].units[c];
  const int from = pick(random, 0, positions - 1);
  // Mostly to a neighbour, sometimes far away, with those between shifted along.
  int to = from + (random() % 2 == 0 ? 1 : -1);
  if (random() % 3 == 0) to = pick(random, 0, positions - 1);
  if (to < 0 || to >= positions || to == from) return false;
  const int by = std::min(*at[from] - 1, random() % 4 == 0 ? pick(random, 1, 4) : 1);
  if (by < 1) return false;
  *at[from] -= by;
  *at[to] += by;
  return true;
}

bool scale_degrees(const Problem& problem, Sketch& sketch, Part& part, bool up) {
  const int factor = 2;
  if ((up ? part.data : part.tensor) % factor != 0) return false;
  part.tensor = up ? part.tensor * factor : part.tensor / factor;
  part.data = up ? part.data / factor : part.data * factor;
  return set_shares(problem, sketch, part);
}

bool trade_degrees(const Problem& problem, Sketch& sketch, Random& random) {
  return scale_degrees(problem, sketch, any_part(sketch, random), random() % 2 == 0);
}

bool trade_all_degrees(const Problem& problem, Sketch& sketch, Random& random) {
  const bool up = random() % 2 == 0;
  for (Part& part : sketch.parts)
    if (!scale_degrees(problem, sketch, part, up)) return false;
  return set_all_shares(problem, sketch);
}

// All devices in pipeline order, changed by `change`, and dealt out again.
template <typename Order>
bool reorder(Sketch& sketch, const Order& change) {
  std::vector<DeviceId> all;
  for (const Part& part : sketch.parts)
    all.insert(all.end(), part.devices.begin(), part.devices.end());
  change(all);
  auto next = all.begin();
  for (Part& part : sketch.parts) {
    const auto size = static_cast<std::ptrdiff_t>(part.devices.size());
    part.devices.assign(next, next + size);
    next += size;
  }
  return true;
}

bool rotate_devices(const Problem& problem, Sketch& sketch, Random& random) {
  reorder(sketch, [&](std::vector<DeviceId>& all) {
    std::rotate(all.begin(), all.begin() + pick(random, 0, static_cast<int>(all.size()) - 1),
                all.end());
  });
  return set_all_shares(problem, sketch);
}

bool sort_devices(const Problem& problem, Sketch& sketch, Random& random) {
  const bool within = random() % 2 == 0;
  if (within) {
    for (Part& part : sketch.parts) std::ranges::sort(part.devices);
  } else {
    reorder(sketch, [](std::vector<DeviceId>& all) { std::ranges::sort(all); });
  }
  return set_all_shares(problem, sketch);
}

// Replicas over the nodes and the pipeline inside: the first replica of every stage, the second of
// every stage, ..
bool deal_replicas(const Problem& problem, Sketch& sketch, Random&) {
  std::vector<DeviceId> all;
  for (const Part& part : sketch.parts)
    all.insert(all.end(), part.devices.begin(), part.devices.end());
  std::ranges::sort(all);
  auto next = all.begin();
  std::vector<std::size_t> sizes;
  for (Part& part : sketch.parts) {
    sizes.push_back(part.devices.size());
    part.devices.clear();
  }
  while (next != all.end())
    for (std::size_t s = 0; s < sizes.size(); ++s) {
      Part& part = sketch.parts[s];
      const int group = part.tensor * sketch.settings.context;
      for (int t = 0; t < group && part.devices.size() < sizes[s]; ++t)
        part.devices.push_back(*next++);
    }
  return set_all_shares(problem, sketch);
}

bool swap_nodes(const Problem& problem, Sketch& sketch, Random& random) {
  const Cluster& cluster = problem.cluster;
  const int nodes = static_cast<int>(cluster.nodes.size());
  const int a = pick(random, 0, nodes - 1);
  const int b = pick(random, 0, nodes - 1);
  std::vector<DeviceId> of_a;
  std::vector<DeviceId> of_b;
  for (int i = 0; i < cluster.device_count(); ++i) {
    if (cluster.devices[i].node == a) of_a.push_back(DeviceId(i));
    if (cluster.devices[i].node == b) of_b.push_back(DeviceId(i));
  }
  if (a == b || of_a.size() != of_b.size()) return false;
  for (Part& part : sketch.parts)
    for (DeviceId& id : part.devices) {
      const auto in_a = std::ranges::find(of_a, id);
      const auto in_b = std::ranges::find(of_b, id);
      if (in_a != of_a.end())
        id = of_b[in_a - of_a.begin()];
      else if (in_b != of_b.end())
        id = of_a[in_b - of_b.begin()];
    }
  return set_all_shares(problem, sketch);
}

// Two stages exchange all devices, or some replicas.
bool swap_stages(const Problem& problem, Sketch& sketch, Random& random) {
  Part& a = any_part(sketch, random);
  Part& b = any_part(sketch, random);
  if (&a == &b) return false;
  if (random() % 2 == 0) {
    std::swap(a.devices, b.devices);
    std::swap(a.tensor, b.tensor);
    std::swap(a.data, b.data);
    std::swap(a.shares, b.shares);
    return true;
  }
  const int least = std::min(a.tensor, b.tensor) * sketch.settings.context;
  const int block = std::max(a.tensor, b.tensor) * sketch.settings.context;
  const int size = a.tensor == b.tensor ? least : block;
  const int in_a = static_cast<int>(a.devices.size()) / size;
  const int in_b = static_cast<int>(b.devices.size()) / size;
  if (in_a == 0 || in_b == 0) return false;
  const int i = size * pick(random, 0, in_a - 1);
  const int j = size * pick(random, 0, in_b - 1);
  std::swap_ranges(a.devices.begin() + i, a.devices.begin() + i + size, b.devices.begin() + j);
  return set_all_shares(problem, sketch);
}

// A replica of one stage becomes one (or several) of another.
bool move_replica(const Problem& problem, Sketch& sketch, Random& random) {
  Part& from = any_part(sketch, random);
  Part& to = any_part(sketch, random);
  if (&from == &to) return false;
  const int context = sketch.settings.context;
  const int moved = std::lcm(from.tensor, to.tensor) * context;
  const int lost = moved / (from.tensor * context);
  if (from.data <= lost) return false;
  const bool last = random() % 2 == 0;
  const auto begin = last ? from.devices.end() - moved : from.devices.begin();
  to.devices.insert(random() % 2 == 0 ? to.devices.end() : to.devices.begin(), begin,
                    begin + moved);
  from.devices.erase(begin, begin + moved);
  from.data -= lost;
  to.data += moved / (to.tensor * context);
  return set_all_shares(problem, sketch);
}

bool merge_stages(const Problem& problem, Sketch& sketch, Random& random) {
  if (sketch.part_count() < 2) return false;
  const int at = pick(random, 0, sketch.part_count() - 2);
  Part& a = sketch.parts[at];
  const Part& b = sketch.parts[at + 1];
  for (std::size_t c = 0; c < a.units.size(); ++c) a.units[c] += b.units[c];
  if (a.tensor != b.tensor) a.tensor = std::gcd(a.tensor, b.tensor);
  a.devices.insert(a.devices.end(), b.devices.begin(), b.devices.end());
  a.data = static_cast<int>(a.devices.size()) / (a.tensor * sketch.settings.context);
  sketch.parts.erase(sketch.parts.begin() + at + 1);
  if (sketch.part_count() == 1) {
    sketch.parts[0].units = {sketch.parts[0].unit_count()};
    sketch.settings.schedule = Schedule::one_f_one_b;
  }
  return set_all_shares(problem, sketch);
}

bool split_stage(const Problem& problem, Sketch& sketch, Random& random) {
  const int at = pick(random, 0, sketch.part_count() - 1);
  Part a = sketch.parts[at];
  if (a.unit_count() < 2 * sketch.chunks()) return false;
  if (a.data == 1) {
    if (a.tensor % 2 != 0) return false;
    a.tensor /= 2;
    a.data = 2;
  }
  Part b = a;
  const int group = a.tensor * sketch.settings.context;
  const int kept = random() % 2 == 0 ? a.data / 2 : pick(random, 1, a.data - 1);
  b.data = a.data - kept;
  a.data = kept;
  b.devices.assign(a.devices.begin() + static_cast<std::ptrdiff_t>(kept) * group, a.devices.end());
  a.devices.resize(static_cast<std::size_t>(kept) * group);
  for (std::size_t c = 0; c < a.units.size(); ++c) {
    b.units[c] = a.units[c] / 2;
    a.units[c] -= b.units[c];
  }
  sketch.parts[at] = a;
  sketch.parts.insert(sketch.parts.begin() + at + 1, b);
  return set_all_shares(problem, sketch);
}

bool move_share(const Problem& problem, Sketch& sketch, Random& random) {
  Part& part = any_part(sketch, random);
  if (part.data < 2) return false;
  const int micro_batch = problem.job.global_batch / sketch.settings.micro_batches;
  if (part.shares.empty()) {
    if (micro_batch % part.data != 0) return false;
    part.shares.assign(part.data, micro_batch / part.data);
  }
  const int group = part.tensor * sketch.settings.context;
  const auto type = [&](int d) {
    return problem.cluster.device(part.devices[static_cast<std::size_t>(d) * group]).type;
  };
  const int from = pick(random, 0, part.data - 1);
  const int to = pick(random, 0, part.data - 1);
  if (type(from) == type(to)) return false;
  if (random() % 2 == 0) {  // between the types as a whole
    std::vector<double> weights;
    for (int d = 0; d < part.data; ++d)
      weights.push_back(part.shares[d] * (type(d) == type(to) ? 1.15 : 1.0));
    return set_shares(problem, sketch, part, weights);
  }
  part.shares[from] -= 1;
  part.shares[to] += 1;
  return true;
}

bool change_schedule(const Problem& problem, Sketch& sketch, Random& random) {
  if (sketch.part_count() < 2) return false;
  const std::vector<Schedule> all = schedules_of(problem);
  const Schedule schedule = all[pick(random, 0, static_cast<int>(all.size()) - 1)];
  int chunks = 1;
  if (schedule == Schedule::zb_v) chunks = 2;
  if (schedule == Schedule::interleaved) chunks = pick(random, 2, 4);
  if (schedule == sketch.settings.schedule && chunks == sketch.chunks()) return false;
  std::vector<int> units;
  for (const Part& part : sketch.parts) {
    units.push_back(part.unit_count());
    if (units.back() < chunks) return false;
  }
  sketch.settings.schedule = schedule;
  spread_units(sketch, units, chunks);
  return true;
}

bool change_micro_batches(const Problem& problem, Sketch& sketch, Random& random) {
  const std::vector<int> all = divisors(problem.job.global_batch);
  const auto at = std::ranges::find(all, sketch.settings.micro_batches) - all.begin();
  auto next = at + (random() % 2 == 0 ? 1 : -1);
  if (random() % 4 == 0) next = pick(random, 0, static_cast<int>(all.size()) - 1);
  if (next < 0 || next >= std::ssize(all) || next == at) return false;
  sketch.settings.micro_batches = all[next];
  return set_all_shares(problem, sketch);
}

bool change_recompute(const Problem& problem, Sketch& sketch, Random& random) {
  std::vector<Recompute> all{Recompute::none, Recompute::full};
  if (problem.job.attention == AttentionKernel::plain) all.push_back(Recompute::selective);
  const Recompute recompute = all[random() % all.size()];
  if (random() % 3 == 0)
    for (Part& part : sketch.parts) part.recompute = recompute;
  else
    any_part(sketch, random).recompute = recompute;
  return true;
}

// Of the stages that recompute, another number of units that are not.
bool change_kept(const Problem&, Sketch& sketch, Random& random) {
  Part& part = any_part(sketch, random);
  if (part.recompute == Recompute::none) return false;
  const int most = *std::ranges::max_element(part.units);
  const int step = std::max(1, most / 8);
  part.kept = random() % 3 == 0 ? pick(random, 0, most)
                                : std::clamp(part.kept + pick(random, -step, step), 0, most);
  if (random() % 3 == 0)
    for (Part& other : sketch.parts) other.kept = part.kept;
  return true;
}

bool change_zero(const Problem&, Sketch& sketch, Random& random) {
  std::vector<ZeroStage> all{ZeroStage::off, ZeroStage::optimizer};
  if (sketch.part_count() == 1) all.push_back(ZeroStage::parameters);
  const ZeroStage zero = all[random() % all.size()];
  if (zero == sketch.settings.zero) return false;
  sketch.settings.zero = zero;
  return true;
}

bool change_experts(const Problem&, Sketch& sketch, Random& random) {
  const bool up = random() % 2 == 0;
  if (!up && sketch.settings.expert % 2 != 0) return false;
  sketch.settings.expert = up ? sketch.settings.expert * 2 : sketch.settings.expert / 2;
  return sketch.settings.expert >= 1;
}

}  // namespace

std::span<const Change> changes() {
  static constexpr Change kChanges[] = {
      {"move cut", move_cut, false, 12},
      {"trade degrees", trade_degrees, true, 4},
      {"trade all degrees", trade_all_degrees, true, 2},
      {"rotate devices", rotate_devices, true, 4},
      {"sort devices", sort_devices, true, 1},
      {"deal replicas", deal_replicas, true, 1},
      {"swap nodes", swap_nodes, true, 3},
      {"swap stages", swap_stages, true, 4},
      {"move replica", move_replica, true, 5},
      {"merge stages", merge_stages, true, 3},
      {"split stage", split_stage, true, 3},
      {"move share", move_share, false, 3},
      {"change schedule", change_schedule, false, 3},
      {"change micro-batches", change_micro_batches, true, 3},
      {"change recompute", change_recompute, true, 3},
      {"change kept", change_kept, false, 3},
      {"change ZeRO", change_zero, false, 1},
      {"change experts", change_experts, true, 1},
      {"leave node", leave_node, true, 1},
      {"leave replica", leave_replica, true, 1},
      {"use idle", use_idle, true, 2},
  };
  return kChanges;
}

}  // namespace plait::second_opinion
