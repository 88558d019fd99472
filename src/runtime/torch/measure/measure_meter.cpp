#include "runtime/torch/measure/measure_meter.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "base/error.h"
#include "cost/framework/framework.h"
#include "io/cluster/catalogue.h"
#include "runtime/torch/comm/device_state.h"
#include "runtime/torch/measure/profile_backend.h"

namespace plait::runtime {
namespace {

constexpr std::int64_t kFlush = std::int64_t{24} << 20;  // floats; the largest caches have 64 MB
constexpr double kQuiet = 0.5;                           // of a pass' time, to move data before it
constexpr double kMostReads = 2000;

// What a program prints first; "" when it cannot be run.
std::string first_line_of(const char* command) {
  std::FILE* pipe = popen(command, "r");
  if (pipe == nullptr) return "";
  char buffer[512] = "";
  if (std::fgets(buffer, sizeof buffer, pipe) == nullptr) buffer[0] = '\0';
  while (std::fgetc(pipe) != EOF) {
  }
  pclose(pipe);
  std::string line(buffer);
  while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.pop_back();
  return line;
}

// "model name : Intel(R) Xeon(R)" -> the name
std::string value_in(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key)) {
      const std::size_t at = line.find_first_not_of(" \t:", key.size());
      return at == line.npos ? "" : line.substr(at);
    }
  return "";
}

}  // namespace

Machine describe_machine(const MeterOptions& options) {
  Machine machine;
  machine.versions["libtorch"] = TORCH_VERSION;
  std::string name;
  if (options.device == "cuda") {
    const std::string line =
        first_line_of("nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>&1");
    const std::size_t comma = line.find(", ");
    if (comma != line.npos) {
      name = line.substr(0, comma);
      machine.versions["driver"] = line.substr(comma + 2);
    } else {
      name = "GPU";
      const std::string version = value_in("/proc/driver/nvidia/version", "NVRM version");
      machine.versions["driver"] = version.empty() ? "unknown" : version;
    }
  } else {
    name = value_in("/proc/cpuinfo", "model name");
    if (name.empty()) name = "CPU";
    machine.versions["threads"] = std::to_string(at::get_num_threads());
  }
  machine.versions["device"] = name;
  machine.device_type = options.device_type;
  if (machine.device_type.empty()) {
    const DeviceEntry* known = lookup_device(builtin_catalogue(), name);
    machine.device_type = known != nullptr           ? known->type.name
                          : options.device == "cuda" ? name
                                                     : "CPU";
  }
  return machine;
}

namespace {

c10::Device device_named(const std::string& name) {
  if (name == "cpu") return c10::Device(c10::kCPU);
  if (!at::hasCUDA() || at::getNumGPUs() < 1)
    throw InputError("`device`", "there is no CUDA device; `device` cpu measures the CPU");
  return c10::Device(c10::kCUDA, 0);
}

bool is_out_of_memory(const std::string& what) {
  return what.find("out of memory") != what.npos || what.find("can't allocate memory") != what.npos;
}

}  // namespace

at::ScalarType storage_type(DType dtype) {
  switch (dtype) {
    case DType::fp32:
    case DType::tf32:
      return at::kFloat;
    case DType::fp16:
      return at::kHalf;
    case DType::bf16:
      return at::kBFloat16;
    case DType::fp8:
      break;
  }
  throw InputError("`precision`", "libtorch cannot train in fp8; measure bf16");
}

at::ScalarType storage_type(Precision precision) { return storage_type(compute_dtype(precision)); }

TorchMeter::TorchMeter(const MeterOptions& options)
    : options_(options),
      device_(device_named(options.device)),
      dtype_(storage_type(options.job.precision)),
      machine_(describe_machine(options)),
      repetition_{options.tight, options.longest, options.fewest} {
  if (options.job.precision == Precision::tf32) {
    at::globalContext().setAllowTF32CuBLAS(true);
    at::globalContext().setAllowTF32CuDNN(true);
  }
  if (device_.is_cpu()) return;
  flush_ = at::zeros({kFlush}, at::TensorOptions().dtype(at::kFloat).device(device_));
  const Repeats times = repeat(device_, repetition_, {3, [&](Stopwatch& watch) {
                                                        watch.mark();
                                                        flush_.sum();
                                                        watch.mark();
                                                        watch.mark();
                                                      }});
  flush_time_ = timing_of(times.device[0]).median.value;
  empty_ = timing_of(times.device[1]).median.value;
}

at::Tensor TorchMeter::noise(std::vector<std::int64_t> shape, at::ScalarType type) const {
  return at::randn(shape, at::TensorOptions().dtype(type).device(device_));
}

Measurement TorchMeter::guarded(const std::function<void(Measurement&)>& measure) {
  Measurement result;
  try {
    measure(result);
  } catch (const c10::Error& error) {
    if (!is_out_of_memory(error.what()))
      throw InputError("libtorch " TORCH_VERSION " on " + options_.device,
                       std::string("cannot run what is to be measured: ") +
                           error.what_without_backtrace() + "; another `precision` may help");
    result = {};
    result.out_of_memory = true;
  } catch (const std::bad_alloc&) {
    result = {};
    result.out_of_memory = true;
  }
  if (result.out_of_memory) empty_pool(device_);
  return result;
}

// In training weights come from memory, what the op before has written is still in the caches as
// far as it fits, and about a third of the time goes to ops that only move data, which lets the
// clock recover from the products. So before each repeat a buffer is read (nothing is left to be
// written back) for half of the pass' own time, and the activations are touched.
void TorchMeter::hold(double seconds) {
  if (!flush_.defined()) return;
  const double reads = std::ceil(seconds / flush_time_);
  for (int i = 0; i < static_cast<int>(std::min(reads, kMostReads)); ++i) flush_.sum();
}

Timing TorchMeter::measured(const Pass& pass, Measurement& into) {
  const auto touch = [&] {
    if (flush_.defined())
      for (at::Tensor tensor : pass.read) tensor.mul_(1);
  };
  double quiet = 0;
  if (flush_.defined()) {
    Stopwatch pilot(device_);
    for (int i = 0; i < 3; ++i) {
      hold(flush_time_);
      touch();
      pilot.mark();
      pass.run();
      pilot.mark();
      quiet = kQuiet * pilot.intervals().front();
    }
  }
  const Repeats times = repeat(device_, repetition_,
                               {.marks = 2,
                                .once =
                                    [&](Stopwatch& watch) {
                                      hold(std::max(quiet, flush_time_));
                                      touch();
                                      watch.mark();
                                      pass.run();
                                      watch.mark();
                                    },
                                .hold = [&](double seconds) { hold(seconds); }});
  Timing timing = timing_of(times.device[0]);
  timing.median = Seconds(std::max(0.0, timing.median.value - empty_));
  add_flags(times.device[0], into.flags);
  return timing;
}

std::unique_ptr<Meter> make_meter(const MeterOptions& options) {
  keep_freed_memory();
  return std::make_unique<TorchMeter>(options);
}

Measurement TorchMeter::op(const OpKey& key) {
  return guarded([&](Measurement& into) {
    for (const Pass& pass : passes_of(key)) into.*pass.result = measured(pass, into);
  });
}

}  // namespace plait::runtime
