#include "runtime/torch/train/gradient_sums.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/version.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "base/error.h"
#include "runtime/torch/comm/kernels.h"

namespace plait::runtime {
namespace {

// Tensors up to this size are summed many at a time: a kernel for each takes longer to start than
// to run.
constexpr std::int64_t kSmall = std::int64_t{1} << 16;

// A group has this many buckets if they have this many values: with few of them, or only one, most
// of the sum is left to do when the last layer is done.
constexpr std::int64_t kBuckets = 16;
constexpr std::int64_t kLeastValues = std::int64_t{1} << 16;

void copy_each(const std::vector<at::Tensor>& to, const std::vector<at::Tensor>& from) {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 2)
  at::_foreach_copy_(to, from);
#else
  for (std::size_t i = 0; i < to.size(); ++i) to[i].copy_(from[i]);
#endif
}

}  // namespace

GradientSums::GradientSums(std::vector<at::Tensor> tensors,
                           const std::vector<std::int64_t>& flat_of, std::int64_t size,
                           std::vector<Group> groups, std::int64_t bucket, bool early)
    : early_(early),
      tensors_(std::move(tensors)),
      empty_(tensors_.size(), true),
      uses_(tensors_.size()),
      left_(tensors_.size()),
      groups_(std::move(groups)),
      states_(groups_.size()),
      buckets_of_(tensors_.size()) {
  if (tensors_.empty()) return;
  flat_ = at::zeros(
      {size},
      tensors_[0].options().dtype(wide_type(tensors_[0].scalar_type())).requires_grad(false));
  for (std::size_t t = 0; t < tensors_.size(); ++t)
    sums_.push_back(flat_.narrow(0, flat_of[t], tensors_[t].numel()).view(tensors_[t].sizes()));
  for (std::size_t g = 0; g < groups_.size(); ++g)
    if (groups_[g].ranks->size() > 1) make_buckets(g, bucket);
}

GradientSums::~GradientSums() = default;

void GradientSums::make_buckets(std::size_t group, std::int64_t most) {
  const std::vector<Part>& parts = groups_[group].parts;
  const std::int64_t values =
      early_ ? std::min(most, std::max(kLeastValues, groups_[group].size / kBuckets)) : most;
  std::vector<Bucket>& buckets = states_[group].buckets;
  for (std::size_t p = parts.size(); p-- > 0;) {
    if (buckets.empty() || buckets.back().range.size() >= values)
      buckets.push_back({.range = parts[p].range, .first_part = p, .end_part = p + 1});
    buckets.back().range.begin = parts[p].range.begin;
    buckets.back().first_part = p;
  }
  for (Bucket& bucket : buckets) {
    std::set<int> inside;
    for (std::size_t p = bucket.first_part; p < bucket.end_part; ++p)
      for (const Segment& segment : parts[p].places) inside.insert(segment.tensor);
    bucket.tensors = static_cast<int>(inside.size());
    for (const int tensor : inside) buckets_of_[tensor].push_back(&bucket);
  }
}

void GradientSums::begin_step() {
  empty_.assign(empty_.size(), true);
  left_ = uses_;
  for (State& state : states_) {
    state.begun = 0;
    for (Bucket& bucket : state.buckets) bucket.waiting = bucket.tensors;
  }
}

void GradientSums::add_all() {
  std::vector<int> all(tensors_.size());
  std::iota(all.begin(), all.end(), 0);
  add(all);
}

// Autograd gives each gradient as a tensor of its own: it is read once, into the sum.
void GradientSums::add(const std::vector<int>& tensors) {
  c10::NoGradGuard no_gradients;
  std::vector<int> small;
  for (const int t : tensors) {
    at::Tensor& gradient = tensors_[t].mutable_grad();
    if (!gradient.defined()) continue;
    if (gradient.numel() <= kSmall) {
      small.push_back(t);
      continue;
    }
    if (empty_[t])
      sums_[t].copy_(gradient);
    else
      sums_[t].add_(gradient);
    empty_[t] = false;
    gradient.reset();
  }
  if (!small.empty()) add_small(small);
}

void GradientSums::add_small(const std::vector<int>& tensors) {
  std::vector<at::Tensor> first, first_gradients, more, more_gradients;
  std::int64_t values = 0;
  for (const int t : tensors) {
    at::Tensor& gradient = tensors_[t].mutable_grad();
    (empty_[t] ? first : more).push_back(sums_[t]);
    if (!empty_[t]) values += gradient.numel();
    (empty_[t] ? first_gradients : more_gradients).push_back(std::exchange(gradient, {}));
    empty_[t] = false;
  }
  if (!first.empty()) copy_each(first, first_gradients);
  if (more.empty()) return;
  if (more_gradients[0].scalar_type() != flat_.scalar_type()) {
    at::Tensor wide = at::empty({values}, flat_.options());
    std::vector<at::Tensor> wide_gradients;
    std::int64_t offset = 0;
    for (const at::Tensor& gradient : more_gradients) {
      wide_gradients.push_back(wide.narrow(0, offset, gradient.numel()).view(gradient.sizes()));
      offset += gradient.numel();
    }
    copy_each(wide_gradients, more_gradients);
    more_gradients = std::move(wide_gradients);
  }
  at::_foreach_add_(more, more_gradients);
}

void GradientSums::finish(const std::vector<int>& tensors) {
  std::vector<int> complete;
  for (const int t : tensors) {
    PLAIT_CHECK(left_[t] > 0);
    if (--left_[t] == 0) complete.push_back(t);
  }
  add(complete);
  for (const int t : complete) {
    if (empty_[t]) sums_[t].zero_();
    for (Bucket* bucket : buckets_of_[t]) --bucket->waiting;
  }
  if (early_) begin_ready();
}

// Values of a group as this rank has them, ready to be summed over its ranks.
at::Tensor GradientSums::gathered(std::size_t group, Interval range, std::size_t first_part,
                                  std::size_t end_part) {
  c10::NoGradGuard no_gradients;
  const Group& of = groups_[group];
  State& state = states_[group];
  if (!state.gradient.defined())
    state.gradient =
        of.flat >= 0 ? flat_.narrow(0, of.flat, of.size) : at::empty({of.size}, flat_.options());
  for (std::size_t p = first_part; p < end_part; ++p) {
    const Part& part = of.parts[p];
    at::Tensor whole = state.gradient.narrow(0, part.range.begin, part.range.size());
    for (std::size_t i = 0; i < part.places.size(); ++i) {
      const Segment& place = part.places[i];
      at::Tensor own = flat_.narrow(0, place.flat, place.count);
      if (place.weight != 1) own.mul_(place.weight);
      if (of.flat >= 0) continue;
      if (i == 0)
        whole.copy_(own);
      else
        whole.add_(own);
    }
  }
  return state.gradient.narrow(0, range.begin, range.size());
}

void GradientSums::begin_ready() {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    State& state = states_[g];
    for (; state.begun < state.buckets.size(); ++state.begun) {
      const Bucket& bucket = state.buckets[state.begun];
      if (bucket.waiting > 0) break;
      state.pending.push_back(groups_[g].ranks->begin_sum(
          gathered(g, bucket.range, bucket.first_part, bucket.end_part)));
    }
  }
}

const at::Tensor& GradientSums::of_group(std::size_t group) {
  State& state = states_[group];
  if (groups_[group].ranks->size() == 1 && !state.gradient.defined())
    gathered(group, {0, groups_[group].size}, 0, groups_[group].parts.size());
  begin_ready();
  PLAIT_CHECK(state.begun == state.buckets.size());
  for (const auto& sum : state.pending) sum->wait();
  state.pending.clear();
  return state.gradient;
}

void GradientSums::wait() {
  for (std::size_t g = 0; g < groups_.size(); ++g) of_group(g);
}

void GradientSums::release(std::size_t group) { states_[group].gradient.reset(); }

}  // namespace plait::runtime
