#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <thread>

#include "runtime/lower/tiny_models.h"
#include "runtime/torch/comm/tensor_group.h"
#include "runtime/torch/measure/measure_meter.h"
#include "runtime/torch/train/unit_module.h"

namespace plait::runtime {
namespace {

MeterOptions quick() {
  MeterOptions options;
  options.job.precision = Precision::fp32;
  options.longest = Seconds(0.02);
  options.fewest = 3;
  options.settle = Seconds(0);
  return options;
}

TEST(MemoryWatch, CountsWhatTensorsTake) {
  MemoryWatch memory;
  {
    const at::Tensor a = at::ones({1024});
    EXPECT_EQ(memory.now(), 4096);
    const at::Tensor b = a + a;
    EXPECT_EQ(memory.now(), 8192);
  }
  EXPECT_EQ(memory.now(), 0);
  EXPECT_EQ(memory.peak(), 8192);
}

TEST(Stopwatch, GivesTheTimesBetweenMarks) {
  const auto once = [](Stopwatch& watch) {
    watch.mark();
    watch.mark();
    at::ones({1 << 16}).sum();
    watch.mark();
  };
  // Any spread is tight enough: it ends after five runs, however slow the machine is just then.
  const auto times =
      repeat(at::kCPU, {.tight = 1e9, .longest = Seconds(60), .fewest = 5}, {3, once}).device;
  ASSERT_EQ(times.size(), 2u);
  EXPECT_GE(times[0].size(), 5u);
  EXPECT_GT(timing_of(times[1]).median, timing_of(times[0]).median);
}

TEST(Stopwatch, WhatRunsWhileTheDeviceSettlesDoesNotCount) {
  const auto repeats = [](double settle) {
    int runs = 0;
    const auto once = [&](Stopwatch& watch) {
      ++runs;
      watch.mark();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      watch.mark();
    };
    const auto times = repeat(
        at::kCPU, {.tight = 1e9, .longest = Seconds(60), .fewest = 5, .settle = Seconds(settle)},
        {2, once});
    return std::pair(runs, times.device[0].size());
  };
  const auto [few, counted] = repeats(0);
  const auto [more, still] = repeats(0.4);
  // A run takes a millisecond and what the machine adds.
  EXPECT_GT(more - static_cast<int>(still), few - static_cast<int>(counted) + 10);
  EXPECT_GT(still, counted);
}

TEST(Stopwatch, WhatTakesSecondsOnTheCpuRunsOnce) {
  int runs = 0;
  const auto once = [&](Stopwatch& watch) {
    ++runs;
    watch.mark();
    std::this_thread::sleep_for(std::chrono::milliseconds(2100));
    watch.mark();
  };
  const auto times = repeat(at::kCPU, {}, {2, once}).device;
  EXPECT_EQ(runs, 1);
  ASSERT_EQ(times[0].size(), 1u);
  EXPECT_GE(times[0][0], 2.1);
  std::vector<std::string> flags;
  add_flags(times[0], flags);
  EXPECT_EQ(flags, std::vector<std::string>{"measured once"});
}

TEST(TorchMeter, EveryKindOfOpHasTimes) {
  TorchMeter meter(quick());
  OpKey key;
  key.dtype = DType::fp32;
  key.rows = key.inner = key.columns = 16;
  for (const OpKind kind :
       {OpKind::matmul, OpKind::attention, OpKind::convolution, OpKind::norm, OpKind::elementwise,
        OpKind::embedding, OpKind::loss, OpKind::reduction}) {
    key.kind = kind;
    key.window = key.stride = kind == OpKind::convolution ? 1 : 0;
    const Measurement result = meter.op(key);
    EXPECT_FALSE(result.out_of_memory) << static_cast<int>(kind);
    ASSERT_TRUE(result.forward) << static_cast<int>(kind);
    EXPECT_GT(result.forward->median, Seconds(0)) << static_cast<int>(kind);
    EXPECT_TRUE(result.backward) << static_cast<int>(kind);
    const bool weights = kind == OpKind::matmul || kind == OpKind::convolution;
    EXPECT_EQ(result.weight_gradient.has_value(), weights) << static_cast<int>(kind);
  }
}

TEST(TorchMeter, WhatDoesNotFitIsAResult) {
  TorchMeter meter(quick());
  OpKey key;
  key.dtype = DType::fp32;
  key.rows = key.inner = key.columns = 1e7;
  const Measurement result = meter.op(key);
  EXPECT_TRUE(result.out_of_memory);
  EXPECT_FALSE(result.forward);
}

TEST(TorchMeter, EveryUnitOfEveryFamilyIsMeasured) {
  TorchMeter meter(quick());
  for (const Model& model : samples::tiny_models()) {
    std::set<int> seen;
    for (int u = 0; u < model.unit_count(); ++u) {
      if (!seen.insert(model.units[u]).second) continue;
      const Measurement result = meter.unit({&model, u, 1, 2});
      ASSERT_TRUE(result.forward && result.backward) << model.name << " " << model.unit(u).name;
      // The first unit reads what is not counted: tokens or images.
      if (u > 0) {
        EXPECT_GT(result.saved->value, 0) << model.name << " " << model.unit(u).name;
      }
      EXPECT_EQ(result.optimizer.has_value(), model.unit(u).parameters() > 0) << model.name;
    }
  }
}

// A block ends with a relu, whose result it keeps, and begins with a product, which keeps its
// input: between two blocks that is one tensor, and counts once.
TEST(TorchMeter, WhatABlockKeepsOfItsResultIsTheNextOnesInput) {
  for (const Model& model : samples::tiny_models()) {
    if (model.name.find("resnet") == model.name.npos) continue;
    const ExecProgram program = lower(model).program;
    TorchMeter meter(quick());
    const auto saved = [&](int begin, int end) {
      double sum = 0;
      for (int u = begin; u < end; ++u) sum += meter.unit({&model, u, 1, 2}).saved->value;
      return sum;
    };
    MemoryWatch memory;
    AbsentGroup alone(1);
    UnitModule whole(program, {0, program.begin[model.unit_count()]}, {}, alone,
                     noise_parameters({}, at::kFloat));
    const Batch batch = noise_batch(program, 2, at::kFloat, 1);
    const std::int64_t before = memory.now();
    const Bundle out = whole.forward({}, batch);
    EXPECT_NEAR(saved(0, model.unit_count()), static_cast<double>(memory.now() - before),
                0.03 * static_cast<double>(memory.now() - before))
        << model.name;
    return;
  }
  FAIL() << "no network of convolutions";
}

TEST(TorchMeter, SavedActivationsGrowWithTheMicroBatchAndShrinkWithTheShards) {
  const Model model = build_transformer(samples::tiny_gpt());
  TorchMeter meter(quick());
  const auto saved = [&](int tensor, int micro_batch) {
    return meter.unit({&model, 1, tensor, micro_batch}).saved->value;
  };
  EXPECT_NEAR(saved(1, 4) / saved(1, 2), 2, 0.05);
  EXPECT_LT(saved(2, 2), 0.8 * saved(1, 2));
}

}  // namespace
}  // namespace plait::runtime
