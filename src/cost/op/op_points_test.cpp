#include "cost/op/op_points.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plan/sample_problems.h"

namespace plait {
namespace {

using samples::plain_device;

Op matmul_op(double rows, double inner, double columns) {
  Op op;
  op.kind = OpKind::matmul;
  op.split = Split::column;
  op.rows = rows;
  op.inner = inner;
  op.columns = columns;
  op.forward = Flops(2 * rows * inner * columns);
  op.parameters = inner * columns;
  return op;
}

OpKey matmul_key(double rows, double inner, double columns) {
  OpKey key;
  key.device_type = "plain";
  key.rows = rows;
  key.inner = inner;
  key.columns = columns;
  return key;
}

const Kernels& plain_kernels() {
  static const Model kModel;
  static const DeviceType kDevice = plain_device();
  static const auto kKernels = kernels_of({}, kModel, kDevice);
  return *kKernels;
}

// A profile in which the product took `factor` times what the analytic model says.
void measure(Profile& profile, const OpKey& key, double factor) {
  const OpTime time = kernel_time(plain_kernels(), key);
  profile.ops[key] = {.forward = factor * time.forward,
                      .backward = factor * time.backward,
                      .weight_gradient = factor * time.weight_gradient};
}

// Ratio of the corrected to the analytic forward time.
double correction(const Profile& profile, const Op& op, Source& source) {
  const OpTime plain = op_time({}, {}, plain_device(), op, {});
  OpTime time = plain;
  source = OpPoints(profile, "plain").correct(plain_kernels(), op, {}, time);
  return time.forward / plain.forward;
}

TEST(OpPoints, AMeasuredShapeTakesItsMeasuredTime) {
  Profile profile;
  measure(profile, matmul_key(1024, 512, 2048), 1.5);
  measure(profile, matmul_key(1024, 512, 4096), 3);
  Source source{};
  EXPECT_NEAR(correction(profile, matmul_op(1024, 512, 2048), source), 1.5, 1e-12);
  EXPECT_EQ(source, Source::measured);
}

TEST(OpPoints, EveryPassIsCorrected) {
  Profile profile;
  const OpKey key = matmul_key(1024, 512, 2048);
  profile.ops[key] = {.forward = Seconds(1), .backward = Seconds(2), .weight_gradient = Seconds(3)};
  OpTime time = op_time({}, {}, plain_device(), matmul_op(1024, 512, 2048), {});
  OpPoints(profile, "plain").correct(plain_kernels(), matmul_op(1024, 512, 2048), {}, time);
  EXPECT_NEAR(time.forward.value, 1, 1e-12);
  EXPECT_NEAR(time.backward.value, 2, 1e-12);
  EXPECT_NEAR(time.weight_gradient.value, 3, 1e-12);
}

TEST(OpPoints, BetweenShapesTheRatioIsAveraged) {
  Profile profile;
  measure(profile, matmul_key(1024, 512, 2048), 2);
  measure(profile, matmul_key(4096, 512, 2048), 2);
  Source source{};
  // Both are one doubling away: w = 1 / (1/64 + 1) each, and 1/9 for the analytic model.
  const double w = 1 / (1.0 / 64 + 1);
  EXPECT_NEAR(correction(profile, matmul_op(2048, 512, 2048), source),
              std::pow(2, 2 * w / (2 * w + 1.0 / 9)), 1e-9);
  EXPECT_EQ(source, Source::interpolated);
}

TEST(OpPoints, FarShapesAndOtherAlignmentsDoNotCount) {
  Profile profile;
  measure(profile, matmul_key(1024, 512, 2048), 2);
  Source source{};
  EXPECT_EQ(correction(profile, matmul_op(1024.0 * 16, 512, 2048), source), 1);
  EXPECT_EQ(source, Source::analytic);
  EXPECT_EQ(correction(profile, matmul_op(1024, 512, 2047), source), 1);
  EXPECT_EQ(source, Source::analytic);
}

TEST(OpPoints, PointsThatDidNotFitDoNotCount) {
  Profile profile;
  profile.ops[matmul_key(1024, 512, 2048)] = {.out_of_memory = true};
  EXPECT_TRUE(OpPoints(profile, "plain").empty());
  EXPECT_TRUE(OpPoints(profile, "other").empty());
}

TEST(OpPoints, AttentionIsKeptByHeadsOfAllSamples) {
  Op op;
  op.kind = OpKind::attention;
  op.split = Split::heads;
  op.rows = op.columns = 1024;
  op.inner = 64;
  op.count = 16;
  op.kv_count = 4;
  Model model;
  model.causal = true;
  const OpKey key = op_key({}, model, op, {.samples = 2, .tensor = 4});
  EXPECT_EQ(key.count, 8);     // 16 heads of 2 samples on 4 devices
  EXPECT_EQ(key.kv_count, 2);  // one of the 4 each
  EXPECT_TRUE(key.causal);
}

TEST(OpPoints, TheWindowOfAConvolutionFollowsFromItsSizes) {
  Op op;
  op.kind = OpKind::convolution;
  op.rows = 56 * 56;
  op.inner = 9 * 64;
  op.columns = 128;
  op.moved = 56 * 56 * 64 + op.rows * op.columns;
  EXPECT_EQ(window_of(op).side, 3);
  EXPECT_EQ(window_of(op).stride, 1);
  // The stem of a ResNet: 7 x 7 over 3 channels, halving 224 x 224.
  op.rows = 112 * 112;
  op.inner = 147;
  op.moved = 224 * 224 * 3 + op.rows * op.columns;
  EXPECT_EQ(window_of(op).side, 7);
  EXPECT_EQ(window_of(op).stride, 2);
}

}  // namespace
}  // namespace plait
