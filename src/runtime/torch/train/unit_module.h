#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/lower/exec_op.h"
#include "runtime/torch/comm/tensor_group.h"

namespace plait::runtime {

// The tensors that are alive between two ops, by name (ExecOp::alive): [samples, ...].
using Bundle = std::map<std::string, at::Tensor>;

// What the first and the last unit of a model read besides their input.
struct Batch {
  at::Tensor tokens;   // [samples, source], whole numbers
  at::Tensor target;   // [samples, target]: an encoder-decoder's second input
  at::Tensor types;    // [samples, source]
  at::Tensor images;   // [samples, 3, side, side]
  at::Tensor labels;   // [samples, positions]
  at::Tensor weights;  // [samples, positions] in fp32: of each position's loss; undefined = equal
  at::Tensor follows;  // [samples]: BERT's second sentence follows its first
};

// Which part of the layers one device has.
struct ShardSpec {
  int tensor = 1;
  int rank = 0;
  bool sequence_parallel = false;
  bool cuts_positions() const { return sequence_parallel && tensor > 1; }
};

// How many values device `shard` has of each dimension of a parameter.
std::vector<std::int64_t> local_shape(const Parameter& parameter, const ShardSpec& shard);
// This device's part of a whole parameter.
at::Tensor local_part(const at::Tensor& whole, const Parameter& parameter, const ShardSpec& shard);
// The values that training starts from: whole, in fp32 on the CPU, a function of seed and name.
at::Tensor initial_value(const Parameter& parameter, std::uint64_t seed);

// A learnt tensor as a device holds it.
struct LocalParameter {
  Parameter parameter;
  at::Tensor value;  // requires a gradient
};

// Gives a device's part of a parameter: a new tensor, or the one that a tied op already has.
using ParameterSource = std::function<at::Tensor(const Parameter& parameter)>;

// Parameters as tensors of their own; one that is asked for again is the same tensor.
ParameterSource separate_parameters(const ShardSpec& shard, const at::TensorOptions& options,
                                    std::uint64_t seed);
// Values as a new model has them, other ones with every call, made on the device itself.
ParameterSource noise_parameters(const ShardSpec& shard, const at::TensorOptions& options);

// Some consecutive ops of a model on one device. Example, one unit on a whole device:
//   const ExecProgram program = lower(model).program;
//   AbsentGroup alone;
//   UnitModule unit(program, {program.begin[u], program.begin[u + 1]}, {}, alone,
//                   separate_parameters({}, at::kFloat, 1));
//   Bundle out = unit.forward(in, batch);
class UnitModule {
 public:
  struct Range {
    int begin = 0;
    int end = 0;
  };
  // `program` and `group` must outlive the module. `plain` attention writes its scores to memory.
  UnitModule(const ExecProgram& program, Range range, const ShardSpec& shard, TensorGroup& group,
             const ParameterSource& source, bool plain = false);
  ~UnitModule();
  UnitModule(UnitModule&&) noexcept;

  // Consumes the bundle that the op before the range hands on, and gives the one after it. The
  // last unit's holds "loss", one value for each sample in the wide type.
  Bundle forward(Bundle bundle, const Batch& batch) {
    return forward(std::move(bundle), batch, range_);
  }
  // Of a part of the range only.
  Bundle forward(Bundle bundle, const Batch& batch, Range part);

  const std::vector<LocalParameter>& parameters() const { return parameters_; }
  Range range() const { return range_; }

  // Tensors of the right shapes, filled with noise, for a forward pass of the range alone on
  // `samples` samples; and a batch for it.
  Bundle sample_input(std::int64_t samples, const at::TensorOptions& options) const;

 private:
  struct Held;  // an op with its parameters and constants
  void run(const Held& held, Bundle& bundle, const Batch& batch);
  void run_embedding(const Held& held, Bundle& bundle, const Batch& batch);
  void run_attention(const Held& held, Bundle& bundle);
  void run_experts(const Held& held, Bundle& bundle);
  void run_head(const Held& held, Bundle& bundle, const Batch& batch);
  void run_convolution(const Held& held, Bundle& bundle);

  at::Tensor enter(const at::Tensor& x) { return enter_region(x, group_, shard_.cuts_positions()); }
  at::Tensor leave(const at::Tensor& x) { return leave_region(x, group_, shard_.cuts_positions()); }
  // The product with the weight, bias included, between the layouts of the usual cut.
  at::Tensor column_product(const Held& held, const at::Tensor& x);
  template <typename Product>
  at::Tensor cut_otherwise(const ExecOp& op, const at::Tensor& x, int dim, const Product& product);
  at::Tensor first_position(const at::Tensor& x);
  // What ALiBi and a window add to scores, minus infinity for keys that are not seen: [heads or 1,
  // positions, positions]. Equal layers share it.
  const at::Tensor& mask(const ExecOp& op, const at::Tensor& queries);
  // The constants of an op on the device of `like`, made when first needed.
  const at::Tensor& buckets(const Held& held, const at::Tensor& like);
  const std::pair<at::Tensor, at::Tensor>& angles(const Held& held, const at::Tensor& like);

  const ExecProgram& program_;
  Range range_;
  ShardSpec shard_;
  TensorGroup& group_;
  bool plain_;
  std::vector<Held> held_;
  std::vector<LocalParameter> parameters_;
  std::map<std::pair<bool, std::int64_t>, at::Tensor> masks_;  // by ALiBi and window
};

// The largest values that a batch may hold, and tensors for `samples` samples of noise.
Batch noise_batch(const ExecProgram& program, std::int64_t samples,
                  const at::TensorOptions& options, std::uint64_t seed);

}  // namespace plait::runtime
