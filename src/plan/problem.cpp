#include "plan/problem.h"

namespace plait {

DType compute_dtype(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return DType::fp32;
    case Precision::tf32:
      return DType::tf32;
    case Precision::fp16:
      return DType::fp16;
    case Precision::bf16:
    case Precision::pure_bf16:
      return DType::bf16;
    case Precision::fp8:
    case Precision::fp8_row:
    case Precision::fp4:
      return DType::fp8;
  }
  return DType::bf16;
}

}  // namespace plait
