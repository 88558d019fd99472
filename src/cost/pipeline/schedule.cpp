#include "cost/pipeline/schedule.h"

#include <algorithm>

#include "base/error.h"

namespace plait {
namespace {

std::vector<Task> gpipe_list(const Pipeline& p) {
  std::vector<Task> list;
  for (int i = 0; i < p.micro_batches; ++i) list.push_back({TaskKind::forward, 0, i});
  for (int i = 0; i < p.micro_batches; ++i) list.push_back({TaskKind::backward, 0, i});
  return list;
}

// The k-th forward that a stage runs under the interleaved order: p micro-batches through one
// chunk, then the same through the next chunk, and so on.
Task interleaved_forward(const Pipeline& p, int k) {
  if (p.chunks == 1) return {TaskKind::forward, 0, k};
  const int round = p.stages * p.chunks;
  const int chunk = k % round / p.stages;
  return {TaskKind::forward, chunk, k / round * p.stages + k % p.stages};
}

Task interleaved_backward(const Pipeline& p, int k) {
  Task task = interleaved_forward(p, k);
  task.kind = TaskKind::backward;
  task.chunk = p.chunks - 1 - task.chunk;
  return task;
}

// Warm-up forwards, then forward and backward in turn, then the backwards that are left. 1F1B is
// the case of one chunk.
std::vector<Task> one_f_one_b_list(const Pipeline& p, int stage) {
  const int total = p.micro_batches * p.chunks;
  const int in_flight = chunks_in_flight(p.schedule, p.stages, stage, p.micro_batches, p.chunks);
  const int warm_up = std::min(total, in_flight - 1);
  std::vector<Task> list;
  list.reserve(2 * total);
  for (int k = 0; k < warm_up; ++k) list.push_back(interleaved_forward(p, k));
  for (int k = warm_up; k < total; ++k) {
    list.push_back(interleaved_forward(p, k));
    list.push_back(interleaved_backward(p, k - warm_up));
  }
  for (int k = total - warm_up; k < total; ++k) list.push_back(interleaved_backward(p, k));
  return list;
}

// 1F1B with the weight gradients of stage s held back by s micro-batches, which lets every stage
// hold as many micro-batches as the first and shrinks the bubble to (p - 1)(f + b - w).
std::vector<Task> zb_h1_list(const Pipeline& p, int stage) {
  const int warm_up = std::min(p.micro_batches, p.stages - stage);
  std::vector<Task> list;
  int weight_gradients = 0;
  for (int i = 0; i < warm_up; ++i) list.push_back({TaskKind::forward, 0, i});
  for (int i = 0; i < p.micro_batches; ++i) {
    list.push_back({TaskKind::backward, 0, i});
    if (i >= stage) list.push_back({TaskKind::weight_gradient, 0, weight_gradients++});
    if (warm_up + i < p.micro_batches) list.push_back({TaskKind::forward, 0, warm_up + i});
  }
  while (weight_gradients < p.micro_batches)
    list.push_back({TaskKind::weight_gradient, 0, weight_gradients++});
  return list;
}

}  // namespace

bool splits_backward(Schedule schedule) {
  return schedule == Schedule::zb_h1 || schedule == Schedule::zb_2p || schedule == Schedule::zb_v;
}

std::vector<std::vector<Task>> task_lists(const Pipeline& p, Seconds limit) {
  PLAIT_CHECK(p.stages >= 1 && p.chunks >= 1 && p.micro_batches >= 1);
  PLAIT_CHECK(static_cast<int>(p.time.size()) == p.stages * p.chunks);
  PLAIT_CHECK(static_cast<int>(p.send.size()) == p.stages * p.chunks - 1);
  if (p.schedule == Schedule::zb_2p || p.schedule == Schedule::zb_v)
    return gap_filling_lists(p, limit);
  std::vector<std::vector<Task>> lists;
  for (int s = 0; s < p.stages; ++s) {
    if (p.schedule == Schedule::gpipe)
      lists.push_back(gpipe_list(p));
    else if (p.schedule == Schedule::zb_h1)
      lists.push_back(zb_h1_list(p, s));
    else
      lists.push_back(one_f_one_b_list(p, s));
  }
  return lists;
}

int chunks_in_flight(Schedule schedule, int stages, int stage, int micro_batches, int chunks) {
  const int p = stages;
  const int total = micro_batches * chunks;
  switch (schedule) {
    case Schedule::gpipe:
      return total;
    case Schedule::one_f_one_b:
      return std::min(total, p - stage);
    case Schedule::interleaved:
      return std::min(total, chunks == 1 ? p - stage : 2 * (p - stage - 1) + (chunks - 1) * p + 1);
    case Schedule::zb_h1:
      return std::min(total, p);
    case Schedule::zb_2p:
      return std::min(total, 2 * p);
    case Schedule::zb_v:
      return std::min(total, 2 * p);
  }
  return total;
}

}  // namespace plait
