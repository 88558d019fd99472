// Parameters of a UnitModule, and inputs made of noise for it.

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <cmath>
#include <memory>

#include "base/error.h"
#include "runtime/torch/train/unit_module.h"

namespace plait::runtime {
namespace {

// FNV-1a: the same on every machine, which std::hash need not be.
std::uint64_t hash_of(const std::string& text, std::uint64_t seed) {
  std::uint64_t hash = 0xcbf29ce484222325 ^ (seed * 0x9e3779b97f4a7c15);
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// Of the values of a new model's parameter.
double deviation(const Parameter& parameter) {
  const double fan_in = parameter.size() / static_cast<double>(parameter.shape[0]);
  return parameter.start == Start::kaiming ? std::sqrt(2 / fan_in) : 0.02;
}

}  // namespace

std::vector<std::int64_t> local_shape(const Parameter& parameter, const ShardSpec& shard) {
  std::vector<std::int64_t> shape = parameter.shape;
  if (parameter.dim < 0 || shard.tensor == 1) return shape;
  shape[parameter.dim] = 0;
  for (const Interval& interval : shard_of(parameter.parts, shard.tensor, shard.rank))
    shape[parameter.dim] += interval.size();
  return shape;
}

at::Tensor local_part(const at::Tensor& whole, const Parameter& parameter, const ShardSpec& shard) {
  if (parameter.dim < 0 || shard.tensor == 1) return whole;
  std::vector<at::Tensor> pieces;
  for (const Interval& interval : shard_of(parameter.parts, shard.tensor, shard.rank))
    pieces.push_back(whole.narrow(parameter.dim, interval.begin, interval.size()));
  return at::cat(pieces, parameter.dim);
}

at::Tensor initial_value(const Parameter& parameter, std::uint64_t seed) {
  at::Tensor value = at::empty(parameter.shape, at::kFloat);
  if (parameter.start == Start::ones) return value.fill_(1);
  if (parameter.start == Start::zeros) return value.zero_();
  at::Generator generator = at::detail::createCPUGenerator(hash_of(parameter.name, seed));
  return value.normal_(0, deviation(parameter), generator);
}

ParameterSource noise_parameters(const ShardSpec& shard, const at::TensorOptions& options) {
  return [shard, options](const Parameter& parameter) {
    at::Tensor value = at::empty(local_shape(parameter, shard), options);
    if (parameter.start == Start::ones) return value.fill_(1).set_requires_grad(true);
    if (parameter.start == Start::zeros) return value.zero_().set_requires_grad(true);
    return value.normal_(0, deviation(parameter)).set_requires_grad(true);
  };
}

ParameterSource separate_parameters(const ShardSpec& shard, const at::TensorOptions& options,
                                    std::uint64_t seed) {
  const auto made = std::make_shared<std::map<std::string, at::Tensor>>();
  return [=](const Parameter& parameter) {
    at::Tensor& value = (*made)[parameter.name];
    if (!value.defined())
      value = local_part(initial_value(parameter, seed), parameter, shard)
                  .to(options, /*non_blocking=*/false, /*copy=*/true)
                  .set_requires_grad(true);
    return value;
  };
}

Bundle UnitModule::sample_input(std::int64_t samples, const at::TensorOptions& options) const {
  Bundle bundle;
  if (range_.begin == 0) return bundle;
  for (const LiveTensor& alive : program_.ops[range_.begin - 1].alive) {
    std::vector<std::int64_t> shape = alive.shape;
    if (alive.cut == LiveTensor::Cut::stream && shard_.cuts_positions()) shape[0] /= shard_.tensor;
    if (alive.cut == LiveTensor::Cut::features && shard_.tensor > 1) {
      shape[alive.dim] = 0;
      for (const Interval& interval : shard_of(alive.parts, shard_.tensor, shard_.rank))
        shape[alive.dim] += interval.size();
    }
    shape.insert(shape.begin(), samples);
    bundle[alive.name] = at::randn(shape, options);
  }
  return bundle;
}

Batch noise_batch(const ExecProgram& program, std::int64_t samples,
                  const at::TensorOptions& options, std::uint64_t seed) {
  at::Generator generator = at::detail::createCPUGenerator(seed);
  const auto whole_numbers = [&](std::int64_t limit, std::int64_t columns) {
    return at::randint(limit, {samples, columns}, generator, at::kLong).to(options.device());
  };
  Batch batch;
  batch.labels = whole_numbers(program.classes, program.labels);
  if (program.images) {
    batch.images =
        at::randn({samples, 3, program.source, program.source}, generator, at::kFloat).to(options);
    return batch;
  }
  batch.tokens = whole_numbers(program.vocabulary, program.source);
  if (program.target > 0) batch.target = whole_numbers(program.vocabulary, program.target);
  if (program.type_rows > 0) batch.types = whole_numbers(program.type_rows, program.source);
  if (program.next_sentence) batch.follows = whole_numbers(2, 1).squeeze(1);
  return batch;
}

}  // namespace plait::runtime
