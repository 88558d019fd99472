#include "cost/stage_cost.h"

#include <algorithm>
#include <deque>

#include "base/error.h"
#include "cost/comm/measured_links.h"
#include "cost/framework/framework.h"
#include "cost/pipeline/schedule.h"

namespace plait {
namespace {

bool cut_differently(const Stage& stage) {
  return std::ranges::any_of(stage.spans, [&](const Span& span) {
    return span.tensor != stage.spans.front().tensor || span.data != stage.spans.front().data;
  });
}

// Spans that touch, with one split choice; they differ in what is recomputed.
struct Part {
  int split = 0;
  std::vector<RecomputedRun> runs;
  const SpanFrame* frame = nullptr;

  UnitRange units() const { return {runs.front().units.begin, runs.back().units.end}; }
};

// Parts that touch and have equal degrees: what is done once a step is done for all of them.
struct Piece {
  const Span* first = nullptr;
  int spans = 0;
  std::vector<Part> parts;

  UnitRange units() const { return {parts.front().units().begin, parts.back().units().end}; }
  const SpanFrame& frame() const { return *parts.front().frame; }
};

bool goes_on(const Piece& piece, const Span& span) {
  return piece.first->chunk == span.chunk && piece.first->tensor == span.tensor &&
         piece.first->data == span.data && piece.units().end == span.units.begin;
}

std::vector<Piece> pieces_of(const Stage& stage, const FrameSource& frames) {
  std::vector<Piece> pieces;
  for (const Span& span : stage.spans) {
    if (pieces.empty() || !goes_on(pieces.back(), span)) pieces.push_back({&span, 0, {}});
    Piece& piece = pieces.back();
    ++piece.spans;
    if (piece.parts.empty() || piece.parts.back().split != span.split)
      piece.parts.push_back({span.split, {}, &frames(span)});
    piece.parts.back().runs.push_back({span.units, span.recompute});
  }
  return pieces;
}

// Before the piece and inside it.
Resharding changes_of(const Problem& problem, const PlanSettings& settings, const Stage& stage,
                      const Piece& piece) {
  Resharding sum;
  const Span* span = piece.first;
  for (int i = 0; i < piece.spans; ++i, ++span) {
    if (span != stage.spans.data())
      sum += resharding(problem, settings, stage.devices, *(span - 1), *span);
    sum += resharding_inside(problem, settings, stage.devices, *span);
  }
  return sum;
}

// Sum over the pieces on their k-th replica (pieces that cut the devices in other ways may have
// fewer distinct replicas; their last stands in).
SpanFrame::Memory replica_memory(const Stage& stage, const std::vector<Piece>& pieces, int replica,
                                 double tied, const Problem& problem) {
  SpanFrame::Memory sum;
  sum.saved = pieces.front().frame().passing_by(replica, stage.spans.front().units.begin);
  SpanFrame::Repeated repeated;
  std::vector<const Part*> parts;
  for (const Piece& piece : pieces)
    for (const Part& part : piece.parts) parts.push_back(&part);
  for (const Part* own : parts) {
    const int on = std::min(replica, own->frame->replica_count() - 1);
    const SpanFrame::Memory part =
        own->frame->memory(on, own->runs, own == parts.back() ? tied : 0, &repeated);
    sum.weights += part.weights;
    sum.gradients += part.gradients;
    sum.optimizer_state += part.optimizer_state;
    sum.saved += part.saved;
    sum.working_set = std::max(sum.working_set, part.working_set);
    sum.transient = std::max(sum.transient, part.transient);
    sum.loss += part.loss;
    sum.workspace += part.workspace;
    sum.kept_loss += part.kept_loss;
    sum.late += part.late;
    sum.fixed = part.fixed;
    sum.keeps_gradients = part.keeps_gradients;
    sum.capacity = part.capacity;
    sum.reserve = part.reserve;
  }
  if (problem.job.framework.traits.packs_gradients && cut_differently(stage))
    sum.workspace += sum.gradients;
  return sum;
}

// What is there at the fullest moment.
void set_memory(const SpanFrame::Memory& memory, double live, double waiting, StageCost& cost) {
  const bool late = memory.is_late(live, waiting);
  cost.weights = memory.weights;
  cost.gradients = memory.keeps_gradients || late ? memory.gradients : Bytes(0);
  cost.optimizer_state = memory.optimizer_state;
  const Bytes running = memory.working_set + memory.transient;
  const bool in_loss = memory.loss > running;
  cost.activations = late ? Bytes(0) : live * memory.saved + (in_loss ? Bytes(0) : running);
  cost.workspace = memory.fixed;
  cost.workspace +=
      late ? memory.late
           : memory.workspace + waiting * memory.kept_loss + (in_loss ? memory.loss : Bytes(0));
  cost.capacity = memory.capacity;
  cost.reserve = memory.reserve;
}

// What decides the time of a hand-over from one device to another, besides its size.
struct Ends {
  int type_a = -1;
  int type_b = -1;
  bool same_node = false;
  int zone_a = 0;
  int zone_b = 0;
  int senders = 0;  // on the same node
  int receivers = 0;
  Link uplink_a;
  Link uplink_b;
  Link intra_a;
  friend bool operator==(const Ends&, const Ends&) = default;
};

Ends ends_of(const Cluster& cluster, DeviceId a, DeviceId b, const std::vector<NodeShare>& senders,
             const std::vector<NodeShare>& receivers) {
  const Device& from = cluster.device(a);
  const Device& to = cluster.device(b);
  const Node& node_a = cluster.nodes[from.node];
  const Node& node_b = cluster.nodes[to.node];
  return {from.type,
          to.type,
          from.node == to.node,
          node_a.zone,
          node_b.zone,
          devices_on(senders, from.node),
          devices_on(receivers, to.node),
          node_a.uplink,
          node_b.uplink,
          node_a.intra};
}

// Tensors of a hand-over, the mean of there and back, as DeepSpeed's pipeline engine sends them one
// by one: the mask goes forward alone; a tensor that is cut over the tensor group goes as its part
// and where that belongs.
double tensors_sent(const Problem& problem, int tensor) {
  const FrameworkTraits& traits = problem.job.framework.traits;
  const bool masked = traits.sends_mask && problem.model.sequence_length > 1;
  return 1 + (masked ? 0.5 : 0.0) + (traits.scatters_sends && tensor > 1 ? 1 : 0);
}

}  // namespace

StageResult stage_cost(const Problem& problem, const Plan& plan, int index,
                       const TableSource& tables) {
  const Stage& stage = plan.stages[index];
  std::deque<SpanFrame> frames;
  return stage_cost_in(problem, plan, index, [&](const Span& span) -> const SpanFrame& {
    return frames.emplace_back(problem, settings_of(plan), stage.devices, span.tensor, span.data,
                               stage.shares, tables, span.split);
  });
}

StageResult stage_cost_in(const Problem& problem, const Plan& plan, int index,
                          const FrameSource& frames) {
  const Stage& stage = plan.stages[index];
  PLAIT_CHECK(!stage.spans.empty());
  StageResult result;
  StageCost& cost = result.cost;
  cost.source = Source::measured;
  cost.memory_source = Source::measured;
  const bool split = splits_backward(plan.schedule);
  const std::vector<Piece> pieces = pieces_of(stage, frames);
  std::vector<UnitRange> units;
  for (const Piece& piece : pieces) {
    units.push_back(piece.units());
    if (static_cast<int>(result.chunk_forward.size()) <= piece.first->chunk) {
      result.chunk_forward.emplace_back();
      result.chunk_backward.emplace_back();
      result.chunk_weight_gradient.emplace_back();
    }
    const SpanFrame& frame = piece.frame();
    UnitCost own;
    for (const Part& part : piece.parts) {
      own += part.frame->time(part.runs);
      cost.source = std::max(cost.source, part.frame->time_source(part.units()));
      cost.memory_source = std::max(cost.memory_source, part.frame->memory_source(part.units()));
    }
    UnitCost time = own;
    const Resharding changes = changes_of(problem, settings_of(plan), stage, piece);
    time.forward_comm += changes.forward;
    time.backward_comm += changes.backward;
    cost.forward += time.forward;
    cost.backward += time.backward + time.weight_gradient;
    cost.recompute += time.recompute;
    cost.weight_gradient += time.weight_gradient;
    cost.forward_comm += time.forward_comm;
    cost.backward_comm += time.backward_comm;
    cost.gradient_sync += frame.gradient_sync(units.back(), frame.cover(own, split));
    cost.network += plan.micro_batches * (time.network_forward + time.network_backward) +
                    frame.sync_network(units.back());
    cost.optimizer += frame.optimizer(units.back());
    result.chunk_forward.back() += time.forward_total();
    result.chunk_backward.back() += time.backward_total() - time.weight_gradient;
    result.chunk_weight_gradient.back() += time.weight_gradient;
  }

  const int chunks = static_cast<int>(result.chunk_forward.size());
  const double live = static_cast<double>(chunks_in_flight(plan.schedule, plan.stage_count(), index,
                                                           plan.micro_batches, chunks)) /
                      chunks;
  const double waiting = plan.schedule == Schedule::gpipe ? live - 1 : 0;
  const double tied = tied_copies(problem.model, units);
  int replicas = 0;
  for (const Piece& piece : pieces) replicas = std::max(replicas, piece.frame().replica_count());
  StageCost tightest;
  for (int r = 0; r < replicas; ++r) {
    StageCost candidate = cost;
    set_memory(replica_memory(stage, pieces, r, tied, problem), live, waiting, candidate);
    if (r == 0 || candidate.spare() < tightest.spare()) tightest = candidate;
  }
  cost = tightest;
  return result;
}

HandOver hand_over(const Problem& problem, const Plan& plan, const Stage& from, const Stage& to,
                   int unit) {
  const Cluster& cluster = problem.cluster;
  const Span& last = from.spans.back();
  const Span& first = to.spans.front();
  const double samples = static_cast<double>(problem.job.global_batch) / plan.micro_batches;
  const Bytes whole(activation_bytes(problem.job.precision) * problem.model.unit(unit - 1).output *
                    samples / plan.context);
  const FrameworkTraits& traits = problem.job.framework.traits;
  // Only forward; the way back is as long here, so half of it is counted each way.
  const double tokens = problem.model.sequence_length;
  const Bytes mask(traits.sends_mask ? activation_bytes(problem.job.precision) * tokens * tokens / 2
                                     : 0.0);
  // Bytes that one device sends, or that one receives.
  const auto bytes_of = [&](const Span& span, bool same_node) {
    const bool cut = plan.sequence_parallel || (traits.scatters_sends && !same_node);
    return whole / (span.data * (cut ? span.tensor : 1.0));
  };
  const std::vector<NodeShare> senders = by_node(cluster, from.devices);
  const std::vector<NodeShare> receivers = by_node(cluster, to.devices);
  HandOver slowest;
  Ends before;
  const int pairs = std::max(last.data, first.data);
  for (int r = 0; r < pairs; ++r) {
    const int d_from = static_cast<int>(static_cast<long>(r) * last.data / pairs);
    const int d_to = static_cast<int>(static_cast<long>(r) * first.data / pairs);
    const DeviceId a = from.devices[d_from * last.tensor * plan.context];
    const DeviceId b = to.devices[d_to * first.tensor * plan.context];
    const Ends ends = ends_of(cluster, a, b, senders, receivers);
    if (ends == before) continue;
    before = ends;
    const Link link = link_between(cluster, a, b);
    const bool same_node = ends.same_node;
    const Efficiency& reached_a = cluster.type_of(a).efficiency;
    const Efficiency& reached_b = cluster.type_of(b).efficiency;
    const double reached = same_node ? std::min(reached_a.intra, reached_b.intra)
                                     : std::min(reached_a.inter, reached_b.inter);
    const double sharing_a = same_node ? 1 : ends.senders;
    const double sharing_b = same_node ? 1 : ends.receivers;
    const BytesPerSecond rate = link.bandwidth * reached;
    const Bytes sent = bytes_of(last, same_node) + mask;
    const Bytes received = bytes_of(first, same_node) + mask;
    const Bytes most = std::max(sent * sharing_a, received * sharing_b);
    Seconds time = most / rate;
    if (traits.send_limit > BytesPerSecond(0))
      time = std::max(time, std::max(sent, received) / traits.send_limit);
    const MeasuredLinks links(problem.profile, cluster.type_of(a).name);
    time = links.send(same_node, most).value_or(link.latency + time);
    slowest.time = std::max(slowest.time, time);
    slowest.busy = std::max(slowest.busy, time - link.latency);
    slowest.crosses_nodes = slowest.crosses_nodes || !same_node;
  }
  slowest.time += tensors_sent(problem, std::max(last.tensor, first.tensor)) * traits.send_wait;
  return slowest;
}

Seconds tied_sync_time(const Problem& problem, const Tie& tie, std::span<const DeviceId> first,
                       std::span<const DeviceId> second, int tensor) {
  if (!is_trained(problem, tie)) return {};
  const Cluster& cluster = problem.cluster;
  const std::vector<NodeShare> senders = by_node(cluster, first);
  const std::vector<NodeShare> receivers = by_node(cluster, second);
  const std::size_t pairs = std::min(first.size(), second.size());
  const Bytes size(state_bytes(problem.job).gradient * tie.parameters / tensor);
  Seconds slowest;
  Ends before;
  for (std::size_t i = 0; i < pairs; ++i) {
    const DeviceId a = first[i * first.size() / pairs];
    const DeviceId b = second[i * second.size() / pairs];
    const Ends ends = ends_of(cluster, a, b, senders, receivers);
    if (ends == before) continue;
    before = ends;
    // Devices of the stage on the same node use its network for the same purpose.
    const Group group = group_of(cluster, std::vector<DeviceId>{a, b}, ends.senders);
    slowest = std::max(slowest, all_reduce(group, size));
  }
  return slowest;
}

}  // namespace plait
