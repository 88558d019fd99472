#pragma once

namespace plait {

// Number formats that a device has a peak rate for. tf32 is fp32 data on tensor cores.
enum class DType { fp32, tf32, fp16, bf16, fp8 };
inline constexpr int kDTypes = 5;

constexpr double size_in_bytes(DType dtype) {
  switch (dtype) {
    case DType::fp32:
    case DType::tf32:
      return 4;
    case DType::fp16:
    case DType::bf16:
      return 2;
    case DType::fp8:
      return 1;
  }
  return 4;
}

}  // namespace plait
