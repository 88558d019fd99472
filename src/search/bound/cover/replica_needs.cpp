#include "search/bound/cover/replica_needs.h"

#include <algorithm>
#include <set>

namespace plait {
namespace {

// All sample counts up to this are looked at, beyond it those that are so much apart.
constexpr int kAllCounts = 16;
constexpr int kStepsOfCounts = 12;
// What a hop over the network costs beyond the wire is left out of latencies: they are a bound.

std::vector<int> counts_of_samples(const Problem& problem, const Pins& pins) {
  const int batch = problem.job.global_batch;
  if (pins.micro_batch) return {std::min(batch, *pins.micro_batch)};
  std::set<int> counts;
  for (int b = 1; b <= batch; b += b < kAllCounts ? 1 : std::max(1, b / kStepsOfCounts))
    counts.insert(b);
  for (const int b : divisors_of(batch)) counts.insert(b);
  return {counts.begin(), counts.end()};
}

}  // namespace

std::set<int> possible_tensor_degrees(const Space& space) {
  std::set<int> degrees;
  for (const Pool& pool : space.pools())
    for (const int tensor : space.tensor_degrees(pool)) degrees.insert(tensor);
  const bool is_free = space.target().tensor && !space.pins().tensor;
  for (int tensor = 2; tensor <= kMaxTensorNodes * 16 && is_free; tensor *= 2)
    if (cuts_evenly(space.problem().model, tensor)) degrees.insert(tensor);
  return degrees;
}

ReplicaNeeds::ReplicaNeeds(const CostEngine& engine, const Space& space, const UnitMixes& mixes)
    : engine_(engine),
      space_(space),
      mixes_(mixes),
      counts_(counts_of_samples(engine.problem(), space.pins())) {
  const Model& model = problem().model;
  for (int k = 0; k < mixes.kind_count(); ++k)
    first_.push_back(
        static_cast<int>(std::ranges::find(model.units, mixes.kind(k)) - model.units.begin()));
  std::set<int> experts;
  std::set<int> contexts;
  for (const PlanSettings& settings : space.settings()) {
    experts.insert(settings.expert);
    contexts.insert(settings.context);
  }
  experts_.assign(experts.begin(), experts.end());
  list_links();
  std::vector<int> devices(problem().cluster.device_types.size());
  for (const Device& device : problem().cluster.devices) ++devices[device.type];
  const std::set<int> degrees = possible_tensor_degrees(space);
  for (std::size_t type = 0; type < devices.size(); ++type) {
    const int most = std::min(devices[type], kMaxTensorNodes * links_[type].alike);
    for (int tensor = 1; tensor <= most; ++tensor) {
      if (space.pins().tensor && *space.pins().tensor != tensor) continue;
      if (!degrees.contains(tensor)) continue;
      for (const int context : contexts)
        for (const int expert : experts_)
          if (tensor * context <= devices[type])
            kinds_.push_back({static_cast<int>(type), tensor, context, expert, {}, {}, {}});
    }
  }
  for (ReplicaKind& kind : kinds_) {
    kind.needs.resize(counts_.size());
    kind.needs_across.resize(counts_.size());
    const UnitTable& table = engine.table(shape_of(kind, counts_.front(), {}));
    for (int k = 0; k < mixes.kind_count(); ++k) {
      const UnitRange unit{first_[k], first_[k] + 1};
      const UnitCost cost = table.cost(unit, Recompute::none);
      kind.parameters.push_back({cost.parameters, cost.expert_parameters, cost.trained,
                                 cost.trained_experts, table.extent(unit).table_parameters > 0});
    }
  }
}

void ReplicaNeeds::list_links() {
  const Cluster& cluster = problem().cluster;
  links_.resize(cluster.device_types.size());
  latencies_.resize(links_.size());
  std::vector<std::vector<int>> on_node(cluster.nodes.size(), std::vector<int>(links_.size()));
  std::vector<int> all(cluster.nodes.size());
  for (const Device& device : cluster.devices) {
    ++on_node[device.node][device.type];
    ++all[device.node];
  }
  const int together = std::ranges::max(all);
  for (std::size_t n = 0; n < cluster.nodes.size(); ++n) {
    const Node& node = cluster.nodes[n];
    for (std::size_t type = 0; type < links_.size(); ++type) {
      if (on_node[n][type] == 0) continue;
      const Efficiency& reached = cluster.device_types[type].efficiency;
      BestLinks& links = links_[type];
      Latency& latency = latencies_[type];
      links.together = together;
      links.alike = std::max(links.alike, on_node[n][type]);
      if (all[n] > 1) {
        latency.inside_rate =
            std::max(latency.inside_rate, node.intra.bandwidth.value * reached.intra);
        latency.inside = std::min(latency.inside, node.intra.latency);
      }
      if (cluster.nodes.size() > 1) {
        links.between = std::max(links.between, node.uplink.bandwidth.value * reached.inter);
        latency.between = std::min(latency.between, node.uplink.latency);
      }
      links.any = std::max(links.between, latency.inside_rate);
    }
  }
}

// A ring of devices of one type: inside a node, or over the network where that is faster or where
// no node has as many.
Group ReplicaNeeds::best_group(int type, int members, bool across) const {
  Group group;
  if (members == 1 || !problem().profile.collectives.empty()) return group;
  const Latency& latency = latencies_[type];
  const bool crosses = across || members > links_[type].alike;
  group.members = group.per_node = members;
  group.intra.bandwidth = BytesPerSecond(crosses ? links_[type].between : links_[type].any);
  Seconds least(HUGE_VAL);
  if (std::isfinite(latency.between.value))
    least = latency.between * (std::log2(members) / (members - 1));
  group.intra.latency = crosses ? least : std::min(least, latency.inside);
  return group;
}

// Experts on neighbouring replicas, of any types. A token that has several experts on one device is
// sent there once if that is on another node, and once for each of them inside a node, which takes
// no less at the same rate.
Group ReplicaNeeds::best_expert_group(int type, int members) const {
  Group group;
  if (members == 1 || !problem().profile.collectives.empty()) return group;
  const bool one_node = problem().cluster.nodes.size() == 1;
  group.members = members;
  group.nodes = one_node ? 1 : members;
  group.per_node = one_node ? members : 1;
  group.intra.bandwidth = group.inter.bandwidth = BytesPerSecond(links_[type].any);
  return group;
}

ReplicaShape ReplicaNeeds::shape_of(const ReplicaKind& kind, double samples, const Way& way) const {
  ReplicaShape shape;
  shape.device_type = kind.type;
  shape.sharding = {samples, kind.tensor, kind.context, kind.expert, way.sequence_parallel};
  shape.tensor_group = best_group(kind.type, kind.tensor, way.across);
  shape.expert_group = best_expert_group(kind.type, kind.expert);
  shape.split = way.split;
  return shape;
}

// Keeps the lower of what is there and what this way needs.
void ReplicaNeeds::merge(const ReplicaKind& kind, int count, const Way& way,
                         std::vector<UnitNeed>& needs) {
  const UnitTable& table = engine_.table(shape_of(kind, counts_[count], way));
  const bool begins = needs.empty();
  needs.resize(mixes_.kind_count());
  for (int k = 0; k < mixes_.kind_count(); ++k) {
    const UnitRange unit{first_[k], first_[k] + 1};
    const auto lower = [&](double& into, double value) {
      into = begins ? value : std::min(into, value);
    };
    for (int r = 0; r < kRecomputes; ++r) {
      const UnitCost cost = table.cost(unit, static_cast<Recompute>(r));
      lower(needs[k].total[r], cost.total().value);
      lower(needs[k].saved[r], cost.saved.value);
      lower(needs[k].again[r], table.working_set(unit, static_cast<Recompute>(r)).value);
    }
    UnitNeed least{.forward = HUGE_VAL, .backward = HUGE_VAL, .path = HUGE_VAL};
    for (const Recompute recompute : space_.recomputes()) {
      const UnitCost cost = table.cost(unit, recompute);
      least.forward = std::min(least.forward, cost.forward_total().value);
      least.backward = std::min(least.backward, cost.backward_total().value);
      least.path = std::min(least.path, (cost.total() - cost.weight_gradient).value);
      needs[k].aside = std::max(needs[k].aside, cost.weight_gradient.value);
    }
    lower(needs[k].forward, least.forward);
    lower(needs[k].backward, least.backward);
    lower(needs[k].path, least.path);
    lower(needs[k].loss, table.extent(unit).loss.value);
    lower(needs[k].workspace, table.workspace(unit, Recompute::none).value);
  }
}

void ReplicaNeeds::fill(const ReplicaKind& kind, int count, bool across,
                        std::vector<UnitNeed>& needs) {
  const Pins& pins = space_.pins();
  const int sequence = problem().model.sequence_length / kind.context;
  const bool may_cut = kind.tensor > 1 && sequence > 1 && sequence % kind.tensor == 0;
  for (const bool cut : {false, true}) {
    if (cut && !may_cut) continue;
    if (pins.sequence_parallel && may_cut && *pins.sequence_parallel != cut) continue;
    for (int split = 0; split < splits_of(kind); ++split)
      merge(kind, count, {cut, across, split}, needs);
  }
}

double ReplicaNeeds::saved_forward(const ReplicaKind& kind, int count) const {
  const int sequence = problem().model.sequence_length / kind.context;
  const bool cuts = kind.tensor > 1 && sequence > 1 && sequence % kind.tensor == 0;
  double most = 0;
  for (int split = 0; split < splits_of(kind); ++split) {
    const Way way{.sequence_parallel = cuts, .split = split};
    const UnitTable& table = engine_.table(shape_of(kind, counts_[count], way));
    for (const int unit : first_) {
      const UnitRange range{unit, unit + 1};
      const Seconds once = table.cost(range, Recompute::none).forward_total();
      for (const Recompute recompute : space_.recomputes()) {
        const Seconds twice = table.cost(range, recompute).forward_total();
        if (once > Seconds(0)) most = std::max(most, 1 - twice / once);
      }
    }
  }
  return most;
}

const std::vector<UnitNeed>& ReplicaNeeds::needs(ReplicaKind& kind, int count) {
  std::vector<UnitNeed>& needs = kind.needs[count];
  if (needs.empty()) fill(kind, count, false, needs);
  return needs;
}

const std::vector<UnitNeed>& ReplicaNeeds::needs_across(ReplicaKind& kind, int count) {
  std::vector<UnitNeed>& needs = kind.needs_across[count];
  if (needs.empty()) fill(kind, count, true, needs);
  return needs;
}

}  // namespace plait
