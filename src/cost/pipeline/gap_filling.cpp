#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
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
//
// Searches spend much of their time here: a task costs a few dozen instructions, and nothing is
// allocated between the runs of one pipeline.
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

// When each stage could begin its next task, and which stage is the first.
class Begins {
 public:
  explicit Begins(int stages)
      : begins_((stages + kBlock - 1) / kBlock * kBlock, kNever), first_(begins_.size() / kBlock) {}

  void set(int stage, double begin) {
    begins_[stage] = begin;
    const int block = stage / kBlock;
    const double* b = &begins_[block * kBlock];
    first_[block] = std::min(std::min(std::min(b[0], b[1]), std::min(b[2], b[3])),
                             std::min(std::min(b[4], b[5]), std::min(b[6], b[7])));
  }

  double at(int stage) const { return begins_[stage]; }

  // Of equal ones the first stage.
  int first() const {
    std::size_t block = 0;
    for (std::size_t i = 1; i < first_.size(); ++i)
      if (first_[i] < first_[block]) block = i;
    const double* b = &begins_[block * kBlock];
    int at = kBlock - 1;
    for (int i = kBlock - 2; i >= 0; --i) at = b[i] <= first_[block] ? i : at;
    return static_cast<int>(block) * kBlock + at;
  }

 private:
  static constexpr int kBlock = 8;
  std::vector<double> begins_;
  std::vector<double> first_;  // of each block
};

template <int kChunks>
class GreedyOrder {
 public:
  explicit GreedyOrder(const Pipeline& p)
      : p_(p),
        positions_(p.stages * kChunks),
        stages_(p.stages),
        chunks_(positions_),
        forward_end_(static_cast<std::size_t>(positions_) * p.micro_batches),
        backward_end_(forward_end_.size()),
        weight_gradients_(forward_end_.size()),
        list_(3 * forward_end_.size()),
        begins_(p.stages) {
    for (int s = 0; s < p.stages; ++s) {
      Stage& stage = stages_[s];
      stage.limit =
          std::max(kChunks, chunks_in_flight(p.schedule, p.stages, s, p.micro_batches, kChunks));
      Seconds work;
      for (int c = 0; c < kChunks; ++c) {
        const ChunkTime& time = p.at(s, c);
        work += time.forward + time.backward + time.weight_gradient;
        const int here = chunk_position(p.schedule, p.stages, s, c);
        stage.at[c] = here;
        Chunk& chunk = chunks_[here];
        chunk.stage = s;
        chunk.number = static_cast<std::uint8_t>(c);
        chunk.forward = time.forward.value;
        chunk.backward = time.backward.value;
        chunk.weight_gradient = time.weight_gradient.value;
        chunk.send = here + 1 < positions_ ? p.send[here].value : 0;
      }
      stage.work = (p.micro_batches * work).value;
      most_work_ = std::max(most_work_, stage.work);
    }
  }

  // Runs to the end; the longest time from a stage's first task to its last, or infinity when the
  // limits lock the stages up or it is not below `shortest`.
  double run(const Policy& policy, double shortest) {
    begin(policy);
    const double too_long = (1 - kRounding) * shortest;
    const int total = positions_ * p_.micro_batches * 3;
    for (int done = 0; done < total; ++done) {
      const int first = begins_.first();
      if (begins_.at(first) == kNever) return kNever;
      Stage& stage = stages_[first];
      const int other = execute(stage, begins_.at(first));
      if (stage.free - stage.begin + stage.left >= too_long) return kNever;
      if (other >= 0 && other != first) choose(other);
      choose(first);
    }
    double longest = 0;
    for (const Stage& stage : stages_) longest = std::max(longest, stage.free - stage.begin);
    return longest;
  }

  // Of a stage: no order is shorter.
  double most_work() const { return most_work_; }

  // Keeps the order of the last run.
  void keep() { best_.swap(list_); }
  bool has_kept() const { return !best_.empty(); }

  std::vector<std::vector<Task>> kept() const {
    std::vector<std::vector<Task>> out(p_.stages);
    const std::size_t size = 3 * static_cast<std::size_t>(kChunks) * p_.micro_batches;
    for (int s = 0; s < p_.stages; ++s) {
      std::array<int, 3 * kChunks> next{};  // micro-batch, by what is done
      out[s].reserve(size);
      for (std::size_t i = s * size; i < (s + 1) * size; ++i)
        out[s].push_back(
            {static_cast<TaskKind>(best_[i] / kChunks), best_[i] % kChunks, next[best_[i]]++});
    }
    return out;
  }

 private:
  struct Chunk {
    double forward_ready = kNever;  // when the input of the next one is there, if it is known
    double backward_ready = kNever;
    double patience = 0;  // of its weight gradient
    double forward = 0;
    double backward = 0;
    double weight_gradient = 0;
    double send = 0;  // to the next position
    int next_forward = 0;
    int next_backward = 0;
    int stage = 0;
    std::uint8_t number = 0;  // in the stage
  };
  // What a stage does next: the kind times kChunks, and the chunk.
  using Choice = std::uint8_t;
  static Choice choice(TaskKind kind, int chunk) {
    return static_cast<Choice>(static_cast<int>(kind) * kChunks + chunk);
  }
  struct Stage {
    double begin = kNever;
    double free = 0;
    double left = 0;  // of its work
    double work = 0;
    std::array<int, kChunks> at{};  // positions of its chunks
    int live = 0;                   // chunks whose activations are held
    int limit = 0;                  // most of them
    int promised = 0;               // forwards that live micro-batches have still to run here
    // Chunks whose weight gradients are waiting, in order of their backward passes.
    std::uint8_t* waiting = nullptr;
    std::uint8_t* waiting_end = nullptr;
    Choice* end = nullptr;  // of its list
    Choice next = 0;
  };

  void begin(const Policy& policy) {
    forward_first_ = policy.forward_first;
    list_.resize(3 * forward_end_.size());
    std::ranges::fill(forward_end_, kNever);
    std::ranges::fill(backward_end_, kNever);
    for (Chunk& chunk : chunks_) {
      chunk.forward_ready = chunk.backward_ready = kNever;
      chunk.patience = policy.patience * chunk.weight_gradient;
      chunk.next_forward = chunk.next_backward = 0;
    }
    chunks_.front().forward_ready = 0;
    const std::size_t tasks = static_cast<std::size_t>(kChunks) * p_.micro_batches;
    for (int s = 0; s < p_.stages; ++s) {
      Stage& stage = stages_[s];
      stage.begin = kNever;
      stage.free = 0;
      stage.left = stage.work;
      stage.live = 0;
      stage.promised = 0;
      stage.waiting = stage.waiting_end = &weight_gradients_[s * tasks];
      stage.end = &list_[3 * s * tasks];
      choose(s);
    }
  }

  std::size_t at(int position, int micro_batch) const {
    return static_cast<std::size_t>(position) * p_.micro_batches + micro_batch;
  }

  // Whether that is news.
  bool see_forward(int here) {
    Chunk& chunk = chunks_[here];
    const int i = chunk.next_forward;
    double ready = kNever;
    if (i < p_.micro_batches)
      ready = here == 0 ? 0 : forward_end_[at(here - 1, i)] + chunks_[here - 1].send;
    return std::exchange(chunk.forward_ready, ready) != ready;
  }
  bool see_backward(int here) {
    Chunk& chunk = chunks_[here];
    const int i = chunk.next_backward;
    double ready = kNever;
    if (i < p_.micro_batches) {
      ready = forward_end_[at(here, i)];
      if (here + 1 < positions_)
        ready = std::max(ready, backward_end_[at(here + 1, i)] + chunk.send);
    }
    return std::exchange(chunk.backward_ready, ready) != ready;
  }

  // A forward may start when its chunk fits, and, for a chunk that is not the last of its stage,
  // when the later chunks of the same micro-batch will fit too: otherwise the stages lock up.
  static bool first_forward_fits(const Stage& stage) {
    return stage.live + stage.promised + kChunks <= stage.limit;
  }

  // The soonest of B and F; on a tie the one that goes first, and deep chunks. W if it is long
  // enough before. It changes only when the stage, or what it waits for, has been done.
  void choose(int s) {
    Stage& stage = stages_[s];
    stage.next = 0;
    double soonest = kNever;
    if (forward_first_) {
      choose_forward(stage, soonest);
      choose_backward(stage, soonest);
    } else {
      choose_backward(stage, soonest);
      choose_forward(stage, soonest);
    }
    if (stage.waiting < stage.waiting_end &&
        soonest >= stage.free + chunks_[stage.at[*stage.waiting]].patience) {
      stage.next = choice(TaskKind::weight_gradient, *stage.waiting);
      soonest = stage.free;
    }
    begins_.set(s, soonest);
  }

  static void take_sooner(double begin, Choice what, Stage& stage, double& soonest) {
    stage.next = begin < soonest ? what : stage.next;
    soonest = begin < soonest ? begin : soonest;
  }
  void choose_forward(Stage& stage, double& soonest) const {
    for (int c = kChunks - 1; c >= 0; --c) {
      double begin = std::max(stage.free, chunks_[stage.at[c]].forward_ready);
      if (c == 0) begin = first_forward_fits(stage) ? begin : kNever;
      take_sooner(begin, choice(TaskKind::forward, c), stage, soonest);
    }
  }
  void choose_backward(Stage& stage, double& soonest) const {
    for (int c = kChunks - 1; c >= 0; --c)
      take_sooner(std::max(stage.free, chunks_[stage.at[c]].backward_ready),
                  choice(TaskKind::backward, c), stage, soonest);
  }

  // Runs what the stage has chosen; the stage for which that is news, or -1.
  int execute(Stage& stage, double begin) {
    const int c = stage.next % kChunks;
    const int here = stage.at[c];
    Chunk& chunk = chunks_[here];
    *stage.end++ = stage.next;
    int other = -1;
    double length = 0;
    switch (static_cast<TaskKind>(stage.next / kChunks)) {
      case TaskKind::forward:
        length = chunk.forward;
        forward_end_[at(here, chunk.next_forward++)] = begin + length;
        stage.promised += c == 0 ? kChunks - 1 : -1;
        ++stage.live;
        see_forward(here);
        see_backward(here);
        if (here + 1 < positions_ && see_forward(here + 1)) other = chunks_[here + 1].stage;
        break;
      case TaskKind::backward:
        length = chunk.backward;
        backward_end_[at(here, chunk.next_backward++)] = begin + length;
        *stage.waiting_end++ = chunk.number;
        see_backward(here);
        if (here > 0 && see_backward(here - 1)) other = chunks_[here - 1].stage;
        break;
      case TaskKind::weight_gradient:
        length = chunk.weight_gradient;
        ++stage.waiting;
        --stage.live;
        break;
    }
    stage.begin = std::min(stage.begin, begin);
    stage.free = begin + length;
    stage.left -= length;
    return other;
  }

  const Pipeline& p_;
  bool forward_first_ = false;  // of two tasks that could start together
  int positions_;
  double most_work_ = 0;
  std::vector<Stage> stages_;
  std::vector<Chunk> chunks_;                   // by position
  std::vector<double> forward_end_;             // [position * micro-batches + micro-batch]
  std::vector<double> backward_end_;            // the same
  std::vector<std::uint8_t> weight_gradients_;  // room for those of each stage
  std::vector<Choice> list_;                    // of each stage, one after the other
  std::vector<Choice> best_;
  Begins begins_;
};

template <int kChunks>
std::vector<std::vector<Task>> shortest_lists(const Pipeline& pipeline, Seconds limit) {
  double shortest = limit.value;
  GreedyOrder<kChunks> order(pipeline);
  for (const Policy& policy : kPolicies) {
    const double length = order.run(policy, shortest);
    if (length >= shortest) continue;
    shortest = length;
    order.keep();
    if (shortest <= (1 + kRounding) * order.most_work()) break;
  }
  PLAIT_CHECK(order.has_kept() || std::isfinite(limit.value));
  return order.has_kept() ? order.kept() : std::vector<std::vector<Task>>{};
}

}  // namespace

std::vector<std::vector<Task>> gap_filling_lists(const Pipeline& pipeline, Seconds limit) {
  PLAIT_CHECK(pipeline.chunks == 1 || pipeline.chunks == 2);
  return pipeline.chunks == 1 ? shortest_lists<1>(pipeline, limit)
                              : shortest_lists<2>(pipeline, limit);
}

}  // namespace plait
