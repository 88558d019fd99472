#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace plait {

// How long everything takes in a pipeline, in seconds.
struct PipelineTimes {
  std::vector<double> forward;   // [stage * chunks + chunk], of a micro-batch
  std::vector<double> backward;  // the same
  std::vector<double> finish;    // [stage], after its last backward pass
};

// A path through the tasks of a step. No step is shorter than any of its paths, and what a path
// takes is a sum over chunks: so a path that is long for one way to divide the layers among the
// stages bounds all other ways as well.
struct StepPath {
  std::vector<std::uint16_t> forward;   // how often it passes a chunk, [stage * chunks + chunk]
  std::vector<std::uint16_t> backward;  // the same
  double hand_overs = 0;                // what it spends between stages, seconds
  int last = 0;                         // stage with whose finish it ends

  double length(const PipelineTimes& times) const;
  friend bool operator==(const StepPath&, const StepPath&) = default;
};

// The tasks of a step under 1F1B, GPipe or an interleaved schedule, whose order does not depend on
// how long they take: the same graph for all times. It is that of simulate() (cost/pipeline), but
// for steps of more than a million tasks.
class StepGraph {
 public:
  struct Shape {
    Schedule schedule = Schedule::one_f_one_b;
    int stages = 1;
    int chunks = 1;
    int micro_batches = 1;
    // Of the hand-over behind each position but the last: until it is there, and how long the link
    // is taken (Pipeline::send, send_busy).
    std::vector<double> send{};
    std::vector<double> busy{};
  };
  explicit StepGraph(Shape shape);

  const Shape& shape() const { return shape_; }
  // The same tasks with other hand-overs.
  void hand_over(std::vector<double> send, std::vector<double> busy);
  std::size_t task_count() const { return tasks_.size(); }
  // The longest path: what the step takes, before what follows all stages.
  StepPath longest(const PipelineTimes& times);

 private:
  struct Task {
    int slot = 0;  // stage * chunks + chunk
    bool is_backward = false;
    int before = -1;  // the task before it on its stage
    int input = -1;   // the task whose result it waits for
    int link = -1;    // that carries its own result
    int cut = -1;     // position that the link's cut follows
  };
  struct Moment {
    double end = 0;
    double there = 0;     // its result, at the stage that waits for it
    int sent_after = -1;  // the task whose hand-over kept the link busy
    bool waited = false;  // for its input
  };
  StepPath path_to(int task) const;

  Shape shape_;
  std::vector<Task> tasks_;  // in an order in which each comes after those it waits for
  std::vector<int> last_;    // task of each stage
  std::vector<Moment> moments_;
  std::vector<double> link_free_;
  std::vector<int> link_last_;
};

}  // namespace plait
