#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <utility>

#include "base/error.h"
#include "cost/framework/framework.h"
#include "runtime/torch/comm/kernels.h"
#include "runtime/torch/measure/measure_meter.h"
#include "runtime/torch/train/gradient_sums.h"
#include "runtime/torch/train/unit_module.h"

namespace plait::runtime {
namespace {

constexpr double kCaches = 128e6;  // bytes; copies of a unit are as many as exceed it
constexpr int kMostCopies = 4;
// Passes that follow each other, as those of a step's layers do: what forward keeps has left the
// caches when backward wants it, and the engine of gradients is woken once for all of them, where
// launching is measured. As many as keep this much for backward.
constexpr int kInARow = 6;
constexpr int kTimedInARow = 4;  // more would fill the queue of the device
constexpr double kKept = 4e9;    // bytes
constexpr int kRows = 7;

std::int64_t bytes_of(const Bundle& bundle) {
  std::set<const void*> seen;
  std::int64_t bytes = 0;
  for (const auto& [name, tensor] : bundle)
    if (tensor.defined() && seen.insert(tensor.storage().unsafeGetStorageImpl()).second)
      bytes += static_cast<std::int64_t>(tensor.storage().nbytes());
  return bytes;
}

std::set<const void*> storages_of(const Bundle& bundle) {
  std::set<const void*> out;
  for (const auto& [name, tensor] : bundle)
    if (tensor.defined()) out.insert(tensor.storage().unsafeGetStorageImpl());
  return out;
}

// A result's memory, whether or not the result itself is still there.
struct MadeStorage {
  explicit MadeStorage(const at::Tensor& tensor)
      : bytes(static_cast<std::int64_t>(tensor.storage().nbytes())),
        storage(tensor.storage().getWeakStorageImpl()) {}
  bool is_kept() const { return !storage.expired(); }

  std::int64_t bytes = 0;
  c10::weak_intrusive_ptr<c10::StorageImpl> storage;
};

Bundle leaves(const Bundle& bundle) {
  Bundle out;
  for (const auto& [name, tensor] : bundle) {
    out[name] = tensor.detach().clone();
    if (at::isFloatingType(tensor.scalar_type())) out[name].requires_grad_(true);
  }
  return out;
}

std::vector<at::Tensor> results(const Bundle& bundle) {
  std::vector<at::Tensor> out;
  for (const auto& [name, tensor] : bundle)
    if (tensor.requires_grad()) out.push_back(tensor);
  return out;
}

// What backward of `tensors` starts from: noise, as activations have it, since products of equal
// numbers take less power and run at a higher clock; of losses, one value a sample, the sum's
// gradient.
std::vector<at::Tensor> gradients_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> out;
  for (const at::Tensor& tensor : tensors)
    out.push_back(tensor.dim() < 2 ? at::ones_like(tensor) : at::randn_like(tensor));
  return out;
}

// The gradients of a unit's parameters, summed over micro-batches as training does it.
std::unique_ptr<GradientSums> sums_of(const UnitModule& unit) {
  std::vector<at::Tensor> tensors;
  std::vector<std::int64_t> places;
  std::int64_t size = 0;
  for (const LocalParameter& parameter : unit.parameters()) {
    if (!parameter.parameter.owned) continue;
    tensors.push_back(parameter.value);
    places.push_back(std::exchange(size, size + parameter.value.numel()));
  }
  auto sums = std::make_unique<GradientSums>(std::move(tensors), places, size,
                                             std::vector<GradientSums::Group>{}, size,
                                             /*early=*/false);
  sums->begin_step();
  return sums;
}

// How many passes follow each other, at most.
int passes_in_a_row(const Measurement& measured, int most) {
  const double kept = measured.saved ? measured.saved->value : 0;
  return static_cast<int>(std::clamp<double>(kKept / std::max(kept, 1.0), 1, most));
}

}  // namespace

const ExecProgram& TorchMeter::program_of(const Model& model) {
  std::unique_ptr<ExecProgram>& program = lowered_[&model];
  if (program == nullptr) {
    Lowered lowered = lower(model);
    if (!lowered.fault.empty())
      throw InputError(model.name, "cannot be run: " + lowered.fault +
                                       "; `what` ops measures its ops without running its layers");
    program = std::make_unique<ExecProgram>(std::move(lowered.program));
  }
  return *program;
}

// The states that mixed precision keeps, and one step of Adam on them; momentum is one pass less.
std::optional<Timing> TorchMeter::optimizer_step(const std::vector<at::Tensor>& parameters) {
  std::int64_t size = 0;
  for (const at::Tensor& parameter : parameters) size += parameter.numel();
  if (size == 0) return std::nullopt;
  const Precision precision = options_.job.precision;
  const bool master = dtype_ != at::kFloat && precision != Precision::pure_bf16;
  const at::ScalarType kept = master ? at::kFloat : dtype_;
  // Several sets of states in turn, so that they come from memory as in training.
  const auto sets =
      static_cast<std::int64_t>(std::ceil(kCaches / (16.0 * static_cast<double>(size))));
  const at::Tensor weights = noise({sets, size}, dtype_);
  const at::Tensor gradients = noise({sets, size}, kept);
  const at::Tensor values = master ? weights.to(kept) : weights;
  const at::Tensor means = at::zeros_like(values);
  const at::Tensor squares = at::ones_like(values);
  const Optimizer optimizer = options_.job.optimizer;
  std::int64_t turn = 0;
  // As a step does it: the norm of the summed gradients is taken, and they are clipped.
  const auto step = [&] {
    turn = (turn + 1) % sets;
    const at::Tensor weight = weights[turn], gradient = gradients[turn], value = values[turn],
                     first = means[turn], second = squares[turn];
    const at::Tensor norm = at::linalg_vector_norm(gradient);
    if (optimizer == Optimizer::adam) {
#if PLAIT_FUSED_ADAM
      const at::Tensor number = at::ones({}, value.options().dtype(at::kFloat));
      at::_fused_adamw_({value}, {gradient}, {first}, {second}, {}, {number}, 1e-4, 0.9, 0.95, 0.1,
                        1e-8,
                        /*amsgrad=*/false, /*maximize=*/false, norm.to(at::kFloat).clamp_min(1.0));
      if (master) weight.copy_(value);
      return;
#endif
      first.mul_(0.9).add_(gradient, 0.1);
      second.mul_(0.95).addcmul_(gradient, gradient, 0.05);
      value.addcdiv_(first, second.sqrt().add_(1e-8), -1e-4);
    } else if (optimizer == Optimizer::momentum) {
      first.mul_(0.9).add_(gradient);
      value.add_(first, -1e-4);
    } else {
      value.add_(gradient, -1e-4);
    }
    if (master) weight.copy_(value);
  };
  const Repeats times = repeat(device_, repetition_,
                               {.marks = 2,
                                .once =
                                    [&](Stopwatch& watch) {
                                      watch.mark();
                                      step();
                                      watch.mark();
                                    },
                                .hold = [&](double seconds) { hold(seconds); }});
  return timing_of(times.device[0]);
}

// Once without looking, so that gradients are there, as in every step but the first. Gives what
// both passes take, the host's launching included.
Seconds TorchMeter::measure_memory(UnitModule& unit, const Bundle& pattern, const Batch& batch,
                                   MemoryWatch& memory, Measurement& into) {
  const auto in_bytes = [](std::int64_t size) {
    return Bytes(static_cast<double>(std::max<std::int64_t>(0, size)));
  };
  const auto backward = [&] {
    Bundle in = leaves(pattern);
    memory.forget_peak();
    const std::vector<at::Tensor> out = results(unit.forward(std::move(in), batch));
    if (!out.empty()) torch::autograd::backward(out, gradients_of(out));
    synchronise(device_);
  };
  backward();
  const std::int64_t before = memory.now();
  std::int64_t saved = 0;
  std::int64_t handed_on = 0;
  std::int64_t passed_on = 0;  // of what is saved
  {
    Bundle in = leaves(pattern);
    into.input = in_bytes(bytes_of(in));
    const std::set<const void*> given = storages_of(in);
    std::vector<at::Tensor> out = results(unit.forward(std::move(in), batch));
    std::vector<MadeStorage> made;
    for (const at::Tensor& tensor : out)
      if (!given.contains(tensor.storage().unsafeGetStorageImpl())) made.emplace_back(tensor);
    // What the graph keeps when nobody else holds the results.
    std::vector<std::decay_t<decltype(at::Tensor().grad_fn())>> graph;
    for (const at::Tensor& tensor : out) graph.push_back(tensor.grad_fn());
    const std::int64_t all = memory.now();
    out.clear();
    saved = memory.now() - before;
    handed_on = all - memory.now();
    // What it keeps of the results, as relu does, the next unit keeps as its input.
    for (const MadeStorage& storage : made)
      if (storage.is_kept()) passed_on += storage.bytes;
  }
  const auto begin = std::chrono::steady_clock::now();
  backward();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  into.saved = in_bytes(saved - passed_on);
  into.workspace = in_bytes(memory.peak() - before - saved - handed_on);
  return Seconds(took.count());
}

// Several passes forward, then as many backward, the last first.
void TorchMeter::measure_passes(const std::vector<std::unique_ptr<UnitModule>>& copies,
                                const Bundle& pattern, const Batch& batch, int count,
                                Measurement& into) {
  std::vector<Bundle> inputs;
  for (int i = 0; i < count; ++i) inputs.push_back(leaves(pattern));
  std::vector<std::unique_ptr<GradientSums>> sums;
  for (const auto& copy : copies) {
    sums.push_back(sums_of(*copy));
    sums.back()->add_all();  // those that counting memory has left
  }
  const int several = static_cast<int>(copies.size());
  std::vector<std::vector<at::Tensor>> out(count);
  std::vector<at::Tensor> gradients;
  int turn = 0;  // the copy that comes first
  const auto once = [&](Stopwatch& watch) {
    for (Bundle& input : inputs)
      for (auto& [name, tensor] : input) tensor.mutable_grad() = at::Tensor();
    watch.mark();
    for (int i = 0; i < count; ++i)
      out[i] = results(copies[(turn + i) % several]->forward(inputs[i], batch));
    watch.mark();
    if (gradients.empty()) gradients = gradients_of(out[0]);
    // Training sums gradients up when those of other layers have been made.
    for (int i = count - 1; i >= 0; --i) {
      if (i + several < count) sums[(turn + i) % several]->add_all();
      if (!out[i].empty()) torch::autograd::backward(out[i], gradients);
      out[i].clear();
    }
    for (const auto& sum : sums) sum->add_all();
    watch.mark();
    turn = (turn + count) % several;
  };
  // The unit before has just written the input.
  const auto hold_and_touch = [&](double seconds) {
    const c10::NoGradGuard no_gradients;
    hold(seconds);
    for (auto& [name, tensor] : inputs[0]) tensor.mul_(1);
  };
  Repetition repetition = repetition_;
  repetition.settle = options_.settle.value_or(Seconds(device_.is_cpu() ? 0 : 1));
  Repeats times = repeat(device_, repetition, {.marks = 3, .once = once, .hold = hold_and_touch});
  for (std::vector<double>& part : times.device) {
    for (double& time : part) time /= count;
    add_flags(part, into.flags);
  }
  into.forward = timing_of(times.device[0]);
  into.backward = timing_of(times.device[1]);
}

void TorchMeter::measure_launch(const std::vector<std::unique_ptr<UnitModule>>& copies,
                                const Bundle& pattern, const Batch& batch, Measurement& into) {
  const int count = passes_in_a_row(into, kInARow);
  std::vector<double> forward, backward;
  for (int row = 0; row < kRows; ++row) {
    std::vector<Bundle> inputs;
    for (int i = 0; i < count; ++i) inputs.push_back(leaves(pattern));
    std::vector<at::Tensor> out;
    synchronise(device_);
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i)
      for (at::Tensor& tensor : results(copies[i % copies.size()]->forward(inputs[i], batch)))
        out.push_back(std::move(tensor));
    const auto middle = std::chrono::steady_clock::now();
    const std::vector<at::Tensor> gradients = gradients_of(out);
    const auto launched = std::chrono::steady_clock::now();
    if (!out.empty()) torch::autograd::backward(out, gradients);
    const auto end = std::chrono::steady_clock::now();
    forward.push_back(std::chrono::duration<double>(middle - begin).count() / count);
    backward.push_back(std::chrono::duration<double>(end - launched).count() / count);
  }
  synchronise(device_);
  into.forward_launch = timing_of(forward);
  into.backward_launch = timing_of(backward);
}

void TorchMeter::measure_unit(const UnitPlace& place, Measurement& into) {
  const ExecProgram& program = program_of(*place.model);
  const ShardSpec shard{.tensor = place.tensor};
  AbsentGroup group(place.tensor);
  const at::TensorOptions options = at::TensorOptions().dtype(dtype_).device(device_);
  const bool plain = options_.job.attention == AttentionKernel::plain;
  const UnitModule::Range range{program.begin[place.unit], program.begin[place.unit + 1]};
  std::vector<std::unique_ptr<UnitModule>> copies;
  std::vector<at::Tensor> parameters;
  double bytes = 0;
  const Batch batch = noise_batch(program, place.micro_batch, options, 1);
  empty_pool(device_);
  MemoryWatch memory;
  do {
    copies.push_back(std::make_unique<UnitModule>(program, range, shard, group,
                                                  noise_parameters(shard, options), plain));
    for (const LocalParameter& parameter : copies.back()->parameters())
      bytes += static_cast<double>(parameter.value.nbytes());
    if (copies.size() == 1)
      for (const LocalParameter& parameter : copies.back()->parameters())
        if (parameter.parameter.owned) parameters.push_back(parameter.value);
  } while (!device_.is_cpu() && bytes > 0 && bytes < kCaches &&
           static_cast<int>(copies.size()) < kMostCopies);
  const Bundle pattern = copies[0]->sample_input(place.micro_batch, options);

  const Seconds pass = measure_memory(*copies[0], pattern, batch, memory, into);
  // The meter's own buffer is in the pool too.
  const std::int64_t own = flush_.defined() ? static_cast<std::int64_t>(flush_.nbytes()) : 0;
  if (memory.reserved() > own) into.reserved = Bytes(static_cast<double>(memory.reserved() - own));

  const double in_time = repetition_.longest / std::max(pass, Seconds(1e-9));
  const int most = passes_in_a_row(into, kTimedInARow);
  measure_passes(copies, pattern, batch, static_cast<int>(std::clamp<double>(in_time, 1, most)),
                 into);
  if (!device_.is_cpu()) measure_launch(copies, pattern, batch, into);
  copies.clear();
  into.optimizer = optimizer_step(parameters);
}

Measurement TorchMeter::unit(const UnitPlace& place) {
  return guarded([&](Measurement& into) { measure_unit(place, into); });
}

}  // namespace plait::runtime
