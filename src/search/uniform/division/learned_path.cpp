#include "search/uniform/division/learned_path.h"

#include <algorithm>
#include <array>

#include "cost/pipeline/schedule.h"

namespace plait {
namespace {

// Events of a simulation, by task.
class Events {
 public:
  Events(const Plan& plan, const Trace& trace)
      : plan_(plan),
        trace_(trace),
        positions_(plan.stage_count() * chunk_count(plan.stages.front())),
        of_task_(3 * static_cast<std::size_t>(positions_) * plan.micro_batches, -1),
        last_(plan.stage_count(), -1) {
    for (std::size_t i = 0; i < trace.events.size(); ++i) {
      const Event& event = trace.events[i];
      of_task_[slot(event.task.kind, position(event), event.task.micro_batch)] =
          static_cast<int>(i);
      last_[event.stage] = static_cast<int>(i);
    }
  }

  int last_of(int stage) const { return last_[stage]; }
  const Event& at(int event) const { return trace_.events[event]; }
  int position(const Event& event) const {
    return chunk_position(plan_.schedule, plan_.stage_count(), event.stage, event.task.chunk);
  }

  // What the event had to wait for; -1 at the beginning.
  int before(int event) const {
    const Event& own = at(event);
    const bool is_first = event == 0 || at(event - 1).stage != own.stage;
    if (!is_first && at(event - 1).end >= own.begin) return event - 1;
    const int input = input_of(own);
    return input >= 0 || is_first ? input : event - 1;
  }

 private:
  std::size_t slot(TaskKind kind, int position, int micro_batch) const {
    const int row = kind == TaskKind::forward ? 0 : kind == TaskKind::backward ? 1 : 2;
    return (static_cast<std::size_t>(row) * positions_ + position) * plan_.micro_batches +
           micro_batch;
  }

  int input_of(const Event& event) const {
    const TaskKind kind = event.task.kind;
    const int from = position(event) + (kind == TaskKind::forward ? -1 : 1);
    if (kind == TaskKind::weight_gradient || from < 0 || from >= positions_) return -1;
    return of_task_[slot(kind, from, event.task.micro_batch)];
  }

  const Plan& plan_;
  const Trace& trace_;
  int positions_;
  std::vector<int> of_task_;
  std::vector<int> last_;  // of every stage
};

}  // namespace

double LearnedPath::with(const std::vector<int>& other) const {
  double sum = length;
  for (std::size_t k = 0; k < gain.size(); ++k) sum += (other[k] - layers[k]) * gain[k];
  return sum;
}

LearnedPath learned_path(const Plan& plan, const std::vector<int>& layers, const Estimate& cost,
                         const Trace& trace) {
  std::vector<double> own(plan.stage_count(), 0);  // layers of each stage
  const int chunks = chunk_count(plan.stages.front());
  for (int s = 0; s < plan.stage_count(); ++s)
    for (int c = 0; c < chunks; ++c)
      own[s] += layers[chunk_position(plan.schedule, plan.stage_count(), s, c)];
  const Events events(plan, trace);
  const auto end = [&](int s) {
    return trace.stage_end[s] + cost.stages[s].gradient_sync + cost.stages[s].optimizer;
  };
  int last = 0;
  for (int s = 1; s < plan.stage_count(); ++s)
    if (end(s) > end(last)) last = s;
  // Where a link is busy for longer than any path, the path is shorter than the step.
  Seconds tied;
  for (const StageCost& stage : cost.stages) tied = std::max(tied, stage.tied_sync);
  LearnedPath path{layers, std::min(cost.step, end(last) + tied).value,
                   std::vector<double>(layers.size(), 0)};
  // A backward pass that is split is two tasks, of about half of it each.
  const double part = splits_backward(plan.schedule) ? 0.5 : 1;
  for (int at = events.last_of(last); at >= 0; at = events.before(at)) {
    const Event& event = events.at(at);
    const StageCost& stage = cost.stages[event.stage];
    const double time = event.task.kind == TaskKind::forward ? stage.forward_total().value
                                                             : part * stage.backward_total().value;
    path.gain[events.position(event)] += time / std::max(1.0, own[event.stage]);
  }
  return path;
}

}  // namespace plait
