#include "runtime/lower/layout.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace plait::runtime {
namespace {

// Ranges of the cut dimension, in whole coordinates.
struct Holding {
  int dim = 0;
  std::vector<Interval> ranges;
};

Holding holding(const LiveTensor& alive, int tensor, int t, bool sequence_parallel) {
  Holding out;
  out.dim = alive.cut == LiveTensor::Cut::features ? alive.dim : 0;
  const std::int64_t size = alive.shape[out.dim];
  out.ranges = {{0, size}};
  if (tensor == 1) return out;
  if (alive.cut == LiveTensor::Cut::features) out.ranges = shard_of(alive.parts, tensor, t);
  if (alive.cut == LiveTensor::Cut::stream && sequence_parallel)
    out.ranges = {{t * size / tensor, (t + 1) * size / tensor}};
  return out;
}

Interval overlap(const Interval& a, const Interval& b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

Interval moved(const Interval& interval, std::int64_t by) {
  return {interval.begin + by, interval.end + by};
}

// Finds senders for one rank's values of one tensor.
class Receiver {
 public:
  Receiver(const SpanPlace& a, const SpanPlace& b, const LiveTensor& alive, bool sequence_parallel)
      : a_(a), b_(b), alive_(alive), sequence_parallel_(sequence_parallel) {}

  void receive(int place, int tensor, std::vector<Transfer>& out) {
    const int d = place / b_.tensor;
    const Holding wanted = holding(alive_, b_.tensor, place % b_.tensor, sequence_parallel_);
    for (int from = 0; from < a_.data; ++from) {
      const Interval samples = overlap(a_.samples[from], b_.samples[d]);
      if (samples.size() <= 0) continue;
      std::int64_t local = 0;
      for (const Interval& range : wanted.ranges) {
        Transfer transfer{.to = b_.ranks[place], .tensor = tensor};
        transfer.source.samples = moved(samples, -a_.samples[from].begin);
        transfer.target.samples = moved(samples, -b_.samples[d].begin);
        transfer.source.dim = transfer.target.dim = wanted.dim;
        cover(range, local, from, place % b_.tensor, transfer, out);
        local += range.size();
      }
    }
  }

 private:
  // Devices of the sending group one after the other give what is still missing of `range`,
  // beginning with the receiver itself, or the one in its place.
  void cover(const Interval& range, std::int64_t local, int from, int t, Transfer transfer,
             std::vector<Transfer>& out) {
    const int group = from * a_.tensor;
    int first = t % a_.tensor;
    for (int i = 0; i < a_.tensor; ++i)
      if (a_.ranks[group + i] == transfer.to) first = i;
    std::vector<Interval> missing{range};
    for (int k = 0; k < a_.tensor && !missing.empty(); ++k) {
      const int sender = (first + k) % a_.tensor;
      transfer.from = a_.ranks[group + sender];
      const Holding has = holding(alive_, a_.tensor, sender, sequence_parallel_);
      std::int64_t offset = 0;
      for (const Interval& part : has.ranges) {
        std::vector<Interval> left;
        for (const Interval& want : missing) {
          const Interval both = overlap(part, want);
          if (both.size() <= 0) {
            left.push_back(want);
            continue;
          }
          transfer.source.range = moved(both, offset - part.begin);
          transfer.target.range = moved(both, local - range.begin);
          out.push_back(transfer);
          if (want.begin < both.begin) left.push_back({want.begin, both.begin});
          if (both.end < want.end) left.push_back({both.end, want.end});
        }
        missing = std::move(left);
        offset += part.size();
      }
    }
    PLAIT_CHECK(missing.empty());
  }

  const SpanPlace& a_;
  const SpanPlace& b_;
  const LiveTensor& alive_;
  bool sequence_parallel_;
};

std::vector<Interval> samples_of(const Stage& stage, const Span& span, std::int64_t micro_batch) {
  std::vector<Interval> out;
  std::int64_t next = 0;
  for (int d = 0; d < span.data; ++d) {
    const std::int64_t count = stage.shares.empty() ? micro_batch / span.data : stage.shares[d];
    out.push_back({next, next + count});
    next += count;
  }
  return out;
}

}  // namespace

int SpanPlace::place_of(int rank) const {
  const auto found = std::find(ranks.begin(), ranks.end(), rank);
  return found == ranks.end() ? -1 : static_cast<int>(found - ranks.begin());
}

std::vector<int> Layout::chunk_spans(int stage, int chunk) const {
  std::vector<int> out;
  for (int i = 0; i < static_cast<int>(spans.size()); ++i)
    if (spans[i].stage == stage && spans[i].chunk == chunk) out.push_back(i);
  return out;
}

Layout make_layout(const Problem& problem, const Plan& plan, const ExecProgram& program) {
  Layout layout;
  layout.stages = plan.stage_count();
  layout.chunks = chunk_count(plan.stages[0]);
  layout.micro_batch = problem.job.global_batch / plan.micro_batches;
  layout.sequence_parallel = plan.sequence_parallel;
  std::map<int, int> rank_of;  // device id, stage
  for (int s = 0; s < layout.stages; ++s)
    for (const DeviceId device : plan.stages[s].devices) rank_of[static_cast<int>(device)] = s;
  for (auto& [device, rank] : rank_of) {
    layout.stage_of.push_back(rank);
    rank = static_cast<int>(layout.stage_of.size()) - 1;
  }
  layout.world = static_cast<int>(layout.stage_of.size());
  for (int s = 0; s < layout.stages; ++s)
    for (const Span& span : plan.stages[s].spans) {
      SpanPlace place{.stage = s,
                      .chunk = span.chunk,
                      .tensor = span.tensor,
                      .data = span.data,
                      .recompute = span.recompute,
                      .begin = program.begin[span.units.begin],
                      .end = program.begin[span.units.end]};
      for (const DeviceId device : plan.stages[s].devices)
        place.ranks.push_back(rank_of.at(static_cast<int>(device)));
      place.samples = samples_of(plan.stages[s], span, layout.micro_batch);
      layout.spans.push_back(std::move(place));
    }
  std::sort(layout.spans.begin(), layout.spans.end(),
            [](const SpanPlace& a, const SpanPlace& b) { return a.begin < b.begin; });
  return layout;
}

std::vector<Transfer> transfers(const SpanPlace& a, const SpanPlace& b,
                                const std::vector<LiveTensor>& alive, bool sequence_parallel) {
  std::vector<Transfer> out;
  for (int i = 0; i < static_cast<int>(alive.size()); ++i) {
    Receiver receiver(a, b, alive[i], sequence_parallel);
    for (int place = 0; place < static_cast<int>(b.ranks.size()); ++place)
      receiver.receive(place, i, out);
  }
  return out;
}

bool same_places(const SpanPlace& a, const SpanPlace& b) {
  return a.ranks == b.ranks && a.tensor == b.tensor && a.samples == b.samples;
}

std::vector<std::int64_t> local_shape(const LiveTensor& alive, int tensor, int t,
                                      bool sequence_parallel) {
  const Holding has = holding(alive, tensor, t, sequence_parallel);
  std::vector<std::int64_t> shape = alive.shape;
  shape[has.dim] = 0;
  for (const Interval& range : has.ranges) shape[has.dim] += range.size();
  return shape;
}

}  // namespace plait::runtime
