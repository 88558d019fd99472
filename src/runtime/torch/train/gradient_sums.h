#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/lower/exec_op.h"
#include "runtime/torch/comm/tensor_group.h"

namespace plait::runtime {

// The gradients of a rank's tensors, summed in the wide type over micro-batches and then over the
// ranks that hold the same values. The second sum begins while backward passes still run: as soon
// as all tensors of a bucket have their last gradient. Buckets of a group follow each other in a
// fixed order, from the last value to the first, so that all its ranks agree on it.
class GradientSums {
 public:
  // Values in one piece of memory here: part of tensor `tensor`.
  struct Segment {
    std::int64_t flat = 0;
    std::int64_t count = 0;
    double weight = 1;  // of the gradient in the sum
    int tensor = 0;
  };
  // Values [range) of a group, with all places that they have on this rank.
  struct Part {
    Interval range;
    std::vector<Segment> places;
  };
  // Parts are in ascending order. `flat` = where the group's values follow each other; -1 = they do
  // not.
  struct Group {
    TensorGroup* ranks = nullptr;
    std::int64_t size = 0;
    std::int64_t flat = -1;
    std::vector<Part> parts;
  };

  // Tensor t's gradient is summed at flat_of[t] of a piece of memory of `size` values. A bucket is
  // full with a sixteenth of its group or `bucket` values, whichever is less. Not `early`: sums
  // over ranks begin when they are asked for, in full buckets.
  GradientSums(std::vector<at::Tensor> tensors, const std::vector<std::int64_t>& flat_of,
               std::int64_t size, std::vector<Group> groups, std::int64_t bucket, bool early);
  ~GradientSums();

  // One more pass of a micro-batch gives this tensor a gradient; before the first step.
  void expect(int tensor) { ++uses_[tensor]; }

  void begin_step();
  // Adds what autograd has left in the tensors.
  void add_all();
  // A pass over the last micro-batch is done in which these tensors took part.
  void finish(const std::vector<int>& tensors);
  // Waits for the sums over ranks.
  void wait();
  // The sum over ranks. Valid until release().
  const at::Tensor& of_group(std::size_t group);
  void release(std::size_t group);

 private:
  struct Bucket {
    Interval range;
    std::size_t first_part = 0, end_part = 0;
    int tensors = 0;  // that have values in it
    int waiting = 0;  // of those, the ones whose gradients are not complete
  };
  struct State {
    std::vector<Bucket> buckets;
    std::size_t begun = 0;  // buckets
    std::vector<std::unique_ptr<PendingSum>> pending;
    at::Tensor gradient;
  };

  void make_buckets(std::size_t group, std::int64_t most);
  void add(const std::vector<int>& tensors);
  void add_small(const std::vector<int>& tensors);
  at::Tensor gathered(std::size_t group, Interval range, std::size_t first_part,
                      std::size_t end_part);
  void begin_ready();

  bool early_;
  std::vector<at::Tensor> tensors_;
  at::Tensor flat_;
  std::vector<at::Tensor> sums_;  // views of flat_, by tensor
  std::vector<bool> empty_;       // nothing was added in this step
  std::vector<int> uses_, left_;  // by tensor: passes of a micro-batch, and those still to come
  std::vector<Group> groups_;
  std::vector<State> states_;
  std::vector<std::vector<Bucket*>> buckets_of_;  // by tensor
};

}  // namespace plait::runtime
