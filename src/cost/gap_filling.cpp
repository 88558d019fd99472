#include <algorithm>
#include <array>
#include <deque>
#include <limits>
#include <optional>

#include "base/error.h"
#include "cost/schedule.h"

// Orders for ZB-2p and ZB-V. The backward pass is split into input gradients (B), which
// the previous stage waits for, and weight gradients (W), which nobody waits for. A stage that is
// free runs the first of these that is possible:
//   B, deepest chunk first;  F, deepest chunk first, while the memory limit allows;  W.
// W is put into a gap only if the gap is long enough (`patience` of a W's length), and runs at once
// when memory forbids another F. Several policies (patience, F before B) are tried and the shortest
// result is kept, as in the search of Qi et al. (ICLR'24, section 3).
namespace plait {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class GreedyOrder {
 public:
  GreedyOrder(const Pipeline& p, double patience, bool forward_first)
      : p_(p),
        patience_(patience),
        order_{forward_first ? TaskKind::forward : TaskKind::backward,
               forward_first ? TaskKind::backward : TaskKind::forward},
        positions_(p.stages * p.chunks),
        forward_end_(positions_, std::vector<double>(p.micro_batches, kNever)),
        backward_end_(forward_end_),
        stages_(p.stages) {
    for (int s = 0; s < p.stages; ++s) {
      Stage& stage = stages_[s];
      stage.limit = chunks_in_flight(p.schedule, p.stages, s, p.micro_batches, p.chunks);
      stage.next_forward.assign(p.chunks, 0);
      stage.next_backward.assign(p.chunks, 0);
    }
  }

  // Runs to the end; the longest time from a stage's first task to its last, or infinity when the
  // limits lock the stages up.
  double run() {
    const int total = p_.stages * p_.chunks * p_.micro_batches * 3;
    // What a stage would do next changes only when it or a neighbour has done something.
    std::vector<std::optional<Choice>> choices;
    for (int s = 0; s < p_.stages; ++s) choices.push_back(choose(s));
    for (int done = 0; done < total; ++done) {
      int best = -1;
      for (int s = 0; s < p_.stages; ++s)
        if (choices[s] && (best < 0 || choices[s]->begin < choices[best]->begin)) best = s;
      if (best < 0) return kNever;
      execute(best, *choices[best]);
      for (int s = std::max(0, best - 1); s <= std::min(best + 1, p_.stages - 1); ++s)
        choices[s] = choose(s);
    }
    double longest = 0;
    for (const Stage& stage : stages_) longest = std::max(longest, stage.free - stage.begin);
    return longest;
  }

  std::vector<std::vector<Task>> lists() const {
    std::vector<std::vector<Task>> out;
    for (const Stage& stage : stages_) out.push_back(stage.list);
    return out;
  }

 private:
  struct Stage {
    double begin = kNever;
    double free = 0;
    int live = 0;   // chunks whose activations are held
    int limit = 0;  // most of them
    std::vector<int> next_forward;
    std::vector<int> next_backward;
    std::deque<Task> weight_gradients;  // waiting
    std::vector<Task> list;
  };
  struct Choice {
    Task task;
    double begin = kNever;
  };

  int position(int stage, int chunk) const {
    return chunk_position(p_.schedule, p_.stages, stage, chunk);
  }

  // When the input of the next forward or backward of a chunk is there; kNever while unknown.
  double forward_ready(int stage, int chunk) const {
    const int at = position(stage, chunk);
    const int i = stages_[stage].next_forward[chunk];
    if (i == p_.micro_batches) return kNever;
    return at == 0 ? 0 : forward_end_[at - 1][i] + p_.send[at - 1].value;
  }
  double backward_ready(int stage, int chunk) const {
    const int at = position(stage, chunk);
    const int i = stages_[stage].next_backward[chunk];
    if (i == p_.micro_batches) return kNever;
    if (at == positions_ - 1) return forward_end_[at][i];
    return std::max(forward_end_[at][i], backward_end_[at + 1][i] + p_.send[at].value);
  }

  // A forward may start when its chunk fits, and, for a chunk that is not the last of its stage,
  // when the later chunks of the same micro-batch will fit too: otherwise the stages lock up.
  bool forward_fits(const Stage& stage, int chunk) const {
    int promised = 0;  // forwards that live micro-batches have still to run on this stage
    for (int c = 1; c < p_.chunks; ++c) promised += stage.next_forward[0] - stage.next_forward[c];
    if (chunk == 0) return stage.live + promised + p_.chunks <= std::max(stage.limit, p_.chunks);
    return true;
  }

  std::optional<Choice> choose(int s) const {
    const Stage& stage = stages_[s];
    Choice soonest;  // of B and F, by begin, B and deep chunks first on a tie
    for (const TaskKind kind : order_) {
      for (int c = p_.chunks - 1; c >= 0; --c) {
        const bool back = kind == TaskKind::backward;
        if (!back && !forward_fits(stage, c)) continue;
        const double ready = back ? backward_ready(s, c) : forward_ready(s, c);
        if (ready == kNever) continue;
        const double begin = std::max(stage.free, ready);
        const int i = back ? stage.next_backward[c] : stage.next_forward[c];
        if (begin < soonest.begin) soonest = {{kind, c, i}, begin};
      }
    }
    if (!stage.weight_gradients.empty()) {
      const Task& task = stage.weight_gradients.front();
      const double length = p_.at(s, task.chunk).weight_gradient.value;
      if (soonest.begin >= stage.free + patience_ * length) return Choice{task, stage.free};
    }
    if (soonest.begin == kNever) return std::nullopt;
    return soonest;
  }

  void execute(int s, const Choice& choice) {
    Stage& stage = stages_[s];
    const Task& task = choice.task;
    const int at = position(s, task.chunk);
    const ChunkTime& time = p_.at(s, task.chunk);
    stage.list.push_back(task);
    stage.begin = std::min(stage.begin, choice.begin);
    switch (task.kind) {
      case TaskKind::forward:
        stage.free = choice.begin + time.forward.value;
        forward_end_[at][task.micro_batch] = stage.free;
        ++stage.next_forward[task.chunk];
        ++stage.live;
        break;
      case TaskKind::backward:
        stage.free = choice.begin + time.backward.value;
        backward_end_[at][task.micro_batch] = stage.free;
        ++stage.next_backward[task.chunk];
        stage.weight_gradients.push_back({TaskKind::weight_gradient, task.chunk, task.micro_batch});
        break;
      case TaskKind::weight_gradient:
        stage.free = choice.begin + time.weight_gradient.value;
        stage.weight_gradients.pop_front();
        --stage.live;
        break;
    }
  }

  const Pipeline& p_;
  double patience_;
  std::array<TaskKind, 2> order_;  // which of two tasks that could start together goes first
  int positions_;
  std::vector<std::vector<double>> forward_end_;  // [position][micro-batch]
  std::vector<std::vector<double>> backward_end_;
  std::vector<Stage> stages_;
};

}  // namespace

std::vector<std::vector<Task>> gap_filling_lists(const Pipeline& pipeline) {
  std::vector<std::vector<Task>> best;
  double shortest = kNever;
  for (const bool forward_first : {false, true}) {
    for (const double patience : {0.0, 0.5, 1.0}) {
      GreedyOrder order(pipeline, patience, forward_first);
      const double length = order.run();
      if (length < shortest) {
        shortest = length;
        best = order.lists();
      }
    }
  }
  PLAIT_CHECK(!best.empty());
  return best;
}

}  // namespace plait
