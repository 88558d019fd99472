#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/lower/exec_op.h"
#include "runtime/profiler/profile.h"
#include "runtime/torch/measure/measure_clock.h"

namespace plait::runtime {

class UnitModule;
struct Batch;

// Measures with libtorch on the first CUDA device or on the CPU.
class TorchMeter : public Meter {
 public:
  explicit TorchMeter(const MeterOptions& options);
  const Machine& machine() const override { return machine_; }
  Measurement unit(const UnitPlace& place) override;
  Measurement op(const OpKey& key) override;

 private:
  // The passes of an op: what to do before each, whose time does not count, and the pass itself.
  struct Pass {
    std::optional<Timing> Measurement::*result = nullptr;
    std::vector<at::Tensor> read;  // what the ops before it have just written
    std::function<void()> run;
  };
  std::vector<Pass> passes_of(const OpKey& key);
  std::vector<Pass> product_passes(const OpKey& key);
  std::vector<Pass> convolution_passes(const OpKey& key);
  // Forward, and backward of its result by the gradient engine.
  std::vector<Pass> differentiated(std::vector<at::Tensor> inputs,
                                   std::function<at::Tensor()> forward);

  Timing measured(const Pass& pass, Measurement& into);
  // Keeps the device reading for some seconds, so that nothing useful is left in its caches.
  void hold(double seconds);
  void measure_unit(const UnitPlace& place, Measurement& into);
  Seconds measure_memory(UnitModule& unit, const std::map<std::string, at::Tensor>& pattern,
                         const Batch& batch, MemoryWatch& memory, Measurement& into);
  void measure_passes(const std::vector<std::unique_ptr<UnitModule>>& copies,
                      const std::map<std::string, at::Tensor>& pattern, const Batch& batch,
                      int count, Measurement& into);
  // What the host takes to launch the passes.
  void measure_launch(const std::vector<std::unique_ptr<UnitModule>>& copies,
                      const std::map<std::string, at::Tensor>& pattern, const Batch& batch,
                      Measurement& into);
  const ExecProgram& program_of(const Model& model);
  std::optional<Timing> optimizer_step(const std::vector<at::Tensor>& parameters);
  // Calls `measure`; an allocation that fails becomes a result.
  Measurement guarded(const std::function<void(Measurement&)>& measure);

  at::Tensor noise(std::vector<std::int64_t> shape, at::ScalarType type) const;
  at::Tensor noise(std::vector<std::int64_t> shape) const {
    return noise(std::move(shape), dtype_);
  }

  MeterOptions options_;
  c10::Device device_;
  at::ScalarType dtype_;
  Machine machine_;
  Repetition repetition_;
  at::Tensor flush_;       // larger than the caches of the device; undefined on the CPU
  double flush_time_ = 0;  // seconds to read it
  double empty_ = 0;       // seconds between two marks with nothing in between
  std::map<const Model*, std::unique_ptr<ExecProgram>> lowered_;
};

// The type that a number format is stored in.
at::ScalarType storage_type(DType dtype);
at::ScalarType storage_type(Precision precision);

}  // namespace plait::runtime
