#include "search/paths/critical_path.h"

#include <algorithm>

#include "base/error.h"
#include "cost/pipeline/schedule.h"

namespace plait {
namespace {

// A stage hands over to the next, to the one before it, or round the ends of an interleaved
// pipeline, each over a link of its own.
constexpr int kLinks = 3;

int link_of(int from, int to) {
  return kLinks * from + (to == from + 1 ? 0 : to == from - 1 ? 1 : 2);
}

}  // namespace

double StepPath::length(const PipelineTimes& times) const {
  double sum = hand_overs + times.finish[last];
  for (std::size_t i = 0; i < forward.size(); ++i)
    sum += forward[i] * times.forward[i] + backward[i] * times.backward[i];
  return sum;
}

StepGraph::StepGraph(Shape shape) : shape_(std::move(shape)) {
  Pipeline pipeline{.schedule = shape_.schedule,
                    .stages = shape_.stages,
                    .chunks = shape_.chunks,
                    .micro_batches = shape_.micro_batches};
  const int positions = shape_.stages * shape_.chunks;
  PLAIT_CHECK(!splits_backward(shape_.schedule));
  PLAIT_CHECK(static_cast<int>(shape_.send.size()) == positions - 1);
  PLAIT_CHECK(static_cast<int>(shape_.busy.size()) == positions - 1);
  pipeline.time.resize(positions);
  pipeline.send.resize(positions - 1);
  const auto lists = task_lists(pipeline);
  std::vector<int> position(positions);  // [stage * chunks + chunk]
  std::vector<int> stage_at(positions);  // [position]
  for (int s = 0; s < shape_.stages; ++s)
    for (int c = 0; c < shape_.chunks; ++c) {
      position[s * shape_.chunks + c] = chunk_position(shape_.schedule, shape_.stages, s, c);
      stage_at[position[s * shape_.chunks + c]] = s;
    }
  const int m = shape_.micro_batches;
  std::vector<int> forward(static_cast<std::size_t>(positions) * m, -1);
  std::vector<int> backward = forward;
  std::vector<std::size_t> next(shape_.stages, 0);
  last_.assign(shape_.stages, -1);
  const auto advance = [&](int s) {
    const std::size_t from = next[s];
    for (; next[s] < lists[s].size(); ++next[s]) {
      const plait::Task& own = lists[s][next[s]];
      Task task{.slot = s * shape_.chunks + own.chunk,
                .is_backward = own.kind == TaskKind::backward,
                .before = last_[s]};
      const int at = position[task.slot];
      const auto known = [&](const std::vector<int>& of, int where) {
        return of[static_cast<std::size_t>(where) * m + own.micro_batch];
      };
      // The last chunk's backward pass follows its forward pass on the same stage.
      if (!task.is_backward && at > 0) {
        if ((task.input = known(forward, at - 1)) < 0) break;
      } else if (task.is_backward && at + 1 < positions) {
        if ((task.input = known(backward, at + 1)) < 0) break;
      }
      const int to = task.is_backward ? at - 1 : at + 1;
      if (to >= 0 && to < positions) {
        task.link = link_of(s, stage_at[to]);
        task.cut = std::min(at, to);
      }
      const int number = static_cast<int>(tasks_.size());
      (task.is_backward ? backward : forward)[static_cast<std::size_t>(at) * m + own.micro_batch] =
          number;
      last_[s] = number;
      tasks_.push_back(task);
    }
    return next[s] != from;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (int s = 0; s < shape_.stages; ++s) moved |= advance(s);
    for (int s = shape_.stages - 1; s >= 0; --s) moved |= advance(s);
  }
  PLAIT_CHECK(tasks_.size() == 2 * static_cast<std::size_t>(positions) * m);
  moments_.resize(tasks_.size());
}

void StepGraph::hand_over(std::vector<double> send, std::vector<double> busy) {
  PLAIT_CHECK(send.size() == shape_.send.size() && busy.size() == shape_.busy.size());
  shape_.send = std::move(send);
  shape_.busy = std::move(busy);
}

StepPath StepGraph::longest(const PipelineTimes& times) {
  link_free_.assign(static_cast<std::size_t>(kLinks) * shape_.stages, 0);
  link_last_.assign(link_free_.size(), -1);
  for (std::size_t t = 0; t < tasks_.size(); ++t) {
    const Task& task = tasks_[t];
    Moment& own = moments_[t];
    const double free = task.before < 0 ? 0 : moments_[task.before].end;
    const double input = task.input < 0 ? 0 : moments_[task.input].there;
    own.waited = task.input >= 0 && input > free;
    own.end = std::max(free, input) +
              (task.is_backward ? times.backward[task.slot] : times.forward[task.slot]);
    if (task.link < 0) continue;
    const bool is_taken = link_free_[task.link] > own.end;
    own.sent_after = is_taken ? link_last_[task.link] : -1;
    const double begin = is_taken ? link_free_[task.link] : own.end;
    link_free_[task.link] = begin + shape_.busy[task.cut];
    link_last_[task.link] = static_cast<int>(t);
    own.there = begin + shape_.send[task.cut];
  }
  int best = 0;
  for (int s = 1; s < shape_.stages; ++s)
    if (moments_[last_[s]].end + times.finish[s] > moments_[last_[best]].end + times.finish[best])
      best = s;
  StepPath path = path_to(last_[best]);
  path.last = best;
  return path;
}

StepPath StepGraph::path_to(int task) const {
  StepPath path;
  path.forward.assign(static_cast<std::size_t>(shape_.stages) * shape_.chunks, 0);
  path.backward = path.forward;
  while (task >= 0) {
    const Task& own = tasks_[task];
    ++(own.is_backward ? path.backward : path.forward)[own.slot];
    if (!moments_[task].waited) {
      task = own.before;
      continue;
    }
    task = own.input;
    path.hand_overs += shape_.send[tasks_[task].cut];
    for (int before = moments_[task].sent_after; before >= 0; before = moments_[task].sent_after) {
      task = before;
      path.hand_overs += shape_.busy[tasks_[task].cut];
    }
  }
  return path;
}

}  // namespace plait
