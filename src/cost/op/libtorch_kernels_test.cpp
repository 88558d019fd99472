#include "cost/op/libtorch_kernels.h"

#include <gtest/gtest.h>

#include "plan/sample_frameworks.h"
#include "plan/sample_problems.h"

namespace plait {
namespace {

// On a device of 1 TB/s with kernels of 10 us: what an op moves forward and backward, in units of a
// tensor of 2 bytes for each position and feature of the stream.
struct Moved {
  double forward = 0;
  double backward = 0;
};

struct Case {
  Model model;
  Job job;
  DeviceType device = samples::plain_device();

  explicit Case(const TransformerConfig& config) : model(build_transformer(config)) {
    job.framework = samples::framework("plait");
    job.precision = Precision::bf16;
  }
  const Op& op(const std::string& name) const {
    for (const Op& op : model.unit(1).ops)
      if (op.name == name) return op;
    throw std::runtime_error(name);
  }
  OpTime time(const std::string& name) const {
    return op_time(job, model, device, op(name), {.samples = 1});
  }
  Moved moved(const std::string& name, double hidden) const {
    const double tensor = 2 * hidden * model.sequence_length / 1e12;
    const OpTime own = time(name);
    return {(own.forward.value - 10e-6) / tensor, (own.backward.value - 10e-6) / tensor};
  }
};

// The eager table's: 1.9 and 3.7 passes, and 1600 and 6000 elements more for each row of 1024; the
// tanh of gelu is one kernel, of 4 tensors: 4 * 1.9, 4 * 2.5.
TEST(Libtorch, NormsAndActivationsAreTheKernelsOfTheEagerTable) {
  const Case gpt(samples::gpt(1, 1024, 16, 1024));
  const Moved norm = gpt.moved("mlp.norm", 1024);
  EXPECT_NEAR(norm.forward, 1.9 + 1600.0 / 1024, 1e-6);
  EXPECT_NEAR(norm.backward, 3.7 + 6000.0 / 1024, 1e-6);
  const Moved gelu = gpt.moved("mlp.activation", 1024);
  EXPECT_NEAR(gelu.forward, 4 * 1.9, 1e-6);
  EXPECT_NEAR(gelu.backward, 4 * 2.5, 1e-6);
}

// Halves of rows: silu reads and writes one, the product reads two and writes one; of 5632
// features.
TEST(Libtorch, GatesMoveHalvesOfRowsAtHalfTheSpeed) {
  const Case llama(samples::llama(1, 2048, 5632, 32, 4));
  const Moved gate = llama.moved("mlp.activation", 2048);
  EXPECT_NEAR(gate.forward, 5 * 2 * 0.75 * 5632 / 2048, 1e-6);
  EXPECT_NEAR(gate.backward, 11 * 2 * 0.75 * 5632 / 2048, 1e-6);
}

// A window is a mask of all scores: 4 flops for each of 32 heads of 64, 8192 queries and keys, at
// 0.35 of 100 Tflop/s. Where one of two layers has it, their kind takes the mean.
TEST(Libtorch, WindowsComputeWhatTheirMaskHides) {
  TransformerConfig config = samples::llama(2, 2048, 5632, 32, 32);
  const double whole = Case(config).time("attention.core").forward.value;
  config.window.size = 512;
  const double windowed = 4.0 * 32 * 64 * 8192 * 8192 / 35e12 + 10e-6;
  EXPECT_NEAR(Case(config).time("attention.core").forward.value, windowed, 1e-9);
  EXPECT_GT(windowed, whole);
  config.window.full = {1};
  EXPECT_NEAR(Case(config).time("attention.core").forward.value, (windowed + whole) / 2, 1e-9);
}

// 64 maps of 49 positions: 6.1 passes, and 8900 elements more for each map. A convolution reaches
// 0.42 of 100 Tflop/s and is not converted.
TEST(Libtorch, NormsOfImagesTakeTheirTimeByTheMap) {
  Case any(samples::gpt(1, 1024, 16, 1024));
  any.model.architecture = WideResnetConfig{};
  const auto time = [&](const Op& op) { return op_time(any.job, any.model, any.device, op, {}); };
  Op norm;
  norm.kind = OpKind::norm;
  norm.function = Function::layer_norm;
  norm.rows = 49;
  norm.columns = 64;
  norm.moved = 2 * 49 * 64;
  EXPECT_NEAR(time(norm).forward.value, 2 * (6.1 * 49 * 64 + 8900 * 64) / 1e12 + 10e-6, 1e-12);
  Op product;
  product.kind = OpKind::convolution;
  product.split = Split::column;
  product.rows = 784;
  product.inner = 5760;
  product.columns = 640;
  EXPECT_NEAR(time(product).forward.value, 2.0 * 784 * 5760 * 640 / 42e12 + 10e-6, 1e-12);
}

// The host has 1 ms to launch for 0.4 ms of the device, but launched 0.7 ms of it before.
TEST(Libtorch, WhatTheHostHasLaunchedAheadDelaysNobody) {
  const Case gpt(samples::gpt(1, 1024, 16, 1024));
  const auto kernels = kernels_of(gpt.job, gpt.model, gpt.device);
  UnitCost device;
  device.forward = device.backward = Seconds(0.2e-3);
  HostWork host{.total = Seconds(1e-3), .forward = {}, .ahead = {}};
  EXPECT_NEAR(kernels->layer_time(device, host).value, 1e-3, 1e-6);
  host.ahead = Seconds(0.7e-3);
  EXPECT_NEAR(kernels->layer_time(device, host).value, 0.4e-3, 1e-6);
}

}  // namespace
}  // namespace plait
