#pragma once

#include <cmath>

#include "base/units.h"
#include "cluster/cluster.h"
#include "cost/op/replica.h"
#include "model/model.h"
#include "plan/problem.h"

namespace plait {

inline bool divides(double part, double whole) { return std::fmod(whole, part) == 0; }

// One op of one micro-batch on one device, communication apart.
struct OpTime {
  Seconds forward;
  Seconds backward;         // input gradient
  Seconds weight_gradient;  // 0 for ops without weights
  Seconds host;             // to launch all of it; hidden as far as the device is busy
  Seconds host_forward;     // of that, forward; 0 where it is not told apart
};

// An [m x k] times [k x n] product, `count` of them in one launch.
struct Product {
  double m = 0;
  double n = 0;
  double k = 0;
  double count = 1;
  double misaligned = 0;  // 0 when 8 divides its dimensions in memory, 1 when one is odd
  double tiles() const;   // of 128 x 128 results
};

// Number format of a product and its speed relative to the format's usual one.
struct ProductFormat {
  DType dtype = DType::bf16;
  double relative = 1;
};
ProductFormat product_format(const Job& job, const DeviceType& device);

// Time of a product:
//   2 m n k count / (peak * matmul) * (1 + inner / k) * (1 + tail / waves) * slow-down,
//   at least the time to move its operands, plus one kernel
// where waves = tiles / multiprocessors and the slow-down of a misaligned product lies between 1
// and Efficiency::misaligned. docs/cost-model.md#matmul
Seconds matmul_time(const DeviceType& device, const ProductFormat& format, const Product& product);

// Time of a memory-bound kernel that moves `size` bytes.
Seconds memory_time(const DeviceType& device, Bytes size, double kernels = 1);

// The same without the kernel: bytes at the bandwidth that memory-bound kernels reach.
Seconds moving_time(const DeviceType& device, double bytes);

// The product that one device computes, of a matmul or convolution.
Product sharded_product(const Job& job, const Op& op, const Sharding& sharding);

// How far rows of so many 2-byte elements are from the vectors that tensor cores load: 0 when 8
// divides them, 1 when they are odd; kernels for pairs of elements lose half as much.
double misalignment(double elements);

// The fraction of an op's activations that one device holds or moves.
double activation_share(Split split, const Sharding& sharding);

// Columns of a vocabulary-sized op on one device of the group, padded as the framework does.
double vocabulary_columns(const Job& job, const Op& op, int tensor);

// Parameters of the op on one device. Experts are cut by the expert and the tensor degree.
double parameters_per_device(const Op& op, const Sharding& sharding);

}  // namespace plait
