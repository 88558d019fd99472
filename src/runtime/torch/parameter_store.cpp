#include "runtime/torch/parameter_store.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/version.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/error.h"

namespace plait::runtime {
namespace {

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

// Puts a flat atom where it belongs in the whole parameter.
void put_part(at::Tensor& whole, const at::Tensor& part, const Parameter& parameter,
              const Atom& atom) {
  if (parameter.dim < 0) {
    whole.copy_(part.view(parameter.shape));
  } else if (parameter.dim == 0) {
    at::Tensor rows = whole.narrow(0, atom.rows.begin, atom.rows.size());
    rows.copy_(part.view(rows.sizes()));
  } else {
    const ShardSpec shard{.tensor = atom.tensor, .rank = atom.t};
    const at::Tensor local = part.view(local_shape(parameter, shard));
    std::int64_t offset = 0;
    for (const Interval& range : shard_of(parameter.parts, atom.tensor, atom.t)) {
      whole.narrow(parameter.dim, range.begin, range.size())
          .copy_(local.narrow(parameter.dim, offset, range.size()));
      offset += range.size();
    }
  }
}

}  // namespace

ParameterStore::ParameterStore(ParameterLayout layout, const Settings& settings,
                               Communicator& ranks)
    : layout_(std::move(layout)), settings_(settings), ranks_(ranks) {
  place_tensors();
  make_groups();
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
  sums_ = at::zeros({size}, options.dtype(at::kFloat));
  for (std::size_t i = 0; i < order.size(); ++i) {
    const LocalTensor& local = layout_.mine[i];
    const auto view = [&](const at::Tensor& flat) {
      return flat.narrow(0, flat_of_[i], local.size()).view(local.shape);
    };
    at::Tensor tensor = view(values_).detach().set_requires_grad(true);
    tensors_[{local.parameter.name, local.tensor}] = tensor;
    summed_.push_back({tensor, view(sums_)});
    for (const LocalTensor::Segment& segment : local.segments)
      segments_[{segment.group, segment.group_offset}].push_back(
          {.flat = flat_of_[i] + segment.offset, .count = segment.count, .weight = local.weight});
  }
}

void ParameterStore::make_groups() {
  const at::TensorOptions options = at::TensorOptions(ranks_.device()).dtype(at::kFloat);
  for (int g = 0; g < static_cast<int>(layout_.groups.size()); ++g) {
    const ParameterGroup& group = layout_.groups[g];
    if (std::find(group.ranks.begin(), group.ranks.end(), ranks_.rank()) == group.ranks.end())
      continue;
    Group made{.number = g, .ranks = &ranks_.group(group.ranks), .size = group.size};
    made.in_place = true;
    made.flat = segments(g, 0)[0].flat;
    for (const Atom& atom : group.atoms) {
      const std::vector<Segment>& places = segments(g, atom.offset);
      if (places.size() != 1 || places[0].flat != made.flat + atom.offset) made.in_place = false;
    }
    made.counted = equal_part(made.size, made.ranks->size(), made.ranks->rank());
    made.mine = settings_.spread ? made.counted : Interval{0, made.size};
    const std::int64_t size = made.mine.size();
    if (!made.in_place || settings_.dtype != at::kFloat) made.master = at::zeros({size}, options);
    if (uses(Kept::first_moment)) made.first = at::zeros({size}, options);
    if (uses(Kept::second_moment)) made.second = at::zeros({size}, options);
    groups_.push_back(std::move(made));
  }
}

bool ParameterStore::uses(Kept kept) const {
  if (kept == Kept::first_moment) return settings_.optimizer != Optimizer::sgd;
  if (kept == Kept::second_moment) return settings_.optimizer == Optimizer::adam;
  return true;
}

const std::vector<ParameterStore::Segment>& ParameterStore::segments(int group,
                                                                     std::int64_t offset) const {
  const auto found = segments_.find({group, offset});
  PLAIT_CHECK(found != segments_.end());
  return found->second;
}

ParameterSource ParameterStore::source(int tensor) {
  return [this, tensor](const Parameter& parameter) {
    const auto found = tensors_.find({parameter.name, tensor});
    PLAIT_CHECK(found != tensors_.end());
    return found->second;
  };
}

void ParameterStore::begin_step() { sums_are_empty_ = true; }

// Autograd gives each gradient as a tensor of its own: it is read once, into the sum.
void ParameterStore::after_backward() {
  c10::NoGradGuard no_gradients;
  for (auto& [tensor, sum] : summed_) {
    at::Tensor& gradient = tensor.mutable_grad();
    if (!gradient.defined()) {
      if (sums_are_empty_) sum.zero_();
    } else if (sums_are_empty_) {
      sum.copy_(gradient);
    } else {
      sum.add_(gradient);
    }
    gradient.reset();
  }
  sums_are_empty_ = false;
}

at::Tensor ParameterStore::gathered_gradient(Group& group) {
  for (const Atom& atom : layout_.groups[group.number].atoms)
    for (const Segment& segment : segments(group.number, atom.offset))
      if (segment.weight != 1) sums_.narrow(0, segment.flat, segment.count).mul_(segment.weight);
  if (group.in_place) return sums_.narrow(0, group.flat, group.size);
  at::Tensor gradient = at::zeros({group.size}, sums_.options());
  for (const Atom& atom : layout_.groups[group.number].atoms)
    for (const Segment& segment : segments(group.number, atom.offset))
      gradient.narrow(0, atom.offset, atom.count)
          .add_(sums_.narrow(0, segment.flat, segment.count));
  return gradient;
}

at::Tensor ParameterStore::update(std::int64_t step) {
  c10::NoGradGuard no_gradients;
  at::Tensor squares = at::zeros({1}, at::TensorOptions(ranks_.device()).dtype(at::kDouble));
  for (Group& group : groups_) {
    group.gradient = gathered_gradient(group);
    if (group.ranks->size() > 1) group.ranks->all_reduce(group.gradient, Reduction::sum);
    if (settings_.options.clip <= 0) continue;
    for (std::int64_t begin = group.counted.begin; begin < group.counted.end; begin += kChunk) {
      const at::Tensor part =
          group.gradient.narrow(0, begin, std::min(kChunk, group.counted.end - begin));
      squares.add_(at::linalg_vector_norm(part, 2, {}, false, at::kFloat).to(at::kDouble).square());
    }
  }
  at::Tensor scale;
  if (settings_.options.clip > 0) {
    if (ranks_.world() > 1) ranks_.everyone().all_reduce(squares, Reduction::sum);
    scale = at::clamp_max(settings_.options.clip / (squares.sqrt() + 1e-6), 1.0).to(at::kFloat);
  }
  if (ranks_.device().is_cuda())
    steps_done_ = at::full({}, static_cast<double>(step + 1), values_.options().dtype(at::kFloat));
  for (Group& group : groups_) {
    step_group(group, scale, step);
    if (settings_.spread && group.ranks->size() > 1) spread_values(group);
    group.gradient.reset();
  }
  return squares;
}

void ParameterStore::step_group(Group& group, const at::Tensor& scale, std::int64_t step) {
  const at::Tensor own = group.in_place ? values_.narrow(0, group.flat, group.size) : at::Tensor();
  for (std::int64_t begin = group.mine.begin; begin < group.mine.end; begin += kChunk) {
    const std::int64_t count = std::min(kChunk, group.mine.end - begin);
    const std::int64_t local = begin - group.mine.begin;
    const auto part = [&](const at::Tensor& tensor) {
      return tensor.defined() ? tensor.narrow(0, local, count) : tensor;
    };
    at::Tensor gradient = group.gradient.narrow(0, begin, count);
    if (scale.defined()) gradient.mul_(scale);
    const bool direct = !group.master.defined();
    const at::Tensor value = direct ? own.narrow(0, begin, count) : part(group.master);
    step_chunk(value, gradient, part(group.first), part(group.second), step);
    if (!direct && group.in_place) own.narrow(0, begin, count).copy_(value);
  }
  if (group.in_place || (settings_.spread && group.ranks->size() > 1)) return;
  for (const Atom& atom : layout_.groups[group.number].atoms)
    for (const Segment& segment : segments(group.number, atom.offset))
      values_.narrow(0, segment.flat, segment.count)
          .copy_(group.master.narrow(0, atom.offset, atom.count));
}

void ParameterStore::step_chunk(at::Tensor value, const at::Tensor& gradient, at::Tensor first,
                                at::Tensor second, std::int64_t step) const {
  const TrainOptions& o = settings_.options;
  if (settings_.optimizer != Optimizer::adam) {
    if (o.weight_decay > 0) value.mul_(1 - o.learning_rate * o.weight_decay);
    if (settings_.optimizer == Optimizer::momentum) first.mul_(o.momentum).add_(gradient);
    value.add_(settings_.optimizer == Optimizer::momentum ? first : gradient, -o.learning_rate);
    return;
  }
#if TORCH_VERSION_MAJOR >= 2
  if (value.is_cuda()) {
    at::_fused_adamw_({value}, {gradient}, {first}, {second}, {}, {steps_done_}, o.learning_rate,
                      o.beta1, o.beta2, o.weight_decay, o.epsilon, /*amsgrad=*/false,
                      /*maximize=*/false);
    return;
  }
#endif
  const double t = static_cast<double>(step + 1);
  const double correction1 = 1 - std::pow(o.beta1, t);
  const double correction2 = std::sqrt(1 - std::pow(o.beta2, t));
  if (o.weight_decay > 0) value.mul_(1 - o.learning_rate * o.weight_decay);
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
  for (const Atom& atom : layout_.groups[group.number].atoms)
    for (const Segment& segment : segments(group.number, atom.offset))
      if (!group.in_place)
        values_.narrow(0, segment.flat, segment.count)
            .copy_(all.narrow(0, atom.offset, atom.count));
  if (group.in_place) values_.narrow(0, group.flat, group.size).copy_(all.narrow(0, 0, group.size));
}

void ParameterStore::restore(const WholeParameter& source) {
  c10::NoGradGuard no_gradients;
  std::map<std::string, std::vector<std::pair<Group*, const Atom*>>> atoms;
  for (Group& group : groups_)
    for (const Atom& atom : layout_.groups[group.number].atoms)
      atoms[atom.name].push_back({&group, &atom});
  std::string last;
  for (const LocalTensor& local : layout_.mine) {
    const Parameter& parameter = local.parameter;
    if (std::exchange(last, parameter.name) == parameter.name) continue;
    for (const Kept kept : {Kept::value, Kept::first_moment, Kept::second_moment}) {
      if (!uses(kept)) continue;
      const at::Tensor whole = source(parameter, kept);
      if (!whole.defined()) continue;
      for (const auto& [group, atom] : atoms[parameter.name]) {
        const at::Tensor part =
            parameter.dim == 0
                ? whole.narrow(0, atom->rows.begin, atom->rows.size())
                : local_part(whole, parameter, {.tensor = atom->tensor, .rank = atom->t});
        set_atom(*group, *atom, kept, part.reshape({-1}));
      }
    }
  }
}

void ParameterStore::set_atom(Group& group, const Atom& atom, Kept kept, const at::Tensor& values) {
  if (kept == Kept::value)
    for (const Segment& segment : segments(group.number, atom.offset))
      values_.narrow(0, segment.flat, segment.count).copy_(values);
  const at::Tensor kept_tensor = kept == Kept::value          ? group.master
                                 : kept == Kept::first_moment ? group.first
                                                              : group.second;
  if (!kept_tensor.defined()) return;
  const Interval both = overlap(group.mine, {atom.offset, atom.offset + atom.count});
  if (both.size() <= 0) return;
  kept_tensor.narrow(0, both.begin - group.mine.begin, both.size())
      .copy_(values.narrow(0, both.begin - atom.offset, both.size()));
}

// All ranks of a group take the same way here, whether or not its values lie in one piece.
at::Tensor ParameterStore::whole_group(const Group& group, Kept kept) const {
  if (kept == Kept::value && settings_.dtype == at::kFloat) {
    at::Tensor values = at::empty({group.size}, values_.options());
    for (const Atom& atom : layout_.groups[group.number].atoms)
      values.narrow(0, atom.offset, atom.count)
          .copy_(values_.narrow(0, segments(group.number, atom.offset)[0].flat, atom.count));
    return values;
  }
  const at::Tensor own = kept == Kept::value          ? group.master
                         : kept == Kept::first_moment ? group.first
                                                      : group.second;
  if (!settings_.spread || group.ranks->size() == 1) return own;
  const std::int64_t each = (group.size + group.ranks->size() - 1) / group.ranks->size();
  at::Tensor part = at::zeros({each}, own.options());
  part.narrow(0, 0, own.size(0)).copy_(own);
  return group.ranks->all_gather(part, 0);
}

void ParameterStore::collect(const std::vector<Kept>& kept, const Sink& sink) {
  c10::NoGradGuard no_gradients;
  constexpr int kTag = 1 << 20;
  for (const Kept what : kept) {
    if (!uses(what)) continue;
    std::map<int, at::Tensor> groups;
    for (const Group& group : groups_) groups[group.number] = whole_group(group, what);
    // Every rank walks over all atoms, by name; the first rank of an atom's group has it.
    std::map<std::string, std::vector<std::pair<int, const Atom*>>> atoms;
    for (int g = 0; g < static_cast<int>(layout_.groups.size()); ++g)
      for (const Atom& atom : layout_.groups[g].atoms) atoms[atom.name].push_back({g, &atom});
    for (const auto& [name, places] : atoms) {
      const Parameter& parameter = layout_.all.at(name);
      at::Tensor whole;
      if (ranks_.rank() == 0) whole = at::zeros(parameter.shape, at::kFloat);
      for (const auto& [g, atom] : places) {
        const int owner = layout_.groups[g].ranks[0];
        at::Tensor part;
        if (owner == ranks_.rank())
          part = groups.at(g).narrow(0, atom->offset, atom->count).to(at::kFloat).contiguous();
        if (owner != 0 && owner == ranks_.rank()) ranks_.send(part, 0, 0, kTag);
        if (ranks_.rank() != 0) continue;
        if (owner != 0) {
          part = at::empty({atom->count}, values_.options().dtype(at::kFloat));
          ranks_.receive(part, owner, 0, kTag);
        }
        put_part(whole, part.to(at::kCPU), parameter, *atom);
      }
      ranks_.finish_sends();
      if (ranks_.rank() == 0) sink(parameter, what, whole);
    }
  }
}

}  // namespace plait::runtime
