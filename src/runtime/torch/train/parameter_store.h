#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plan/problem.h"
#include "runtime/lower/layout.h"
#include "runtime/state/checkpoint_index.h"
#include "runtime/torch/comm/communicator.h"
#include "runtime/torch/train/gradient_sums.h"
#include "runtime/torch/train/unit_module.h"
#include "runtime/train.h"

namespace plait::runtime {

// A whole parameter on the CPU; undefined = none is stored.
using WholeParameter = std::function<at::Tensor(const Parameter& parameter, StateKind kind)>;

// All parameters of a rank in one piece of memory, and the optimizer.
//
// A value is in one ParameterGroup, the ranks that hold it. Its gradients are summed over them and
// every one of them makes the same update; with ZeRO-1 each updates its part and they exchange the
// results. Gradients are sums over samples of the loss divided by the global batch, so unequal
// shares need no weights.
class ParameterStore {
 public:
  struct Settings {
    at::ScalarType dtype = at::kFloat;  // of parameters; moments and sums are in the wide type
    bool spread = false;                // ZeRO-1
    bool overlap = true;                // sums over ranks begin while backward passes run
    Optimizer optimizer = Optimizer::adam;
    TrainOptions options;
  };
  ParameterStore(ParameterLayout layout, const Settings& settings, Communicator& ranks);

  // Parameters as a device with that tensor degree has them, and their numbers in gradients().
  ParameterSource source(int tensor);
  int number(const std::string& name, int tensor) const;

  GradientSums& gradients() { return *gradients_; }
  // Sums gradients over ranks, clips and updates. Gives {norm of the gradient squared} as a tensor
  // on the device: nothing here waits for a GPU.
  at::Tensor update(std::int64_t step);

  // Of all parameters of the model, those of other ranks included.
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& [name, parameter] : layout_.all) out.push_back(name);
    return out;
  }

  // Sets parameters and moments from whole ones; what the source does not have stays as it is.
  void restore(const WholeParameter& source);
  // Hands every whole parameter, one after the other in order of name, to `sink` on rank 0. All
  // ranks call it.
  using Sink =
      std::function<void(const Parameter& parameter, StateKind kind, const at::Tensor& whole)>;
  void collect(const std::vector<StateKind>& kinds, const Sink& sink);

 private:
  struct Group {
    int number = 0;  // in the layout
    TensorGroup* ranks = nullptr;
    bool in_place = false;  // its values follow each other in the flat tensors
    std::int64_t flat = 0;  // where, then
    std::int64_t size = 0;
    Interval mine;             // values that this rank updates
    Interval counted;          // values whose gradients this rank counts in the norm
    at::Tensor master;         // fp32 copy of `mine`; undefined where the parameter itself is
    at::Tensor first, second;  // moments of `mine`
  };
  using Segment = GradientSums::Segment;

  void place_tensors();
  void make_groups();
  const std::vector<Segment>& segments(int group, std::int64_t offset) const;
  void make_sums();
  // `excess`: how many times the gradient is too long; undefined = it is not clipped.
  void step_group(Group& group, at::Tensor gradient, const at::Tensor& excess, std::int64_t step);
  void step_chunk(at::Tensor value, at::Tensor gradient, at::Tensor first, at::Tensor second,
                  const at::Tensor& excess, std::int64_t step) const;
  void spread_values(Group& group);
  void set_range(Group& group, const SharedRange& range, StateKind kind, const at::Tensor& values);
  at::Tensor whole_group(const Group& group, StateKind kind) const;
  bool uses(StateKind kind) const;
  at::ScalarType wide() const;

  ParameterLayout layout_;
  Settings settings_;
  Communicator& ranks_;
  std::map<std::pair<std::string, int>, int> numbers_;  // by name and tensor degree
  std::vector<at::Tensor> tensors_;                     // by number
  std::vector<std::int64_t> flat_of_;
  std::map<std::pair<int, std::int64_t>, std::vector<Segment>> segments_;  // by group and offset
  at::Tensor values_;
  std::vector<Group> groups_;
  std::unique_ptr<GradientSums> gradients_;
  at::Tensor steps_done_;  // for the fused optimizer
};

}  // namespace plait::runtime
