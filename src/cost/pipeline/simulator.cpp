#include "cost/pipeline/simulator.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/short_list.h"

namespace plait {
namespace {

constexpr double kPending = -1;

// Runs task lists as far as they go, stage by stage; a stage that waits for a neighbour is looked
// at again when that neighbour has moved.
class Run {
 public:
  Run(const Pipeline& p, const std::vector<std::vector<Task>>& lists, bool keep_events)
      : p_(p), lists_(lists), keep_events_(keep_events), positions_(p.stages * p.chunks) {
    forward_there_.assign(static_cast<std::size_t>(positions_) * p.micro_batches, kPending);
    backward_there_ = forward_there_;
    link_free_.assign(static_cast<std::size_t>(p.stages) * kLinks, 0);
    stage_at_.resize(positions_);
    next_.assign(p.stages, 0);
    free_.assign(p.stages, 0);
    trace_.busy.resize(p.stages);
    trace_.stage_begin.resize(p.stages);
    trace_.stage_end.resize(p.stages);
    stage_events_.resize(p.stages);
    for (int s = 0; s < p.stages; ++s)
      for (int c = 0; c < p.chunks; ++c) {
        position_.push_back(chunk_position(p.schedule, p.stages, s, c));
        stage_at_[position_.back()] = s;
      }
  }

  Trace run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int s = 0; s < p_.stages; ++s) moved |= advance(s);
      for (int s = p_.stages - 1; s >= 0; --s) moved |= advance(s);
    }
    for (int s = 0; s < p_.stages; ++s) {
      PLAIT_CHECK(next_[s] == lists_[s].size());
      trace_.stage_end[s] = Seconds(free_[s]);
      trace_.makespan = std::max(trace_.makespan, trace_.stage_end[s]);
      trace_.longest_stage =
          std::max(trace_.longest_stage, trace_.stage_end[s] - trace_.stage_begin[s]);
      trace_.events.insert(trace_.events.end(), stage_events_[s].begin(), stage_events_[s].end());
    }
    return std::move(trace_);
  }

 private:
  std::size_t slot(int position, int micro_batch) const {
    return static_cast<std::size_t>(position) * p_.micro_batches + micro_batch;
  }

  // When the input of a task is there, or kPending. Tasks of its own stage come before it in the
  // list.
  double ready(const Task& task, int position) const {
    if (task.kind == TaskKind::forward)
      return position == 0 ? 0 : forward_there_[slot(position - 1, task.micro_batch)];
    if (task.kind == TaskKind::backward && position < positions_ - 1)
      return backward_there_[slot(position + 1, task.micro_batch)];
    return 0;
  }

  // When what stage `from` has finished at `end` is at its neighbour, over a link that carries one
  // hand-over at a time in each direction. `cut`: the position that the cut follows.
  double arrival(double end, int from, int to, int cut) {
    if (p_.send_busy.empty()) return end + p_.send[cut].value;
    double& link_free = link_free_[from * kLinks + link_to(from, to)];
    const double begin = std::max(end, link_free);
    link_free = begin + p_.send_busy[cut].value;
    return begin + p_.send[cut].value;
  }
  // A stage hands over to the next, to the one before it, or round the ends of an interleaved
  // pipeline.
  static constexpr int kLinks = 3;
  static int link_to(int from, int to) { return to == from + 1 ? 0 : to == from - 1 ? 1 : 2; }

  // What changes with every task is kept in variables of its own: the compiler cannot know that the
  // lists are not part of each other.
  bool advance(int s) {
    const std::vector<Task>& list = lists_[s];
    const std::size_t from = next_[s];
    const int* const position_of = &position_[static_cast<std::size_t>(s) * p_.chunks];
    const ChunkTime* const times = &p_.at(s, 0);
    std::size_t next = from;
    double free = free_[s];
    double busy = trace_.busy[s].value;
    for (; next < list.size(); ++next) {
      const Task task = list[next];
      const int position = position_of[task.chunk];
      const double input = ready(task, position);
      if (input == kPending) break;
      const double begin = std::max(free, input);
      if (next == 0) trace_.stage_begin[s] = Seconds(begin);
      const ChunkTime& time = times[task.chunk];
      double length = time.forward.value;
      if (task.kind == TaskKind::backward) length = time.backward.value;
      if (task.kind == TaskKind::weight_gradient) length = time.weight_gradient.value;
      free = begin + length;
      busy += length;
      if (task.kind == TaskKind::forward && position < positions_ - 1)
        forward_there_[slot(position, task.micro_batch)] =
            arrival(free, s, stage_at_[position + 1], position);
      else if (task.kind == TaskKind::backward && position > 0)
        backward_there_[slot(position, task.micro_batch)] =
            arrival(free, s, stage_at_[position - 1], position - 1);
      if (keep_events_) stage_events_[s].push_back({s, task, Seconds(begin), Seconds(free)});
    }
    next_[s] = next;
    free_[s] = free;
    trace_.busy[s] = Seconds(busy);
    return next != from;
  }

  const Pipeline& p_;
  const std::vector<std::vector<Task>>& lists_;
  bool keep_events_;
  int positions_;
  std::vector<int> position_;  // [stage * chunks + chunk]
  std::vector<int> stage_at_;  // [position]
  // [slot(position, micro-batch)]: when its result is where it is needed next
  std::vector<double> forward_there_;
  std::vector<double> backward_there_;
  std::vector<double> link_free_;  // [stage * kLinks + link_to]
  std::vector<std::size_t> next_;  // per stage, into its list
  std::vector<double> free_;       // per stage
  Trace trace_;
  std::vector<std::vector<Event>> stage_events_;
};

// Pipelines with more tasks than this, or that take longer, are simulated at their ends only.
constexpr double kMostTasks = 1e6;
constexpr double kMostSeconds = 0.08;  // that one simulation may take, about

// Rounds of micro-batches, as many as there are chunks, in the two lengths that are simulated.
struct Ends {
  int shorter = 0;
  int longer = 0;
};
constexpr Ends kEnds[] = {{16, 24}, {4, 6}, {2, 3}};  // those that the time allows

// An order that fills gaps has to be found first.
double seconds_of(const Pipeline& p, double micro_batches) {
  const bool fills_gaps = p.schedule == Schedule::zb_2p || p.schedule == Schedule::zb_v;
  const double of_task = fills_gaps ? 1.8e-7 + 6e-9 * p.stages : 2.5e-8;
  return of_task * p.stages * p.chunks * micro_batches;
}

// Of pipelines that are too deep to be simulated: what each stage takes at least, between the first
// micro-batch's way to it and the last one's way back.
Trace outlined(const Pipeline& p) {
  Trace trace;
  const std::vector<Seconds> spans = least_spans(p);
  const bool fills = !splits_backward(p.schedule);
  Seconds forward;
  Seconds backward;
  for (int s = 0; s < p.stages; ++s) {
    Seconds work;
    for (int c = 0; c < p.chunks; ++c)
      work += p.at(s, c).forward + p.at(s, c).backward + p.at(s, c).weight_gradient;
    trace.busy.push_back(p.micro_batches * work);
    trace.stage_begin.push_back(forward);
    trace.stage_end.push_back(forward + spans[s]);
    trace.longest_stage = std::max(trace.longest_stage, spans[s]);
    trace.makespan = std::max(trace.makespan, forward + spans[s] + backward);
    if (!fills || s + 1 == p.stages) continue;
    forward += p.at(s, 0).forward + p.send[s];
    backward += p.at(s, 0).backward + p.send[s];
  }
  const bool has_formula = p.schedule == Schedule::gpipe || p.schedule == Schedule::one_f_one_b;
  if (has_formula) trace.makespan = std::max(trace.makespan, closed_form(p));
  return trace;
}

// Once a pipeline is full it repeats itself: each further round of micro-batches takes as long as
// the one before. Two lengths are simulated and the rest is added.
Trace simulate_long(const Pipeline& pipeline) {
  const double round = 1.0 * pipeline.stages * pipeline.chunks;
  const double all = pipeline.micro_batches;
  const auto* ends = std::ranges::find_if(kEnds, [&](const Ends& e) {
    return seconds_of(pipeline, std::min(all, e.shorter * round)) +
               seconds_of(pipeline, std::min(all, e.longer * round)) <=
           kMostSeconds;
  });
  if (ends == std::end(kEnds)) return outlined(pipeline);
  const auto rounds_of = [&](int rounds) {
    return static_cast<int>(std::min(all, rounds * round));
  };
  Pipeline part = pipeline;
  part.micro_batches = rounds_of(ends->shorter);
  const auto run = [](const Pipeline& p) { return Run(p, task_lists(p), false).run(); };
  const Trace shorter = run(part);
  part.micro_batches = rounds_of(ends->longer);
  Trace trace = run(part);
  const int simulated = part.micro_batches - rounds_of(ends->shorter);
  if (simulated == 0) return trace;
  const double rounds =
      static_cast<double>(pipeline.micro_batches - part.micro_batches) / simulated;
  const auto longer = [&](Seconds& now, Seconds before) { now += rounds * (now - before); };
  longer(trace.makespan, shorter.makespan);
  longer(trace.longest_stage, shorter.longest_stage);
  for (std::size_t s = 0; s < trace.busy.size(); ++s) {
    longer(trace.busy[s], shorter.busy[s]);
    longer(trace.stage_end[s], shorter.stage_end[s]);
  }
  return trace;
}

}  // namespace

Trace endless(const Pipeline& pipeline) {
  Trace trace;
  trace.makespan = trace.longest_stage = Seconds(HUGE_VAL);
  trace.busy.resize(pipeline.stages);
  trace.stage_begin.resize(pipeline.stages);
  trace.stage_end.assign(pipeline.stages, Seconds(HUGE_VAL));
  return trace;
}

Trace simulate(const Pipeline& pipeline, bool keep_events, Seconds limit) {
  const double tasks = 3.0 * pipeline.stages * pipeline.chunks * pipeline.micro_batches;
  const bool is_long =
      tasks > kMostTasks || seconds_of(pipeline, pipeline.micro_batches) > kMostSeconds;
  if (!keep_events && is_long) return simulate_long(pipeline);
  const std::vector<std::vector<Task>> lists = task_lists(pipeline, limit);
  if (lists.empty()) return endless(pipeline);
  return Run(pipeline, lists, keep_events).run();
}

Seconds closed_form(const Pipeline& p) {
  PLAIT_CHECK(p.chunks == 1 && !splits_backward(p.schedule));
  Seconds round_trip;  // through all stages
  for (const ChunkTime& t : p.time) round_trip += t.forward + t.backward;
  for (const Seconds c : p.send) round_trip += 2 * c;
  const double m = p.micro_batches;
  Seconds link;  // the slowest
  for (const Seconds busy : p.send_busy) link = std::max(link, busy);
  if (p.schedule == Schedule::gpipe) {
    Seconds forward = link;
    Seconds backward = link;
    for (const ChunkTime& t : p.time) {
      forward = std::max(forward, t.forward);
      backward = std::max(backward, t.backward);
    }
    return round_trip + (m - 1) * (forward + backward);
  }
  Seconds longest = (m - 1) * link;
  Seconds after;  // round trip through the stages after s
  for (int s = p.stages - 1; s >= 0; --s) {
    const ChunkTime& t = p.time[s];
    const int k = std::min(p.micro_batches, p.stages - s);
    Seconds refill = (k - 1.0) * std::max(t.forward, t.backward);
    if (p.micro_batches > k) refill = std::max(refill, after);
    longest = std::max(longest, (m - k) * (t.forward + t.backward) + refill);
    after += t.forward + t.backward;
    if (s > 0) after += 2 * p.send[s - 1];
  }
  return round_trip + longest;
}

namespace {

// How long the links into each stage carry its hand-overs, but for the first one of each. A stage
// has one from the stage before, one from the next and one round the ends.
std::vector<Seconds> link_spans(const Pipeline& p, const ShortList<int, 32>& slot) {
  std::vector<Seconds> spans(p.stages);
  ShortList<Seconds, 96> all(3 * static_cast<std::size_t>(p.stages), Seconds(0));
  ShortList<Seconds, 96> longest = all;
  const auto carry = [&](int from, int to, Seconds busy) {
    const int link = 3 * to + (from == to - 1 ? 0 : from == to + 1 ? 1 : 2);
    all[link] += p.micro_batches * busy;
    longest[link] = std::max(longest[link], busy);
    spans[to] = std::max(spans[to], all[link] - longest[link]);
  };
  for (std::size_t k = 0; k < p.send_busy.size(); ++k) {
    carry(slot[k] / p.chunks, slot[k + 1] / p.chunks, p.send_busy[k]);
    carry(slot[k + 1] / p.chunks, slot[k] / p.chunks, p.send_busy[k]);
  }
  return spans;
}

}  // namespace

std::vector<Seconds> least_spans(const Pipeline& p) {
  const int positions = p.stages * p.chunks;
  // [position], from the first task of a chunk to its last
  ShortList<Seconds, 32> held(positions, Seconds(0));
  ShortList<int, 32> slot(positions, 0);  // [position] = stage * chunks + chunk
  for (int s = 0; s < p.stages; ++s)
    for (int c = 0; c < p.chunks; ++c)
      slot[chunk_position(p.schedule, p.stages, s, c)] = s * p.chunks + c;
  Seconds after;  // round trip through what follows
  for (int k = positions - 1; k >= 0; --k) {
    const ChunkTime& time = p.time[slot[k]];
    after += time.forward + time.backward;
    held[k] = after + time.weight_gradient;
    if (k > 0) after += 2 * p.send[k - 1];
  }
  std::vector<Seconds> spans = link_spans(p, slot);
  for (int s = 0; s < p.stages; ++s) {
    Seconds work;
    Seconds memory;
    for (int c = 0; c < p.chunks; ++c) {
      const ChunkTime& time = p.at(s, c);
      work += time.forward + time.backward + time.weight_gradient;
      memory += held[chunk_position(p.schedule, p.stages, s, c)];
      // Orders that fill gaps keep room for all chunks of a micro-batch from its first one on.
      if (p.schedule == Schedule::zb_v && c == 1)
        for (int k = s; k + 1 < 2 * p.stages - s; ++k)
          memory += p.time[slot[k]].forward + p.send[k];
    }
    const int in_flight =
        std::max(p.chunks, chunks_in_flight(p.schedule, p.stages, s, p.micro_batches, p.chunks));
    const double m = p.micro_batches;
    spans[s] = std::max({spans[s], m * work, m / in_flight * memory});
    if (p.chunks > 1 || !splits_backward(p.schedule)) continue;
    const Seconds wait = held[s] - work - (in_flight - 1.0) * p.time[s].forward;
    spans[s] = std::max(spans[s], m * work + wait);
  }
  return spans;
}

}  // namespace plait
