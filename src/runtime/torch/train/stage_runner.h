#pragma once

#include <ATen/core/Tensor.h>

#include <future>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/lower/layout.h"
#include "runtime/torch/comm/communicator.h"
#include "runtime/torch/train/parameter_store.h"
#include "runtime/torch/train/samples.h"
#include "runtime/torch/train/unit_module.h"

namespace plait::runtime {

// The chunks of one rank's stage: forward and backward passes of micro-batches, and the exchange of
// activations and gradients with the neighbours.
class StageRunner {
 public:
  struct Settings {
    at::ScalarType dtype = at::kFloat;
    bool plain_attention = false;
    bool overlap = true;  // with the sums of gradients
    std::int64_t global_batch = 1;
  };
  // All arguments but the settings must outlive it.
  StageRunner(const Layout& layout, const ExecProgram& program, const Samples& samples,
              ParameterStore& parameters, Communicator& ranks, const Settings& settings);
  ~StageRunner();

  // Puts the samples of a step, which all its micro-batches read, on the device. GPUs have them
  // made by a thread of its own while the step before is running.
  void prepare(std::int64_t step, int micro_batches);
  void begin_step(std::int64_t step, int micro_batches);
  void forward(int chunk, int micro_batch);
  // `last`: no micro-batch follows in this chunk, so that gradients are complete piece by piece.
  void backward(int chunk, int micro_batch, bool last);
  // Sum over this rank's samples of the step, a double on the device; 0 where there is no loss, and
  // on all devices of a tensor group but the first.
  const at::Tensor& loss() const { return loss_; }

 private:
  // Ops that are run together. What is recomputed keeps its input only.
  struct Piece {
    UnitModule::Range range;
    bool again = false;
    std::vector<int> learns;  // numbers of the parameters in it
  };
  struct LocalSpan;
  struct Boundary;
  struct InFlight;  // what forward keeps for backward

  // Of a step, for every span that reads samples: those of each micro-batch, on the CPU, where
  // a GPU can fetch them.
  using StepSamples = std::vector<std::vector<Batch>>;
  StepSamples make_samples(std::int64_t step, int micro_batches) const;

  LocalSpan make_span(int number);
  void cut_into_pieces(LocalSpan& span);
  Boundary make_boundary(int before) const;
  Bundle run_piece(LocalSpan& span, const Piece& piece, Bundle input, const Batch& batch,
                   InFlight& flight);
  Bundle piece_backward(LocalSpan& span, const Piece& piece, std::size_t number, InFlight& flight,
                        const Batch& batch, const Bundle& gradients);
  void send(const Boundary& boundary, bool back, const Bundle& bundle);
  Bundle receive(const Boundary& boundary, bool back, const Bundle& own);
  at::ScalarType dtype_of(const std::string& name) const;
  const Batch& batch_of(const LocalSpan& span, int micro_batch) const;

  const Layout& layout_;
  const ExecProgram& program_;
  const Samples& samples_;
  ParameterStore& parameters_;
  Communicator& ranks_;
  Settings settings_;
  int stage_;
  std::vector<std::vector<LocalSpan>> chunks_;
  std::map<int, Boundary> boundaries_;  // by the span before
  std::map<std::pair<int, int>, InFlight> flights_;
  std::int64_t prepared_ = -1;       // the step whose samples are there
  std::int64_t coming_step_ = -1;    // the step whose samples are being made
  std::future<StepSamples> coming_;  // after chunks_, which its thread reads
  at::Tensor loss_;
};

}  // namespace plait::runtime
