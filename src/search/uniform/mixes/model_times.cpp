#include "search/uniform/mixes/model_times.h"

#include <algorithm>
#include <atomic>

#include "base/parallel.h"
#include "cost/passing_tables.h"
#include "cost/span_frame.h"

namespace plait {

namespace {

// Cuts that differ in recompute alone have the same tables.
bool have_same_tables(ReplicaCut a, const ReplicaCut& b) {
  a.recompute = b.recompute;
  return a == b;
}

}  // namespace

ModelTimes::ModelTimes(const CostEngine& engine, const std::vector<NodeKind>& kinds)
    : engine_(engine), kinds_(kinds) {}

void ModelTimes::want(const ReplicaCut& cut) {
  if (!times_.contains(cut)) wanted_.insert(cut);
}

bool ModelTimes::make_times(int threads, const std::function<bool()>& stop) {
  const std::vector<ReplicaCut> cuts(wanted_.begin(), wanted_.end());
  std::vector<ModelTime> made_now(cuts.size());
  std::vector<std::size_t> groups;  // where they begin
  for (std::size_t i = 0; i < cuts.size(); ++i)
    if (i == 0 || !have_same_tables(cuts[i - 1], cuts[i])) groups.push_back(i);
  std::atomic<bool> complete = true;
  parallel_for(static_cast<int>(groups.size()), threads, [&](int g) {
    PassingTables tables(engine_, static_cast<double>(groups.size()));
    const std::size_t end = g + 1 < std::ssize(groups) ? groups[g + 1] : cuts.size();
    for (std::size_t i = groups[g]; i < end; ++i) {
      if (stop())
        complete = false;
      else
        made_now[i] = made(cuts[i], tables);
    }
  });
  if (!complete) return false;
  for (std::size_t i = 0; i < cuts.size(); ++i) times_.emplace(cuts[i], std::move(made_now[i]));
  wanted_.clear();
  return true;
}

bool ModelTimes::make(int threads, const std::function<bool()>& stop) {
  if (!make_times(threads, stop)) return false;
  PassingTables tables(engine_, static_cast<double>(wanted_copies_.size()));
  for (const auto& [copies, micro_batch] : wanted_copies_) {
    if (stop()) return false;
    finishes_.emplace(copies, made(copies, micro_batch, tables));
    tables.forget();
  }
  wanted_copies_.clear();
  return true;
}

void ModelTimes::want(const ReplicaCopies& copies, int micro_batch) {
  if (!finishes_.contains(copies)) wanted_copies_.try_emplace(copies, micro_batch);
}

// On devices of as few nodes of its kind as hold them.
SpanFrame ModelTimes::frame_of(const auto& replicas, const PlanSettings& settings,
                               PassingTables& tables) const {
  const int on_node = kinds_[replicas.kind].devices();
  const int wanted = replicas.tensor * replicas.context * replicas.data;
  const std::vector<int> nodes((wanted + on_node - 1) / on_node, replicas.kind);
  std::vector<DeviceId> devices = devices_in(kinds_, nodes);
  devices.resize(wanted);
  const TableSource source = [&](const ReplicaShape& shape) -> const UnitTable& {
    return tables.table(shape);
  };
  return {engine_.problem(), settings, devices, replicas.tensor, replicas.data, {}, source};
}

ModelTime ModelTimes::made(const ReplicaCut& cut, PassingTables& tables) const {
  const Problem& problem = engine_.problem();
  const Model& model = problem.model;
  PlanSettings settings;
  settings.context = cut.context;
  settings.expert = cut.expert;
  settings.zero = cut.zero;
  settings.sequence_parallel = cut.sequence_parallel;
  settings.micro_batches = problem.job.global_batch / (cut.data * cut.micro_batch);
  const SpanFrame frame = frame_of(cut, settings, tables);
  // The slowest replica: its times add up, and a stage takes no less.
  const UnitRange whole{0, model.unit_count()};
  int slowest = 0;
  for (int r = 1; r < frame.replica_count(); ++r)
    if (frame.time_on(r, whole, cut.recompute).total() >
        frame.time_on(slowest, whole, cut.recompute).total())
      slowest = r;
  ModelTime time;
  for (int u = 0; u < model.unit_count(); ++u) {
    const UnitCost cost = frame.time_on(slowest, {u, u + 1}, cut.recompute);
    time.by_unit.push_back(cost.total().value);
    time.forward.push_back(cost.forward_total().value);
    time.total += cost.total().value;
    Seconds way(HUGE_VAL);
    for (int r = 0; r < frame.replica_count(); ++r) {
      const UnitCost own = frame.time_on(r, {u, u + 1}, cut.recompute);
      way = std::min(way, own.total() - own.weight_gradient);
    }
    time.way.push_back(way.value);
  }
  return time;
}

FinishTimes ModelTimes::made(const ReplicaCopies& copies, int micro_batch,
                             PassingTables& tables) const {
  const Problem& problem = engine_.problem();
  const int units = problem.model.unit_count();
  FinishTimes out{std::vector<double>(units), std::vector<double>(units),
                  std::vector<double>(units)};
  if (copies.data == 0) return out;
  PlanSettings settings;
  settings.context = copies.context;
  settings.expert = copies.expert;
  settings.zero = copies.zero;
  settings.sequence_parallel = copies.sequence_parallel;
  settings.micro_batches = std::max(1, problem.job.global_batch / (copies.data * micro_batch));
  const SpanFrame frame = frame_of(copies, settings, tables);
  const std::optional<SpanFrame::FinishRates> rates = frame.finish_rates();
  if (!rates) return out;
  double counted = 1;
  if (copies.network_only) {
    const UnitRange whole{0, units};
    const Seconds sync = frame.whole_gradient_sync(whole);
    counted = sync > Seconds(0) ? frame.sync_network(whole) / sync : 0;
  }
  for (int u = 0; u < units; ++u) {
    const UnitCost cost = frame.time_on(0, {u, u + 1}, Recompute::none);
    const auto of = [&](const SpanFrame::FinishRates::Way& way) {
      const Seconds time =
          cost.trained * way.of_parameter + cost.trained_experts * way.of_expert_parameter;
      return counted * time.value;
    };
    out.gradients[u] = of(rates->gradients);
    out.weights[u] = of(rates->weights);
    out.update[u] =
        copies.of_update *
        (cost.trained * rates->updated + cost.trained_experts * rates->expert_updated).value;
  }
  return out;
}

}  // namespace plait
