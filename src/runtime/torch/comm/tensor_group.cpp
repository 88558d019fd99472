#include "runtime/torch/comm/tensor_group.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <limits>

#include "runtime/torch/comm/kernels.h"

namespace plait::runtime {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::Variable;
using torch::autograd::variable_list;

constexpr std::int64_t kPositions = 1;  // of [samples, positions, features]

void keep(AutogradContext* context, TensorGroup* group) {
  context->saved_data["group"] = reinterpret_cast<std::int64_t>(group);
}

TensorGroup& kept_group(AutogradContext* context) {
  return *reinterpret_cast<TensorGroup*>(context->saved_data["group"].toInt());
}

at::Tensor summed(const at::Tensor& tensor, TensorGroup& group) {
  at::Tensor sum = tensor.clone(at::MemoryFormat::Contiguous);
  group.all_reduce(sum, Reduction::sum);
  return sum;
}

struct CopyThenSum : Function<CopyThenSum> {
  static Variable forward(AutogradContext* context, const Variable& x, TensorGroup* group) {
    keep(context, group);
    return x.view_as(x);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradient) {
    return {summed(gradient[0], kept_group(context)), Variable()};
  }
};

struct SumThenCopy : Function<SumThenCopy> {
  static Variable forward(AutogradContext*, const Variable& x, TensorGroup* group) {
    return summed(x, *group);
  }
  static variable_list backward(AutogradContext*, const variable_list& gradient) {
    return {gradient[0], Variable()};
  }
};

void keep(AutogradContext* context, TensorGroup* group, std::int64_t dim) {
  keep(context, group);
  context->saved_data["dim"] = dim;
}

int kept_dim(AutogradContext* context) {
  return static_cast<int>(context->saved_data["dim"].toInt());
}

at::Tensor own_part(const at::Tensor& whole, const TensorGroup& group, int dim) {
  const std::int64_t each = whole.size(dim) / group.size();
  return whole.narrow(dim, group.rank() * each, each).contiguous();
}

struct GatherThenScatter : Function<GatherThenScatter> {
  static Variable forward(AutogradContext* context, const Variable& x, TensorGroup* group,
                          std::int64_t dim) {
    keep(context, group, dim);
    return group->all_gather(x, static_cast<int>(dim));
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradient) {
    return {kept_group(context).reduce_scatter(gradient[0], kept_dim(context)), Variable(),
            Variable()};
  }
};

struct ScatterThenGather : Function<ScatterThenGather> {
  static Variable forward(AutogradContext* context, const Variable& x, TensorGroup* group,
                          std::int64_t dim) {
    keep(context, group, dim);
    return group->reduce_scatter(x, static_cast<int>(dim));
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradient) {
    return {kept_group(context).all_gather(gradient[0], kept_dim(context)), Variable(), Variable()};
  }
};

struct GatherThenTake : Function<GatherThenTake> {
  static Variable forward(AutogradContext* context, const Variable& x, TensorGroup* group,
                          std::int64_t dim) {
    keep(context, group, dim);
    return group->all_gather(x, static_cast<int>(dim));
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradient) {
    return {own_part(gradient[0], kept_group(context), kept_dim(context)), Variable(), Variable()};
  }
};

struct TakeThenGather : Function<TakeThenGather> {
  static Variable forward(AutogradContext* context, const Variable& x, TensorGroup* group,
                          std::int64_t dim) {
    keep(context, group, dim);
    return own_part(x, *group, static_cast<int>(dim));
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradient) {
    return {kept_group(context).all_gather(gradient[0], kept_dim(context)), Variable(), Variable()};
  }
};

struct CutCrossEntropy : Function<CutCrossEntropy> {
  static Variable forward(AutogradContext* context, const Variable& logits, const Variable& labels,
                          std::int64_t begin, TensorGroup* group) {
    at::Tensor values =
        logits.to(wide_type(logits.scalar_type()), /*non_blocking=*/false, /*copy=*/true);
    at::Tensor most = values.amax(-1, /*keepdim=*/true);
    group->all_reduce(most, Reduction::maximum);
    values.sub_(most);
    const at::Tensor mine =
        labels.ge(begin).logical_and(labels.lt(begin + values.size(-1))).unsqueeze(-1);
    const at::Tensor place = labels.sub(begin).clamp(0, values.size(-1) - 1).unsqueeze(-1);
    const at::Tensor here = mine.to(values.scalar_type());
    at::Tensor target = values.gather(-1, place).mul_(here);
    group->all_reduce(target, Reduction::sum);
    values.exp_();
    at::Tensor sum = values.sum(-1, /*keepdim=*/true);
    group->all_reduce(sum, Reduction::sum);
    values.div_(sum);
    context->save_for_backward({values, place, here});
    context->saved_data["dtype"] = static_cast<std::int64_t>(logits.scalar_type());
    return sum.log().sub_(target).squeeze(-1);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradient) {
    const variable_list saved = context->get_saved_variables();
    at::Tensor softmax = saved[0].detach();
    softmax.scatter_add_(-1, saved[1], saved[2].neg());
    softmax.mul_(gradient[0].unsqueeze(-1));
    const auto dtype = static_cast<at::ScalarType>(context->saved_data["dtype"].toInt());
    return {softmax.to(dtype), Variable(), Variable(), Variable()};
  }
};

}  // namespace

std::unique_ptr<PendingSum> AbsentGroup::begin_sum(const at::Tensor&) {
  struct Done : PendingSum {
    void wait() override {}
  };
  return std::make_unique<Done>();
}

at::Tensor AbsentGroup::all_gather(const at::Tensor& part, int dim) {
  if (size_ == 1) return part;
  return at::cat(std::vector<at::Tensor>(size_, part), dim);
}

at::Tensor AbsentGroup::reduce_scatter(const at::Tensor& whole, int dim) {
  if (size_ == 1) return whole;
  const std::int64_t each = whole.size(dim) / size_;
  return whole.narrow(dim, rank_ * each, each).contiguous();
}

at::Tensor enter_region(const at::Tensor& x, TensorGroup& group, bool positions) {
  if (group.size() == 1) return x;
  return positions ? GatherThenScatter::apply(x, &group, kPositions)
                   : CopyThenSum::apply(x, &group);
}

at::Tensor leave_region(const at::Tensor& x, TensorGroup& group, bool positions) {
  if (group.size() == 1) return x;
  return positions ? ScatterThenGather::apply(x, &group, kPositions)
                   : SumThenCopy::apply(x, &group);
}

at::Tensor gather_features(const at::Tensor& x, TensorGroup& group, int dim) {
  return group.size() == 1 ? x : GatherThenTake::apply(x, &group, static_cast<std::int64_t>(dim));
}

at::Tensor take_part(const at::Tensor& x, TensorGroup& group, int dim) {
  return group.size() == 1 ? x : TakeThenGather::apply(x, &group, static_cast<std::int64_t>(dim));
}

at::Tensor gather_to_share(const at::Tensor& x, TensorGroup& group, int dim) {
  return group.size() == 1 ? x
                           : GatherThenScatter::apply(x, &group, static_cast<std::int64_t>(dim));
}

at::Tensor sum_and_cut(const at::Tensor& x, TensorGroup& group, int dim) {
  return group.size() == 1 ? x
                           : ScatterThenGather::apply(x, &group, static_cast<std::int64_t>(dim));
}

at::Tensor cut_cross_entropy(const at::Tensor& logits, const at::Tensor& labels, std::int64_t begin,
                             TensorGroup& group) {
  return CutCrossEntropy::apply(logits, labels, begin, &group);
}

}  // namespace plait::runtime
