#include "runtime/torch/comm/device_state.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <malloc.h>
#include <sys/resource.h>
#include <torch/cuda.h>
#include <torch/version.h>

#include <cstdlib>
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 9)
#include <c10/core/CachingDeviceAllocator.h>
#endif

namespace plait::runtime {
namespace {

// oneDNN uses AMX wherever the processor and the kernel say that they have it, also in virtual
// machines that lose its registers: products in bf16 end in SIGILL there. Who sets the variable is
// left alone.
[[maybe_unused]] const int kWithoutAmx = setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16", 0);

}  // namespace

void keep_freed_memory() {
  constexpr int kLargest = 32 << 20;  // that glibc allows; larger blocks are always mapped
  mallopt(M_MMAP_THRESHOLD, kLargest);
  mallopt(M_TRIM_THRESHOLD, 2'000'000'000);
}

bool has_cuda() { return torch::cuda::is_available(); }

int cuda_devices() { return has_cuda() ? static_cast<int>(torch::cuda::device_count()) : 0; }

void wait_for(c10::Device device) {
  if (device.is_cuda()) torch::cuda::synchronize(device.index());
}

double peak_memory(c10::Device device) {
  if (!device.is_cuda()) {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss) * 1024;
  }
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 9)
  const auto stats = at::getDeviceAllocator(device.type())->getDeviceStats(device.index());
  return static_cast<double>(
      stats.allocated_bytes[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)]
          .peak);
#else
  return 0;
#endif
}

void allow_tf32(bool allowed) {
  at::globalContext().setAllowTF32CuBLAS(allowed);
  at::globalContext().setAllowTF32CuDNN(allowed);
}

void use_threads(int count) {
  if (count > 0) at::set_num_threads(count);
}

}  // namespace plait::runtime
