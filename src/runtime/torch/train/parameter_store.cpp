#include "runtime/torch/train/parameter_store.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/error.h"
#include "runtime/torch/comm/kernels.h"

namespace plait::runtime {
namespace {

constexpr bool kFusedAdam = PLAIT_FUSED_ADAM;

// Values that are updated at once, so that what is computed on the way stays small.
constexpr std::int64_t kChunk = std::int64_t{1} << 26;

// Part `rank` of `count` values in `size` parts as equal as whole numbers allow.
Interval equal_part(std::int64_t count, int size, int rank) {
  const std::int64_t each = (count + size - 1) / size;
  return {std::min(count, rank * each), std::min(count, (rank + 1) * each)};
}

Interval overlap(const Interval& a, const Interval& b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

// Puts a flat range where it belongs in the whole parameter.
void put_part(at::Tensor& whole, const at::Tensor& part, const Parameter& parameter,
              const SharedRange& range) {
  if (parameter.dim < 0) {
    whole.copy_(part.view(parameter.shape));
  } else if (parameter.dim == 0) {
    at::Tensor rows = whole.narrow(0, range.rows.begin, range.rows.size());
    rows.copy_(part.view(rows.sizes()));
  } else {
    const ShardSpec shard{.tensor = range.tensor, .rank = range.t};
    const at::Tensor local = part.view(local_shape(parameter, shard));
    std::int64_t offset = 0;
    for (const Interval& cut : shard_of(parameter.parts, range.tensor, range.t)) {
      whole.narrow(parameter.dim, cut.begin, cut.size())
          .copy_(local.narrow(parameter.dim, offset, cut.size()));
      offset += cut.size();
    }
  }
}

}  // namespace

ParameterStore::ParameterStore(ParameterLayout layout, const Settings& settings,
                               Communicator& ranks)
    : layout_(std::move(layout)), settings_(settings), ranks_(ranks) {
  place_tensors();
  make_groups();
  make_sums();
}

// Tensors whose values are all of one group come first, by group: then a group's values are one
// piece of memory.
void ParameterStore::place_tensors() {
  std::vector<int> order(layout_.mine.size());
  std::iota(order.begin(), order.end(), 0);
  const auto group_of = [&](int i) {
    const LocalTensor& tensor = layout_.mine[i];
    int group = tensor.segments.empty() ? 0 : tensor.segments[0].group;
    for (const LocalTensor::Segment& segment : tensor.segments)
      if (segment.group != group) return static_cast<int>(layout_.groups.size());
    return group;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return group_of(a) < group_of(b); });
  flat_of_.resize(order.size());
  std::int64_t size = 0;
  for (const int i : order) {
    flat_of_[i] = size;
    size += layout_.mine[i].size();
  }
  const at::TensorOptions options = at::TensorOptions(ranks_.device()).dtype(settings_.dtype);
  values_ = at::zeros({size}, options);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const LocalTensor& local = layout_.mine[i];
    numbers_[{local.parameter.name, local.tensor}] = static_cast<int>(i);
    tensors_.push_back(values_.narrow(0, flat_of_[i], local.size())
                           .view(local.shape)
                           .detach()
                           .set_requires_grad(true));
    for (const LocalTensor::Segment& segment : local.segments)
      segments_[{segment.group, segment.group_offset}].push_back(
          {.flat = flat_of_[i] + segment.offset,
           .count = segment.count,
           .weight = local.weight,
           .tensor = static_cast<int>(i)});
  }
}

void ParameterStore::make_groups() {
  const at::TensorOptions options = at::TensorOptions(ranks_.device()).dtype(wide());
  for (int g = 0; g < static_cast<int>(layout_.groups.size()); ++g) {
    const ParameterGroup& group = layout_.groups[g];
    if (std::find(group.ranks.begin(), group.ranks.end(), ranks_.rank()) == group.ranks.end())
      continue;
    Group made{.number = g, .ranks = &ranks_.background_group(group.ranks), .size = group.size};
    made.in_place = true;
    made.flat = segments(g, 0)[0].flat;
    for (const SharedRange& range : group.ranges) {
      const std::vector<Segment>& places = segments(g, range.offset);
      if (places.size() != 1 || places[0].flat != made.flat + range.offset) made.in_place = false;
    }
    made.counted = equal_part(made.size, made.ranks->size(), made.ranks->rank());
    made.mine = settings_.spread ? made.counted : Interval{0, made.size};
    const std::int64_t size = made.mine.size();
    if (!made.in_place || settings_.dtype != wide()) made.master = at::zeros({size}, options);
    if (uses(StateKind::first_moment)) made.first = at::zeros({size}, options);
    if (uses(StateKind::second_moment)) made.second = at::zeros({size}, options);
    groups_.push_back(std::move(made));
  }
}

void ParameterStore::make_sums() {
  std::vector<GradientSums::Group> groups;
  for (const Group& group : groups_) {
    GradientSums::Group summed{.ranks = group.ranks, .size = group.size};
    if (group.in_place) summed.flat = group.flat;
    for (const SharedRange& range : layout_.groups[group.number].ranges)
      summed.parts.push_back({.range = {range.offset, range.offset + range.count},
                              .places = segments(group.number, range.offset)});
    groups.push_back(std::move(summed));
  }
  gradients_ =
      std::make_unique<GradientSums>(tensors_, flat_of_, values_.numel(), std::move(groups),
                                     settings_.options.bucket, settings_.overlap);
}

at::ScalarType ParameterStore::wide() const { return wide_type(settings_.dtype); }

bool ParameterStore::uses(StateKind kind) const {
  if (kind == StateKind::first_moment) return settings_.optimizer != Optimizer::sgd;
  if (kind == StateKind::second_moment) return settings_.optimizer == Optimizer::adam;
  return true;
}

const std::vector<ParameterStore::Segment>& ParameterStore::segments(int group,
                                                                     std::int64_t offset) const {
  const auto found = segments_.find({group, offset});
  PLAIT_CHECK(found != segments_.end());
  return found->second;
}

int ParameterStore::number(const std::string& name, int tensor) const {
  const auto found = numbers_.find({name, tensor});
  PLAIT_CHECK(found != numbers_.end());
  return found->second;
}

ParameterSource ParameterStore::source(int tensor) {
  return [this, tensor](const Parameter& parameter) {
    return tensors_[number(parameter.name, tensor)];
  };
}

at::Tensor ParameterStore::update(std::int64_t step) {
  c10::NoGradGuard no_gradients;
  const at::TensorOptions options(ranks_.device());
  at::Tensor squares = at::zeros({1}, options.dtype(at::kDouble));
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const at::Tensor& gradient = gradients_->of_group(g);
    const Interval& counted = groups_[g].counted;
    for (std::int64_t begin = counted.begin; begin < counted.end; begin += kChunk) {
      const at::Tensor part = gradient.narrow(0, begin, std::min(kChunk, counted.end - begin));
      squares.add_(at::linalg_vector_norm(part).to(at::kDouble).square());
    }
  }
  if (ranks_.world() > 1) ranks_.everyone().all_reduce(squares, Reduction::sum);
  at::Tensor excess;
  if (settings_.options.clip > 0)
    excess = squares.sqrt().add_(1e-6).div_(settings_.options.clip).clamp_min_(1.0).to(wide());
  if (kFusedAdam)
    steps_done_ = at::full({}, static_cast<double>(step + 1), options.dtype(at::kFloat));
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    step_group(groups_[g], gradients_->of_group(g), excess, step);
    if (settings_.spread && groups_[g].ranks->size() > 1) spread_values(groups_[g]);
    gradients_->release(g);
  }
  return squares;
}

void ParameterStore::step_group(Group& group, at::Tensor gradient, const at::Tensor& excess,
                                std::int64_t step) {
  const at::Tensor own = group.in_place ? values_.narrow(0, group.flat, group.size) : at::Tensor();
  for (std::int64_t begin = group.mine.begin; begin < group.mine.end; begin += kChunk) {
    const std::int64_t count = std::min(kChunk, group.mine.end - begin);
    const std::int64_t local = begin - group.mine.begin;
    const auto part = [&](const at::Tensor& tensor) {
      return tensor.defined() ? tensor.narrow(0, local, count) : tensor;
    };
    const bool direct = !group.master.defined();
    const at::Tensor value = direct ? own.narrow(0, begin, count) : part(group.master);
    step_chunk(value, gradient.narrow(0, begin, count), part(group.first), part(group.second),
               excess, step);
    if (!direct && group.in_place) own.narrow(0, begin, count).copy_(value);
  }
  if (group.in_place || (settings_.spread && group.ranks->size() > 1)) return;
  for (const SharedRange& range : layout_.groups[group.number].ranges)
    for (const Segment& segment : segments(group.number, range.offset))
      values_.narrow(0, segment.flat, segment.count)
          .copy_(group.master.narrow(0, range.offset, range.count));
}

void ParameterStore::step_chunk(at::Tensor value, at::Tensor gradient, at::Tensor first,
                                at::Tensor second, const at::Tensor& excess,
                                std::int64_t step) const {
  const TrainOptions& o = settings_.options;
#if PLAIT_FUSED_ADAM
  if (settings_.optimizer == Optimizer::adam && value.scalar_type() == at::kFloat) {
    std::optional<at::Tensor> divisor;  // of the gradient, in the same pass
    if (excess.defined()) divisor = excess;
    at::_fused_adamw_({value}, {gradient}, {first}, {second}, {}, {steps_done_}, o.learning_rate,
                      o.beta1, o.beta2, o.weight_decay, o.epsilon, /*amsgrad=*/false,
                      /*maximize=*/false, divisor);
    return;
  }
#endif
  if (excess.defined()) gradient.div_(excess);
  if (o.weight_decay > 0) value.mul_(1 - o.learning_rate * o.weight_decay);
  if (settings_.optimizer != Optimizer::adam) {
    if (settings_.optimizer == Optimizer::momentum) first.mul_(o.momentum).add_(gradient);
    value.add_(settings_.optimizer == Optimizer::momentum ? first : gradient, -o.learning_rate);
    return;
  }
  const double t = static_cast<double>(step + 1);
  const double correction1 = 1 - std::pow(o.beta1, t);
  const double correction2 = std::sqrt(1 - std::pow(o.beta2, t));
  first.mul_(o.beta1).add_(gradient, 1 - o.beta1);
  second.mul_(o.beta2).addcmul_(gradient, gradient, 1 - o.beta2);
  const at::Tensor divisor = second.sqrt().div_(correction2).add_(o.epsilon);
  value.addcdiv_(first, divisor, -o.learning_rate / correction1);
}

// Every rank of the group gives the others the part that it updated.
void ParameterStore::spread_values(Group& group) {
  const std::int64_t each = (group.size + group.ranks->size() - 1) / group.ranks->size();
  at::Tensor part = at::zeros({each}, values_.options());
  const at::Tensor mine = group.master.defined()
                              ? group.master
                              : values_.narrow(0, group.flat + group.mine.begin, group.mine.size());
  part.narrow(0, 0, group.mine.size()).copy_(mine);
  const at::Tensor all = group.ranks->all_gather(part, 0);
  for (const SharedRange& range : layout_.groups[group.number].ranges)
    for (const Segment& segment : segments(group.number, range.offset))
      if (!group.in_place)
        values_.narrow(0, segment.flat, segment.count)
            .copy_(all.narrow(0, range.offset, range.count));
  if (group.in_place) values_.narrow(0, group.flat, group.size).copy_(all.narrow(0, 0, group.size));
}

void ParameterStore::restore(const WholeParameter& source) {
  c10::NoGradGuard no_gradients;
  std::map<std::string, std::vector<std::pair<Group*, const SharedRange*>>> ranges;
  for (Group& group : groups_)
    for (const SharedRange& range : layout_.groups[group.number].ranges)
      ranges[range.name].push_back({&group, &range});
  std::string last;
  for (const LocalTensor& local : layout_.mine) {
    const Parameter& parameter = local.parameter;
    if (std::exchange(last, parameter.name) == parameter.name) continue;
    for (const StateKind kind :
         {StateKind::value, StateKind::first_moment, StateKind::second_moment}) {
      if (!uses(kind)) continue;
      const at::Tensor whole = source(parameter, kind);
      if (!whole.defined()) continue;
      for (const auto& [group, range] : ranges[parameter.name]) {
        const at::Tensor part =
            parameter.dim == 0
                ? whole.narrow(0, range->rows.begin, range->rows.size())
                : local_part(whole, parameter, {.tensor = range->tensor, .rank = range->t});
        set_range(*group, *range, kind, part.reshape({-1}));
      }
    }
  }
}

void ParameterStore::set_range(Group& group, const SharedRange& range, StateKind kind,
                               const at::Tensor& values) {
  if (kind == StateKind::value)
    for (const Segment& segment : segments(group.number, range.offset))
      values_.narrow(0, segment.flat, segment.count).copy_(values);
  const at::Tensor stored = kind == StateKind::value          ? group.master
                            : kind == StateKind::first_moment ? group.first
                                                              : group.second;
  if (!stored.defined()) return;
  const Interval both = overlap(group.mine, {range.offset, range.offset + range.count});
  if (both.size() <= 0) return;
  stored.narrow(0, both.begin - group.mine.begin, both.size())
      .copy_(values.narrow(0, both.begin - range.offset, both.size()));
}

// All ranks of a group take the same way here, whether or not its values lie in one piece.
at::Tensor ParameterStore::whole_group(const Group& group, StateKind kind) const {
  if (kind == StateKind::value && settings_.dtype == wide()) {
    at::Tensor values = at::empty({group.size}, values_.options());
    for (const SharedRange& range : layout_.groups[group.number].ranges)
      values.narrow(0, range.offset, range.count)
          .copy_(values_.narrow(0, segments(group.number, range.offset)[0].flat, range.count));
    return values;
  }
  const at::Tensor own = kind == StateKind::value          ? group.master
                         : kind == StateKind::first_moment ? group.first
                                                           : group.second;
  if (!settings_.spread || group.ranks->size() == 1) return own;
  const std::int64_t each = (group.size + group.ranks->size() - 1) / group.ranks->size();
  at::Tensor part = at::zeros({each}, own.options());
  part.narrow(0, 0, own.size(0)).copy_(own);
  return group.ranks->all_gather(part, 0);
}

void ParameterStore::collect(const std::vector<StateKind>& kinds, const Sink& sink) {
  c10::NoGradGuard no_gradients;
  constexpr int kTag = 1 << 20;
  for (const StateKind what : kinds) {
    if (!uses(what)) continue;
    std::map<int, at::Tensor> groups;
    for (const Group& group : groups_) groups[group.number] = whole_group(group, what);
    // Every rank walks over all ranges, by name; the first rank of a range's group has it.
    std::map<std::string, std::vector<std::pair<int, const SharedRange*>>> ranges;
    for (int g = 0; g < static_cast<int>(layout_.groups.size()); ++g)
      for (const SharedRange& range : layout_.groups[g].ranges)
        ranges[range.name].push_back({g, &range});
    for (const auto& [name, places] : ranges) {
      const Parameter& parameter = layout_.all.at(name);
      at::Tensor whole;
      if (ranks_.rank() == 0) whole = at::zeros(parameter.shape, wide());
      for (const auto& [g, range] : places) {
        const int owner = layout_.groups[g].ranks[0];
        at::Tensor part;
        if (owner == ranks_.rank())
          part = groups.at(g).narrow(0, range->offset, range->count).to(wide()).contiguous();
        if (owner != 0 && owner == ranks_.rank()) ranks_.send(part, 0, 0, kTag);
        if (ranks_.rank() != 0) continue;
        if (owner != 0) {
          part = at::empty({range->count}, values_.options().dtype(wide()));
          ranks_.receive(part, owner, 0, kTag);
        }
        put_part(whole, part.to(at::kCPU), parameter, *range);
      }
      ranks_.finish_sends();
      if (ranks_.rank() == 0) sink(parameter, what, whole);
    }
  }
}

}  // namespace plait::runtime
