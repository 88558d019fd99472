#include <algorithm>

#include "cost/framework/framework.h"
#include "cost/span_frame.h"

// What a span has in memory.
namespace plait {

Bytes fixed_memory(const FrameworkTraits& traits, const Cluster& cluster) {
  // Of a process without communication: cuBLAS has 32 MiB for a stream on Hopper.
  constexpr Bytes kAlone(128.0 * 1024 * 1024);
  const bool is_alone = cluster.device_count() == 1 && !cluster.is_part;
  return is_alone ? std::min(traits.workspace, kAlone) : traits.workspace;
}

bool SpanFrame::Repeated::goes_on(const Model& model, const RecomputedRun& run) const {
  return last.units.end == run.units.begin && last.units.size() > 0 &&
         last.recompute == Recompute::full && run.recompute == Recompute::full &&
         !model.unit(run.units.begin).starts_layer;
}

// What depends on how runs are recomputed; `on` is the replica's table, `tied` its second copies.
void SpanFrame::add_runs(const UnitTable& on, RecomputedRuns runs, Repeated& before, double tied,
                         Memory& memory) const {
  for (const RecomputedRun& run : runs) {
    const UnitCost cost = on.cost(run.units, run.recompute);
    const bool continues = before.goes_on(problem_.model, run);
    memory.saved += cost.saved;
    if (continues) memory.saved -= on.recompute_input(run.units.begin);
    before.bytes = (continues ? before.bytes : Bytes(0)) + on.working_set(run.units, run.recompute);
    before.last = run;
    memory.working_set = std::max(memory.working_set, before.bytes);
    memory.transient = std::max(memory.transient, on.workspace(run.units, run.recompute));
    memory.workspace += cost.held;
    // Weights that autocast has converted are kept until the backward pass; recompute drops all but
    // the output layer's.
    if (is_autocast(problem_.job))
      memory.workspace +=
          Bytes(2 * (run.recompute == Recompute::full ? on.extent(run.units).table_parameters
                                                      : cost.parameters + cost.expert_parameters));
  }
  if (is_autocast(problem_.job)) memory.workspace += Bytes(2 * tied);
}

Bytes SpanFrame::passing_by(int replica, int unit) const {
  const Model& model = problem_.model;
  if (unit == 0 || model.unit(unit).starts_layer) return {};
  const Bytes crossing(activation_bytes(problem_.job.precision) * model.unit(unit - 1).output *
                       samples(replica));
  return std::max(Bytes(0), crossing - at(replica).table->inside_input(unit));
}

SpanFrame::Memory SpanFrame::memory(int replica, RecomputedRuns runs, double tied,
                                    Repeated* before) const {
  Repeated nothing;
  const Replica& on = replicas_[replica];
  const UnitRange units{runs.front().units.begin, runs.back().units.end};
  const UnitTable::Extent extent = on.table->extent(units);
  UnitCost cost = on.table->cost(units, Recompute::none);
  cost.parameters += tied / tensor_;
  if (tied_are_trained_) cost.trained += tied / tensor_;
  const double all = cost.parameters + cost.expert_parameters;
  const double shard = cut(cost.parameters, cost.expert_parameters);
  const double trained = cost.trained + cost.trained_experts;
  const double trained_shard = cut(cost.trained, cost.trained_experts);
  const bool cut_weights = settings_.zero == ZeroStage::parameters;
  const bool cut_gradients = cut_weights || settings_.zero == ZeroStage::gradients;
  const bool cut_optimizer = settings_.zero != ZeroStage::off;
  const double optimizer_bytes = state_.optimizer + (cut_optimizer ? state_.sharded_gradient : 0.0);
  Memory memory;
  memory.weights = Bytes(state_.weight * (cut_weights ? shard : all));
  memory.gradients = Bytes(state_.gradient * (cut_gradients ? trained_shard : trained));
  memory.optimizer_state =
      Bytes(optimizer_bytes * (cut_optimizer ? trained_shard : trained) * (1 - settings_.offload));
  add_runs(*on.table, runs, before != nullptr ? *before : nothing, tied / tensor_, memory);
  memory.loss = extent.loss;
  memory.kept_loss = extent.kept_loss;
  const double tables = extent.table_parameters + tied / tensor_;
  // Weights of two layers are gathered at once, the running one's and the next one's; tables stay.
  // On one device nothing comes together, but weights of another format are converted.
  const double gradients_of_tables = problem_.job.adapters ? 0 : tables;
  if (cut_weights && (shard_copies_ > 1 || state_.gathered != state_.weight))
    memory.workspace += Bytes(
        state_.gathered * (2 * block_parameters(*on.table, units) + tables + gradients_of_tables));
  memory.keeps_gradients = traits_.keeps_gradients || settings_.micro_batches > 1;
  // The dense gradient of the embedding, before it is added.
  if (!problem_.job.adapters) memory.late = Bytes(4 * tables);
  memory.fixed = fixed_memory(traits_, problem_.cluster);
  if (traits_.buckets_gradients && !cut_optimizer && copies() > 1)
    memory.fixed += Bytes(state_.gradient * trained);
  const Bytes limit = problem_.job.memory_limit;
  memory.capacity = limit > Bytes(0) ? std::min(limit, on.device->memory) : on.device->memory;
  memory.reserve = memory.capacity - usable_memory(problem_.job, *on.device);
  return memory;
}

}  // namespace plait
