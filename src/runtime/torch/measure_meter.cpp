#include "runtime/torch/measure_meter.h"

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
#include "cost/framework.h"
#include "io/catalogue.h"
#include "runtime/torch/profile_backend.h"

namespace plait::runtime {
namespace {

constexpr std::int64_t kFlush = std::int64_t{192} << 20;  // bytes; the largest caches have 64 MB
constexpr double kClockChange = 0.03;
constexpr std::int64_t kPaceSideGpu = 4096;
constexpr std::int64_t kPaceSideCpu = 384;

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
    throw InputError("--device", "there is no CUDA device; --device cpu measures the CPU");
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
  throw InputError("--precision", "libtorch cannot train in fp8; measure bf16");
}

at::ScalarType storage_type(Precision precision) { return storage_type(compute_dtype(precision)); }

TorchMeter::TorchMeter(const MeterOptions& options)
    : options_(options),
      device_(device_named(options.device)),
      dtype_(storage_type(options.job.precision)),
      machine_(describe_machine(options)),
      repetition_{options.tight, options.longest, options.fewest} {
  at::globalContext().setAllowTF32CuBLAS(options.job.precision == Precision::tf32);
  at::globalContext().setAllowTF32CuDNN(options.job.precision == Precision::tf32);
  if (device_.is_cpu()) return;
  flush_ = at::empty({kFlush}, at::TensorOptions().dtype(at::kByte).device(device_));
  const auto empty = repeat(device_, repetition_, 2, [&](Stopwatch& watch) {
    flush_.zero_();
    watch.mark();
    watch.mark();
  });
  empty_ = timing_of(empty[0]).median.value;
}

at::Tensor TorchMeter::noise(std::vector<std::int64_t> shape, at::ScalarType type) const {
  return at::randn(shape, at::TensorOptions().dtype(type).device(device_));
}

double TorchMeter::pace() {
  const std::int64_t side = device_.is_cpu() ? kPaceSideCpu : kPaceSideGpu;
  if (!pace_input_.defined())
    pace_input_ = noise({side, side}, device_.is_cpu() ? at::kFloat : at::kBFloat16);
  const auto times = repeat(device_, {.tight = 0.01, .longest = Seconds(0.01), .fewest = 5}, 2,
                            [&](Stopwatch& watch) {
                              watch.mark();
                              at::mm(pace_input_, pace_input_);
                              watch.mark();
                            });
  return timing_of(times[0]).median.value;
}

void TorchMeter::flag_pace(Measurement& into) {
  const double now = pace();
  if (first_pace_ == 0) first_pace_ = now;
  const double change = first_pace_ / now - 1;
  if (std::abs(change) > kClockChange)
    into.flags.push_back(fmt::format("clock changed by {:+.0f} %", 100 * change));
}

Measurement TorchMeter::guarded(const std::function<void(Measurement&)>& measure) {
  Measurement result;
  try {
    measure(result);
    flag_pace(result);
  } catch (const c10::Error& error) {
    if (!is_out_of_memory(error.what())) throw;
    result = {};
    result.out_of_memory = true;
  } catch (const std::bad_alloc&) {
    result = {};
    result.out_of_memory = true;
  }
  if (result.out_of_memory) empty_pool(device_);
  return result;
}

Timing TorchMeter::measured(const Pass& pass, Measurement& into) {
  const auto times = repeat(device_, repetition_, 2, [&](Stopwatch& watch) {
    if (flush_.defined()) {
      // In training weights come from memory, and what the op before has written is still in the
      // caches, as far as it fits. Meanwhile the host runs ahead, so that its time does not count.
      flush_.zero_();
      for (at::Tensor tensor : pass.read) tensor.mul_(1);
    }
    watch.mark();
    pass.run();
    watch.mark();
  });
  Timing timing = timing_of(times[0]);
  timing.median = Seconds(std::max(0.0, timing.median.value - empty_));
  if (has_outliers(times[0]) && std::ranges::find(into.flags, "outliers") == into.flags.end())
    into.flags.push_back("outliers");
  return timing;
}

std::unique_ptr<Meter> make_meter(const MeterOptions& options) {
  return std::make_unique<TorchMeter>(options);
}

Measurement TorchMeter::op(const OpKey& key) {
  return guarded([&](Measurement& into) {
    for (const Pass& pass : passes_of(key)) into.*pass.result = measured(pass, into);
  });
}

}  // namespace plait::runtime
