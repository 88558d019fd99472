#pragma once

#include <compare>

#include "base/units.h"
#include "cluster/cluster.h"
#include "model/model.h"
#include "plan/problem.h"

namespace plait {

// How the work of one micro-batch is divided over the devices that share it.
struct Sharding {
  double samples = 1;  // of the micro-batch, on one replica
  int tensor = 1;
  int context = 1;
  int expert = 1;
  bool sequence_parallel = false;
  friend auto operator<=>(const Sharding&, const Sharding&) = default;
};

// One op of one micro-batch on one device, communication apart.
struct OpTime {
  Seconds forward;
  Seconds backward;         // input gradient
  Seconds weight_gradient;  // 0 for ops without weights
};

// Time of an [m x k] times [k x n] product, `count` of them in one launch:
//   2 m n k count / (peak * matmul) * (1 + inner / k) * (1 + tail / waves), at least the time to
//   move its operands, plus one kernel
// where waves = ceil(m / 128) ceil(n / 128) count / multiprocessors.
Seconds matmul_time(const DeviceType& device, DType dtype, double m, double n, double k,
                    double count = 1);

// Time of a memory-bound kernel that moves `size` bytes.
Seconds memory_time(const DeviceType& device, Bytes size, double kernels = 1);

OpTime op_time(const Job& job, const Model& model, const DeviceType& device, const Op& op,
               const Sharding& sharding);

// Activation bytes that one device keeps for backward of one micro-batch: everything, and what is
// left of it when attention is recomputed (selective).
struct SavedBytes {
  Bytes all;
  Bytes selective;
};
SavedBytes saved_bytes(const Job& job, const Model& model, const Op& op, const Sharding& sharding);

// Parameters of the op on one device. Experts are cut by the expert and the tensor degree.
double parameters_per_device(const Op& op, const Sharding& sharding);

}  // namespace plait
