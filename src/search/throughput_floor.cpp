#include "search/throughput_floor.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "search/space.h"

namespace plait {
namespace {

// All sample counts up to this are looked at; beyond it every gain of larger ones is in the last.
constexpr int kSmallBatch = 16;

std::vector<int> sample_counts(int global_batch) {
  std::set<int> counts;
  for (int b = 1; b <= std::min(global_batch, kSmallBatch); ++b) counts.insert(b);
  for (const int b : divisors_of(global_batch)) counts.insert(b);
  return {counts.begin(), counts.end()};
}

// Compute of each unit kind on one device, forward and backward; nothing that can be hidden.
std::vector<double> kind_times(const Model& model, const UnitTable& table) {
  std::vector<double> out(model.kinds.size(), -1);
  for (int u = 0; u < model.unit_count(); ++u) {
    double& time = out[model.units[u]];
    if (time >= 0) continue;
    const UnitCost cost = table.cost({u, u + 1}, Recompute::none);
    time = (cost.forward + cost.backward + cost.weight_gradient).value;
  }
  return out;
}

}  // namespace

ThroughputFloor::ThroughputFloor(const CostEngine& engine, const Pins& pins) {
  const Problem& problem = engine.problem();
  const Space space(problem, pins);
  const Model& model = problem.model;
  std::set<std::tuple<int, int, bool>> cuts;  // context, expert, sequence parallel
  for (const PlanSettings& s : space.settings())
    cuts.insert({s.context, s.expert, s.sequence_parallel});
  const std::vector<int> counts = sample_counts(problem.job.global_batch);
  const std::size_t kinds = model.kinds.size();
  std::vector<std::vector<double>> effort(problem.cluster.device_types.size(),
                                          std::vector<double>(kinds, HUGE_VAL));
  for (const Pool& pool : space.pools())
    for (const int tensor : space.tensor_degrees(pool))
      for (const auto& [context, expert, sequence_parallel] : cuts)
        for (const int samples : counts) {
          ReplicaShape shape;
          shape.device_type = pool.type;
          shape.sharding = {static_cast<double>(samples), tensor, context, expert,
                            sequence_parallel && tensor > 1};
          const UnitTable table(problem, shape);
          const std::vector<double> times = kind_times(model, table);
          for (std::size_t k = 0; k < kinds; ++k)
            effort[pool.type][k] =
                std::min(effort[pool.type][k], times[k] * tensor * context / samples);
        }
  std::vector<double> spend(kinds, HUGE_VAL);
  for (const std::vector<double>& own : effort) {
    double whole = 0;
    for (const int kind : model.units) whole += own[kind];
    worth_.push_back(1 / whole);
    for (std::size_t k = 0; k < kinds; ++k) spend[k] = std::min(spend[k], worth_.back() * own[k]);
  }
  for (const int kind : model.units) spend_ += spend[kind] * problem.job.global_batch;
}

Seconds ThroughputFloor::step(const std::vector<int>& devices) const {
  double worth = 0;
  for (std::size_t p = 0; p < worth_.size(); ++p) worth += devices[p] * worth_[p];
  return Seconds(worth > 0 ? spend_ / worth : HUGE_VAL);
}

}  // namespace plait
