#include <algorithm>
#include <array>
#include <limits>
#include <vector>

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

// Of the length of an order, by which sums of the same times in another order may differ.
constexpr double kRounding = 1e-12;

struct Policy {
  double patience = 0;
  bool forward_first = false;
};

// The ones that are mostly best first: the others are given up the sooner.
constexpr std::array<Policy, 6> kPolicies{
    {{0.5, false}, {0, false}, {1, false}, {0.5, true}, {0, true}, {1, true}}};

class GreedyOrder {
 public:
  explicit GreedyOrder(const Pipeline& p)
      : p_(p),
        positions_(p.stages * p.chunks),
        position_(positions_),
        stage_at_(positions_),
        chunk_at_(positions_) {
    for (int s = 0; s < p.stages; ++s) {
      for (int c = 0; c < p.chunks; ++c) {
        const int at = chunk_position(p.schedule, p.stages, s, c);
        position_[s * p.chunks + c] = at;
        stage_at_[at] = s;
        chunk_at_[at] = c;
      }
    }
  }

  // Runs to the end; the longest time from a stage's first task to its last, or infinity when the
  // limits lock the stages up or it is not below `shortest`.
  double run(const Policy& policy, double shortest) {
    begin(policy);
    const int total = positions_ * p_.micro_batches * 3;
    for (int done = 0; done < total; ++done) {
      int best = 0;
      for (int s = 1; s < p_.stages; ++s)
        if (choices_[s].begin < choices_[best].begin) best = s;
      if (choices_[best].begin == kNever) return kNever;
      const Task task = choices_[best].task;
      execute(best, choices_[best]);
      const Stage& stage = stages_[best];
      if (stage.free - stage.begin + stage.left >= (1 - kRounding) * shortest) return kNever;
      choose_after(best, task);
    }
    double longest = 0;
    for (const Stage& stage : stages_) longest = std::max(longest, stage.free - stage.begin);
    return longest;
  }

  // Of a stage: no order is shorter.
  double most_work() const {
    double most = 0;
    for (int s = 0; s < p_.stages; ++s) most = std::max(most, work_of(s));
    return most;
  }

  std::vector<std::vector<Task>> lists() const {
    std::vector<std::vector<Task>> out;
    for (const Stage& stage : stages_) out.push_back(stage.list);
    return out;
  }

 private:
  struct Chunk {
    int next_forward = 0;
    int next_backward = 0;
    double forward_ready = kNever;  // when the input of the next one is there, if it is known
    double backward_ready = kNever;
  };
  struct Stage {
    double begin = kNever;
    double free = 0;
    double left = 0;   // of its work
    int live = 0;      // chunks whose activations are held
    int limit = 0;     // most of them
    int promised = 0;  // forwards that live micro-batches have still to run here
    std::vector<Chunk> chunks;
    std::vector<Task> weight_gradients;    // in order of their backward passes ..
    std::size_t next_weight_gradient = 0;  // .. those before it are done
    std::vector<Task> list;
  };
  struct Choice {
    Task task;
    double begin = kNever;  // when there is nothing to do
  };

  void begin(const Policy& policy) {
    patience_ = policy.patience;
    order_ = {policy.forward_first ? TaskKind::forward : TaskKind::backward,
              policy.forward_first ? TaskKind::backward : TaskKind::forward};
    const std::size_t tasks = static_cast<std::size_t>(positions_) * p_.micro_batches;
    forward_end_.assign(tasks, kNever);
    backward_end_.assign(tasks, kNever);
    stages_.assign(p_.stages, {});
    choices_.clear();
    for (int s = 0; s < p_.stages; ++s) {
      Stage& stage = stages_[s];
      stage.limit = chunks_in_flight(p_.schedule, p_.stages, s, p_.micro_batches, p_.chunks);
      stage.chunks.resize(p_.chunks);
      stage.weight_gradients.reserve(static_cast<std::size_t>(p_.chunks) * p_.micro_batches);
      stage.list.reserve(static_cast<std::size_t>(p_.chunks) * p_.micro_batches * 3);
      stage.left = work_of(s);
      if (stage_at_[0] == s) stage.chunks[chunk_at_[0]].forward_ready = 0;
      choices_.push_back(choose(s));
    }
  }

  double work_of(int stage) const {
    Seconds sum;
    for (int c = 0; c < p_.chunks; ++c) {
      const ChunkTime& time = p_.at(stage, c);
      sum += time.forward + time.backward + time.weight_gradient;
    }
    return (p_.micro_batches * sum).value;
  }

  int position(int stage, int chunk) const { return position_[stage * p_.chunks + chunk]; }
  std::size_t at(int position, int micro_batch) const {
    return static_cast<std::size_t>(position) * p_.micro_batches + micro_batch;
  }

  void see_forward(int here) {
    Chunk& chunk = stages_[stage_at_[here]].chunks[chunk_at_[here]];
    const int i = chunk.next_forward;
    if (i == p_.micro_batches)
      chunk.forward_ready = kNever;
    else
      chunk.forward_ready = here == 0 ? 0 : forward_end_[at(here - 1, i)] + p_.send[here - 1].value;
  }
  void see_backward(int here) {
    Chunk& chunk = stages_[stage_at_[here]].chunks[chunk_at_[here]];
    const int i = chunk.next_backward;
    chunk.backward_ready = kNever;
    if (i < p_.micro_batches) chunk.backward_ready = forward_end_[at(here, i)];
    if (i < p_.micro_batches && here < positions_ - 1)
      chunk.backward_ready =
          std::max(chunk.backward_ready, backward_end_[at(here + 1, i)] + p_.send[here].value);
  }

  // What a stage would do next changes only when it, or what it waits for, has been done.
  void choose_after(int s, const Task& task) {
    const int here = position(s, task.chunk);
    int other = s;
    if (task.kind == TaskKind::forward) {
      see_forward(here);
      see_backward(here);
      if (here + 1 < positions_) {
        see_forward(here + 1);
        other = stage_at_[here + 1];
      }
    } else if (task.kind == TaskKind::backward) {
      see_backward(here);
      if (here > 0) {
        see_backward(here - 1);
        other = stage_at_[here - 1];
      }
    }
    if (other != s) choices_[other] = choose(other);
    choices_[s] = choose(s);
  }

  // A forward may start when its chunk fits, and, for a chunk that is not the last of its stage,
  // when the later chunks of the same micro-batch will fit too: otherwise the stages lock up.
  bool first_forward_fits(const Stage& stage) const {
    return stage.live + stage.promised + p_.chunks <= std::max(stage.limit, p_.chunks);
  }

  Choice choose(int s) const {
    const Stage& stage = stages_[s];
    Choice soonest;  // of B and F, by begin, B and deep chunks first on a tie
    for (const TaskKind kind : order_) {
      const bool back = kind == TaskKind::backward;
      for (int c = p_.chunks - 1; c >= 0; --c) {
        const Chunk& chunk = stage.chunks[c];
        const double ready = back ? chunk.backward_ready : chunk.forward_ready;
        const double begin = std::max(stage.free, ready);
        if (!(begin < soonest.begin)) continue;
        if (!back && c == 0 && !first_forward_fits(stage)) continue;
        soonest = {{kind, c, back ? chunk.next_backward : chunk.next_forward}, begin};
      }
    }
    if (stage.next_weight_gradient < stage.weight_gradients.size()) {
      const Task& task = stage.weight_gradients[stage.next_weight_gradient];
      const double length = p_.at(s, task.chunk).weight_gradient.value;
      if (soonest.begin >= stage.free + patience_ * length) return {task, stage.free};
    }
    return soonest;
  }

  void execute(int s, const Choice& choice) {
    Stage& stage = stages_[s];
    const Task& task = choice.task;
    const int here = position(s, task.chunk);
    const ChunkTime& time = p_.at(s, task.chunk);
    stage.list.push_back(task);
    stage.begin = std::min(stage.begin, choice.begin);
    double length = 0;
    switch (task.kind) {
      case TaskKind::forward:
        length = time.forward.value;
        forward_end_[at(here, task.micro_batch)] = choice.begin + length;
        ++stage.chunks[task.chunk].next_forward;
        stage.promised += task.chunk == 0 ? p_.chunks - 1 : -1;
        ++stage.live;
        break;
      case TaskKind::backward:
        length = time.backward.value;
        backward_end_[at(here, task.micro_batch)] = choice.begin + length;
        ++stage.chunks[task.chunk].next_backward;
        stage.weight_gradients.push_back({TaskKind::weight_gradient, task.chunk, task.micro_batch});
        break;
      case TaskKind::weight_gradient:
        length = time.weight_gradient.value;
        ++stage.next_weight_gradient;
        --stage.live;
        break;
    }
    stage.free = choice.begin + length;
    stage.left -= length;
  }

  const Pipeline& p_;
  double patience_ = 0;
  std::array<TaskKind, 2> order_{};  // which of two tasks that could start together goes first
  int positions_;
  std::vector<int> position_;         // [stage * chunks + chunk]
  std::vector<int> stage_at_;         // by position
  std::vector<int> chunk_at_;         // the same
  std::vector<double> forward_end_;   // [position * micro-batches + micro-batch]
  std::vector<double> backward_end_;  // the same
  std::vector<Stage> stages_;
  std::vector<Choice> choices_;  // by stage
};

}  // namespace

std::vector<std::vector<Task>> gap_filling_lists(const Pipeline& pipeline) {
  std::vector<std::vector<Task>> best;
  double shortest = kNever;
  GreedyOrder order(pipeline);
  for (const Policy& policy : kPolicies) {
    const double length = order.run(policy, shortest);
    if (length >= shortest) continue;
    shortest = length;
    best = order.lists();
    if (shortest <= (1 + kRounding) * order.most_work()) return best;
  }
  PLAIT_CHECK(!best.empty());
  return best;
}

}  // namespace plait
