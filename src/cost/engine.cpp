#include "cost/engine.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <tuple>

#include "base/error.h"
#include "base/short_list.h"
#include "cost/comm/measured_links.h"
#include "cost/framework/framework.h"

namespace plait {
namespace {

// Hand-overs as part of the stages' own work: the activation going down and the gradient coming up
// are exchanged at once, while both stages wait. One end is counted with the forward pass of the
// upper stage, the other with the backward pass of the lower.
void block_on_sends(Pipeline& pipeline) {
  const int last = pipeline.stages * pipeline.chunks - 1;
  for (int s = 0; s < pipeline.stages; ++s)
    for (int c = 0; c < pipeline.chunks; ++c) {
      const int position = chunk_position(pipeline.schedule, pipeline.stages, s, c);
      ChunkTime& time = pipeline.time[s * pipeline.chunks + c];
      if (position < last) time.forward += pipeline.send[position];
      if (position > 0) time.backward += pipeline.send[position - 1];
    }
  std::ranges::fill(pipeline.send, Seconds(0));
  std::ranges::fill(pipeline.send_busy, Seconds(0));
}

// How long the busiest node's network carries what its stages send in a step. Stages overlap their
// traffic with compute, but not with each other's on one adapter.
Seconds busiest_network(const Cluster& cluster, const Plan& plan, const Estimate& estimate) {
  const auto sends = [](const StageCost& stage) { return stage.network > Seconds(0); };
  if (std::ranges::none_of(estimate.stages, sends)) return Seconds(0);
  std::vector<Seconds> busy(cluster.nodes.size());
  Seconds most;
  for (int s = 0; s < plan.stage_count(); ++s) {
    const Seconds own = estimate.stages[s].network;
    if (own <= Seconds(0)) continue;
    int before = -1;
    for (const DeviceId id : plan.stages[s].devices) {
      const int node = cluster.device(id).node;
      if (node == before) continue;
      before = node;
      busy[node] += own;
      most = std::max(most, busy[node]);
    }
  }
  return most;
}

}  // namespace

CostEngine::CostEngine(const Problem& problem) : problem_(problem) {}

const UnitTable& CostEngine::table(const ReplicaShape& shape) const {
  {
    const std::shared_lock lock(mutex_);
    const auto it = tables_.find(shape);
    if (it != tables_.end()) return *it->second;
  }
  auto made = std::make_unique<UnitTable>(problem_, shape);
  const std::unique_lock lock(mutex_);
  return *tables_.emplace(shape, std::move(made)).first->second;
}

Pipeline CostEngine::pipeline_of(const Plan& plan, Estimate& estimate, StageMemo* memo) const {
  const TableSource tables = [this](const ReplicaShape& shape) -> const UnitTable& {
    return table(shape);
  };
  if (memo != nullptr) memo->see(plan);
  Pipeline pipeline;
  pipeline.schedule = plan.schedule;
  pipeline.stages = plan.stage_count();
  pipeline.chunks = chunk_count(plan.stages.front());
  pipeline.micro_batches = plan.micro_batches;
  const bool split = splits_backward(plan.schedule);
  const int positions = pipeline.stages * pipeline.chunks;
  estimate.stages.reserve(pipeline.stages);
  pipeline.time.reserve(positions);
  pipeline.send.reserve(positions);
  pipeline.send_busy.reserve(positions);
  StageResult made;
  for (int s = 0; s < pipeline.stages; ++s) {
    if (memo == nullptr) made = stage_cost(problem_, plan, s, tables);
    const StageResult& stage = memo == nullptr ? made : memo->stage(plan, s, tables);
    estimate.stages.push_back(stage.cost);
    PLAIT_CHECK(static_cast<int>(stage.chunk_forward.size()) == pipeline.chunks);
    for (int c = 0; c < pipeline.chunks; ++c) {
      const Seconds weight_gradient = stage.chunk_weight_gradient[c];
      pipeline.time.push_back({stage.chunk_forward[c],
                               stage.chunk_backward[c] + (split ? Seconds(0) : weight_gradient),
                               split ? weight_gradient : Seconds(0)});
    }
  }
  // Hand-overs, in execution order of the chunks.
  struct FirstUnit {
    int stage = 0;
    int unit = 0;
  };
  ShortList<FirstUnit, 32> at(positions, {});
  for (int s = 0; s < pipeline.stages; ++s) {
    int chunk = -1;
    for (const Span& span : plan.stages[s].spans) {
      if (span.chunk == chunk) continue;
      chunk = span.chunk;
      at[chunk_position(plan.schedule, pipeline.stages, s, chunk)] = {s, span.units.begin};
    }
  }
  for (int k = 0; k + 1 < positions; ++k) {
    const auto [from, to, unit] = std::tuple(at[k].stage, at[k + 1].stage, at[k + 1].unit);
    HandOver over;  // none at the turning point of a V
    if (from != to && memo != nullptr) over = memo->over(plan, from, to, unit);
    if (from != to && memo == nullptr)
      over = hand_over(problem_, plan, plan.stages[from], plan.stages[to], unit);
    pipeline.send.push_back(over.time);
    pipeline.send_busy.push_back(over.busy);
    estimate.stages[from].send += over.time;
    if (!over.crosses_nodes) continue;
    // Activations leave the one, gradients the other.
    estimate.stages[from].network += plan.micro_batches * over.busy;
    estimate.stages[to].network += plan.micro_batches * over.busy;
  }
  if (problem_.job.framework.traits.send_blocks) block_on_sends(pipeline);
  return pipeline;
}

Seconds CostEngine::add_tied_sync(const Plan& plan, Estimate& estimate, StageMemo* memo) const {
  const auto stage_of = [&](int unit) {
    for (int s = 0; s < plan.stage_count(); ++s)
      for (const Span& span : plan.stages[s].spans)
        if (span.units.begin <= unit && unit < span.units.end) return s;
    return 0;
  };
  Seconds tied;
  for (std::size_t i = 0; i < problem_.model.ties.size(); ++i) {
    const Tie& tie = problem_.model.ties[i];
    const int a = stage_of(tie.first);
    const int b = stage_of(tie.second);
    if (a == b) continue;
    const Seconds time = memo != nullptr ? memo->tied_sync(plan, i, a, b)
                                         : tied_sync_time(problem_, tie, plan.stages[a].devices,
                                                          plan.stages[b].devices,
                                                          plan.stages[b].spans.back().tensor);
    estimate.stages[a].tied_sync += time;
    estimate.stages[b].tied_sync += time;
    tied += time;
  }
  return tied;
}

void CostEngine::finish(const Plan& plan, const std::vector<Seconds>& stage_end, Estimate& estimate,
                        StageMemo* memo) const {
  Seconds end = estimate.pipeline;
  for (std::size_t s = 0; s < estimate.stages.size(); ++s) {
    const StageCost& stage = estimate.stages[s];
    end = std::max(end, stage_end[s] + stage.gradient_sync + stage.optimizer);
  }
  const Seconds tied = add_tied_sync(plan, estimate, memo);
  estimate.step = end + tied + measured_extras(problem_.profile, problem_.cluster, plan);
  estimate.step = std::max(estimate.step, busiest_network(problem_.cluster, plan, estimate));
  estimate.after_pipeline = estimate.step - estimate.pipeline;
  estimate.fits = std::ranges::all_of(
      estimate.stages, [](const StageCost& stage) { return stage.spare() >= Bytes(0); });
}

Estimate CostEngine::estimate(const Plan& plan) const {
  const bool has_formula =
      plan.schedule == Schedule::gpipe || plan.schedule == Schedule::one_f_one_b;
  if (!has_formula) return simulate(plan);
  Estimate estimate;
  const Pipeline pipeline = pipeline_of(plan, estimate);
  estimate.pipeline = closed_form(pipeline);
  Seconds busiest;
  std::vector<Seconds> stage_end;
  Seconds before;  // backward and send of the stages before s: what follows its own last backward
  for (int s = 0; s < pipeline.stages; ++s) {
    const ChunkTime& time = pipeline.time[s];
    stage_end.push_back(estimate.pipeline - before);
    before += time.backward;
    if (s + 1 < pipeline.stages) before += pipeline.send[s];
    busiest = std::max(busiest, pipeline.micro_batches * (time.forward + time.backward));
  }
  estimate.bubble = estimate.pipeline - busiest;
  finish(plan, stage_end, estimate, nullptr);
  return estimate;
}

Estimate CostEngine::simulate(const Plan& plan, Trace* trace, StageMemo* memo,
                              Seconds limit) const {
  Estimate estimate;
  const Pipeline pipeline = pipeline_of(plan, estimate, memo);
  Trace made = memo != nullptr && trace == nullptr
                   ? memo->simulated(pipeline, limit)
                   : plait::simulate(pipeline, trace != nullptr, limit);
  estimate.pipeline = splits_backward(plan.schedule) ? made.longest_stage : made.makespan;
  estimate.bubble = estimate.pipeline - *std::ranges::max_element(made.busy);
  std::vector<Seconds> stage_end = made.stage_end;
  if (splits_backward(plan.schedule))
    for (std::size_t s = 0; s < stage_end.size(); ++s) stage_end[s] -= made.stage_begin[s];
  finish(plan, stage_end, estimate, memo);
  if (trace != nullptr) *trace = std::move(made);
  return estimate;
}

Estimate CostEngine::outline(const Plan& plan, StageMemo* memo) const {
  Estimate estimate;
  const Pipeline pipeline = pipeline_of(plan, estimate, memo);
  const bool has_formula =
      plan.schedule == Schedule::gpipe || plan.schedule == Schedule::one_f_one_b;
  if (has_formula) estimate.pipeline = closed_form(pipeline);
  // Schedules that fill gaps count from a stage's own first task, others from that of the pipeline:
  // there the first micro-batch comes by way of the stages before, and the last goes back.
  const bool fills = !splits_backward(plan.schedule);
  const std::vector<Seconds> spans = least_spans(pipeline);
  Seconds step;
  Seconds forward;
  Seconds backward;
  for (int s = 0; s < pipeline.stages; ++s) {
    const StageCost& stage = estimate.stages[s];
    const Seconds own = spans[s];
    step = std::max(step, forward + own + stage.gradient_sync + stage.optimizer);
    estimate.pipeline = std::max(estimate.pipeline, forward + own + backward);
    if (!fills || s + 1 == pipeline.stages) continue;
    forward += pipeline.at(s, 0).forward + pipeline.send[s];
    backward += pipeline.at(s, 0).backward + pipeline.send[s];
  }
  estimate.step = std::max(step, estimate.pipeline) + add_tied_sync(plan, estimate, memo);
  estimate.step = std::max(estimate.step, busiest_network(problem_.cluster, plan, estimate));
  estimate.fits = std::ranges::all_of(
      estimate.stages, [](const StageCost& stage) { return stage.spare() >= Bytes(0); });
  return estimate;
}

Seconds CostEngine::floor_of(const Plan& plan) const {
  const Estimate estimate = outline(plan);
  return estimate.fits ? estimate.step : Seconds(HUGE_VAL);
}

std::vector<UnitSource> CostEngine::sources(const Plan& plan) const {
  const TableSource tables = [this](const ReplicaShape& shape) -> const UnitTable& {
    return table(shape);
  };
  std::vector<UnitSource> out;
  for (int s = 0; s < plan.stage_count(); ++s) {
    const Stage& stage = plan.stages[s];
    for (std::size_t i = 0; i < stage.spans.size(); ++i) {
      const Span& span = stage.spans[i];
      const SpanFrame frame(problem_, settings_of(plan), stage.devices, span.tensor, span.data,
                            stage.shares, tables, span.split);
      for (int r = 0; r < frame.replica_count(); ++r)
        for (int u = span.units.begin; u < span.units.end; ++u) {
          UnitSource own{.stage = s,
                         .span = static_cast<int>(i),
                         .units = {u, u + 1},
                         .unit = problem_.model.unit(u).name,
                         .device_type = frame.device_type(r),
                         .origin = frame.origin(r, u)};
          const bool goes_on = u > span.units.begin && out.back().unit == own.unit &&
                               out.back().origin == own.origin;
          if (goes_on)
            out.back().units.end = u + 1;
          else
            out.push_back(std::move(own));
        }
    }
  }
  return out;
}

namespace {

// What a step needs; `square` is the part of the scores of attention that counts.
Flops needed_flops(const Problem& problem, double square) {
  Flops sum;
  for (const int unit : problem.model.units) {
    const LayerKind& kind = problem.model.kinds[unit];
    const double passes = kind.frozen ? 1 : problem.job.adapters ? 2 : 3;
    for (const Op& op : kind.ops)
      sum += passes * (op.kind == OpKind::attention ? square : 1) * op.forward;
  }
  return sum * problem.job.global_batch;
}

FlopsPerSecond peak_of(const Problem& problem, const Plan& plan) {
  FlopsPerSecond peak;
  for (const Stage& stage : plan.stages)
    for (const DeviceId id : stage.devices)
      peak += problem.cluster.type_of(id).peak_of(compute_dtype(problem.job.precision));
  return peak;
}

}  // namespace

double model_flops_utilisation(const Problem& problem, const Plan& plan, Seconds step) {
  const double square = problem.model.causal ? 0.5 : 1;
  return needed_flops(problem, square) / (peak_of(problem, plan) * step);
}

double full_attention_utilisation(const Problem& problem, const Plan& plan, Seconds step) {
  return needed_flops(problem, 1) / (peak_of(problem, plan) * step);
}

double tokens_per_second(const Problem& problem, Seconds step) {
  return static_cast<double>(problem.job.global_batch) * problem.model.sequence_length / step.value;
}

}  // namespace plait
