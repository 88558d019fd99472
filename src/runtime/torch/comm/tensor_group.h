#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

namespace plait::runtime {

enum class Reduction { sum, maximum };

// A sum that is under way.
class PendingSum {
 public:
  virtual ~PendingSum() = default;
  virtual void wait() = 0;
};

// The devices that share the matrices of a layer, as one of them sees them.
class TensorGroup {
 public:
  virtual ~TensorGroup() = default;
  virtual int size() const = 0;
  virtual int rank() const = 0;
  virtual void all_reduce(at::Tensor& tensor, Reduction reduction) = 0;
  // Does not wait: nobody may touch the tensor, which is contiguous, before wait() is done. All
  // members begin their sums in the same order.
  virtual std::unique_ptr<PendingSum> begin_sum(const at::Tensor& tensor) = 0;
  // The parts of all members, in their order, along `dim`.
  virtual at::Tensor all_gather(const at::Tensor& part, int dim) = 0;
  // This member's part, along `dim`, of the sum.
  virtual at::Tensor reduce_scatter(const at::Tensor& whole, int dim) = 0;
};

// One member whose group is not there: results have the right shapes and wrong values. For
// measuring one shard on one device; with size 1 it is also right.
class AbsentGroup : public TensorGroup {
 public:
  explicit AbsentGroup(int size = 1, int rank = 0) : size_(size), rank_(rank) {}
  int size() const override { return size_; }
  int rank() const override { return rank_; }
  void all_reduce(at::Tensor&, Reduction) override {}
  std::unique_ptr<PendingSum> begin_sum(const at::Tensor& tensor) override;
  at::Tensor all_gather(const at::Tensor& part, int dim) override;
  at::Tensor reduce_scatter(const at::Tensor& whole, int dim) override;

 private:
  int size_;
  int rank_;
};

// The collectives as differentiable functions. A region is what is computed on parts: matrices cut
// by column, then by row. With `positions` its outside is cut by position (sequence parallelism,
// dimension 1 of [samples, positions, features]), else every device has all of it.

// Into a region: the identity or a gathering; backward a sum or a sum cut by position.
at::Tensor enter_region(const at::Tensor& x, TensorGroup& group, bool positions);
// Out of it: the other way round.
at::Tensor leave_region(const at::Tensor& x, TensorGroup& group, bool positions);
// Features that were cut, whole on every device; backward each takes its own.
at::Tensor gather_features(const at::Tensor& x, TensorGroup& group, int dim);
// Of what every device has, its part; backward all parts.
at::Tensor take_part(const at::Tensor& x, TensorGroup& group, int dim);
// Parts, whole on every device, each of which computes something else of it; backward each takes
// its part of the sum.
at::Tensor gather_to_share(const at::Tensor& x, TensorGroup& group, int dim);
// Of the sum over all devices, this one's part; backward all parts.
at::Tensor sum_and_cut(const at::Tensor& x, TensorGroup& group, int dim);

// Cross-entropy of each position, in the wide type, over classes that are cut: this device has
// those from `begin` on. Backward overwrites what forward kept, so it may run once.
at::Tensor cut_cross_entropy(const at::Tensor& logits, const at::Tensor& labels, std::int64_t begin,
                             TensorGroup& group);

}  // namespace plait::runtime
