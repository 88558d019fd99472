#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "cost/pipeline/schedule.h"

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
    const double too_long = (1 - kRounding) * shortest;
    const int total = positions_ * p_.micro_batches * 3;
    for (int done = 0; done < total; ++done) {
      const int best = winners_[1];
      if (begins_[best] == kNever) return kNever;
      const Task task = execute(best);
      const Stage& stage = stages_[best];
      if (stage.free - stage.begin + stage.left >= too_long) return kNever;
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
    double patience = 0;  // of its weight gradient
  };
  struct Stage {
    double begin = kNever;
    double free = 0;
    double left = 0;                     // of its work
    int live = 0;                        // chunks whose activations are held
    int limit = 0;                       // most of them
    int promised = 0;                    // forwards that live micro-batches have still to run here
    std::vector<Task> weight_gradients;  // in order of their backward passes ..
    std::size_t next_weight_gradient = 0;  // .. those before it are done
    std::vector<Task> list;
  };
  // Of the next task of a chunk.
  struct Choice {
    TaskKind kind = TaskKind::forward;
    int chunk = 0;
  };

  void begin(const Policy& policy) {
    forward_first_ = policy.forward_first;
    const std::size_t tasks = static_cast<std::size_t>(positions_) * p_.micro_batches;
    forward_end_.assign(tasks, kNever);
    backward_end_.assign(tasks, kNever);
    stages_.resize(p_.stages);
    chunks_.assign(positions_, {});
    choices_.assign(p_.stages, {});
    leaves_ = static_cast<int>(std::bit_ceil(static_cast<unsigned>(p_.stages)));
    begins_.assign(leaves_, kNever);
    winners_.resize(2 * static_cast<std::size_t>(leaves_));
    for (int i = 0; i < leaves_; ++i) winners_[leaves_ + i] = i;
    for (int i = leaves_ - 1; i >= 1; --i) winners_[i] = winners_[2 * i];
    for (int i = 0; i < positions_; ++i)
      chunks_[i].patience = policy.patience * p_.time[i].weight_gradient.value;
    chunks_[stage_at_[0] * p_.chunks + chunk_at_[0]].forward_ready = 0;
    for (int s = 0; s < p_.stages; ++s) {
      Stage& stage = stages_[s];
      stage.begin = kNever;
      stage.free = 0;
      stage.left = work_of(s);
      stage.live = 0;
      stage.limit = std::max(
          p_.chunks, chunks_in_flight(p_.schedule, p_.stages, s, p_.micro_batches, p_.chunks));
      stage.promised = 0;
      stage.weight_gradients.clear();
      stage.weight_gradients.reserve(static_cast<std::size_t>(p_.chunks) * p_.micro_batches);
      stage.next_weight_gradient = 0;
      stage.list.clear();
      stage.list.reserve(static_cast<std::size_t>(p_.chunks) * p_.micro_batches * 3);
      choose(s);
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
    Chunk& chunk = chunks_[stage_at_[here] * p_.chunks + chunk_at_[here]];
    const int i = chunk.next_forward;
    if (i == p_.micro_batches)
      chunk.forward_ready = kNever;
    else
      chunk.forward_ready = here == 0 ? 0 : forward_end_[at(here - 1, i)] + p_.send[here - 1].value;
  }
  void see_backward(int here) {
    Chunk& chunk = chunks_[stage_at_[here] * p_.chunks + chunk_at_[here]];
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
    if (other != s) choose(other);
    choose(s);
  }

  // A forward may start when its chunk fits, and, for a chunk that is not the last of its stage,
  // when the later chunks of the same micro-batch will fit too: otherwise the stages lock up.
  bool first_forward_fits(const Stage& stage) const {
    return stage.live + stage.promised + p_.chunks <= stage.limit;
  }

  // The soonest of B and F; on a tie the one that goes first, and deep chunks. W if it is long
  // enough before.
  void choose(int s) {
    const Stage& stage = stages_[s];
    Choice choice;
    double soonest = kNever;
    if (forward_first_) {
      choose_forward(s, choice, soonest);
      choose_backward(s, choice, soonest);
    } else {
      choose_backward(s, choice, soonest);
      choose_forward(s, choice, soonest);
    }
    if (stage.next_weight_gradient < stage.weight_gradients.size()) {
      const int c = stage.weight_gradients[stage.next_weight_gradient].chunk;
      if (soonest >= stage.free + chunks_[s * p_.chunks + c].patience) {
        choice = {TaskKind::weight_gradient, c};
        soonest = stage.free;
      }
    }
    choices_[s] = choice;
    begins_[s] = soonest;
    for (int i = (leaves_ + s) / 2; i >= 1; i /= 2) {
      const int left = winners_[2 * i];
      const int right = winners_[2 * i + 1];
      winners_[i] = begins_[right] < begins_[left] ? right : left;
    }
  }

  void choose_forward(int s, Choice& choice, double& soonest) const {
    const Stage& stage = stages_[s];
    for (int c = p_.chunks - 1; c >= 0; --c) {
      const double begin = std::max(stage.free, chunks_[s * p_.chunks + c].forward_ready);
      if (!(begin < soonest) || (c == 0 && !first_forward_fits(stage))) continue;
      choice = {TaskKind::forward, c};
      soonest = begin;
    }
  }
  void choose_backward(int s, Choice& choice, double& soonest) const {
    for (int c = p_.chunks - 1; c >= 0; --c) {
      const double begin = std::max(stages_[s].free, chunks_[s * p_.chunks + c].backward_ready);
      if (!(begin < soonest)) continue;
      choice = {TaskKind::backward, c};
      soonest = begin;
    }
  }

  // Runs what the stage has chosen.
  Task execute(int s) {
    Stage& stage = stages_[s];
    Task task{choices_[s].kind, choices_[s].chunk, 0};
    const double begin = begins_[s];
    Chunk& chunk = chunks_[s * p_.chunks + task.chunk];
    const int here = position(s, task.chunk);
    const ChunkTime& time = p_.at(s, task.chunk);
    double length = 0;
    switch (task.kind) {
      case TaskKind::forward:
        task.micro_batch = chunk.next_forward++;
        length = time.forward.value;
        forward_end_[at(here, task.micro_batch)] = begin + length;
        stage.promised += task.chunk == 0 ? p_.chunks - 1 : -1;
        ++stage.live;
        break;
      case TaskKind::backward:
        task.micro_batch = chunk.next_backward++;
        length = time.backward.value;
        backward_end_[at(here, task.micro_batch)] = begin + length;
        stage.weight_gradients.push_back({TaskKind::weight_gradient, task.chunk, task.micro_batch});
        break;
      case TaskKind::weight_gradient:
        task = stage.weight_gradients[stage.next_weight_gradient++];
        length = time.weight_gradient.value;
        --stage.live;
        break;
    }
    stage.list.push_back(task);
    stage.begin = std::min(stage.begin, begin);
    stage.free = begin + length;
    stage.left -= length;
    return task;
  }

  const Pipeline& p_;
  bool forward_first_ = false;  // of two tasks that could start together
  int positions_;
  std::vector<int> position_;         // [stage * chunks + chunk]
  std::vector<int> stage_at_;         // by position
  std::vector<int> chunk_at_;         // the same
  std::vector<double> forward_end_;   // [position * micro-batches + micro-batch]
  std::vector<double> backward_end_;  // the same
  std::vector<Stage> stages_;
  std::vector<Chunk> chunks_;    // [stage * chunks + chunk]
  std::vector<Choice> choices_;  // by stage
  std::vector<double> begins_;   // of the choices; infinite when there is nothing to do
  // A knock-out among the stages: [i] is the one of [2 i] and [2 i + 1] that begins first, of equal
  // ones the first stage; the stages themselves follow from leaves_ on.
  std::vector<int> winners_;
  int leaves_ = 1;
};

}  // namespace

std::vector<std::vector<Task>> gap_filling_lists(const Pipeline& pipeline, Seconds limit) {
  std::vector<std::vector<Task>> best;
  double shortest = limit.value;
  GreedyOrder order(pipeline);
  for (const Policy& policy : kPolicies) {
    const double length = order.run(policy, shortest);
    if (length >= shortest) continue;
    shortest = length;
    best = order.lists();
    if (shortest <= (1 + kRounding) * order.most_work()) return best;
  }
  PLAIT_CHECK(!best.empty() || std::isfinite(limit.value));
  return best;
}

}  // namespace plait
