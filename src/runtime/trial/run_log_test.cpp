#include "runtime/trial/run_log.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace plait::runtime {
namespace {

RunLog after(const std::vector<std::string>& lines, const LogPatterns& patterns = {}) {
  RunLog log(patterns, 64);
  for (const std::string& line : lines) log.read(line);
  return log;
}

TEST(RunLogTest, ReadsMegatronLm) {
  const RunLog log = after({
      (" iteration        1/     100 | consumed samples:           64 | elapsed time per iteration "
       "(ms): 9000.5 | learning rate: 1.000E-06 | global batch size:    64 |"),
      ("[Rank 0] (after 1 iterations) memory (MB) | allocated: 1024.0 | max allocated: 2048.0 | "
       "reserved: 3072.0 | max reserved: 3072.0"),
      ("[Rank 8] (after 1 iterations) memory (MB) | allocated: 1024.0 | max allocated: 4096.0 | "
       "reserved: 5000.0 | max reserved: 5000.0"),
      " iteration        2/     100 | elapsed time per iteration (ms): 1500.0 | learning rate",
      " iteration        3/     100 | elapsed time per iteration (ms): 1600.0 | learning rate",
  });
  ASSERT_EQ(log.steps().size(), 3U);
  EXPECT_DOUBLE_EQ(log.median_step(1, 10)->value, 1.55);
  EXPECT_DOUBLE_EQ(log.memory()->value, 4096 * 0x1p20);
  EXPECT_FALSE(log.median_step(3, 10));
}

TEST(RunLogTest, ReadsDeepSpeedsThroughput) {
  // 64 samples a step at 32 a second: 2 s.
  const RunLog log = after(
      {"[INFO] [timer.py:264:stop] epoch=0/micro_step=20/global_step=10, RunningAvgSamplesPerSec="
       "30.1, CurrSamplesPerSec=32.0, MemAllocated=1.5GB, MaxMemAllocated=12.25GB"});
  EXPECT_DOUBLE_EQ(log.median_step(0, 10)->value, 2);
  EXPECT_DOUBLE_EQ(log.memory()->value, 12.25 * 0x1p30);
}

TEST(RunLogTest, ReadsDeepSpeedsBreakdownOnceAStep) {
  const RunLog log = after({
      "[Rank 0] time (ms) | fwd_microstep: 10.00 | bwd_microstep: 20.00 | step_microstep: 0.01",
      "[Rank 0] time (ms) | fwd: 100.00 | bwd: 200.00 | bwd_inner: 150.00 | bwd_allreduce: 50.00 | "
      "step: 25.00",
  });
  ASSERT_EQ(log.steps().size(), 1U);
  EXPECT_DOUBLE_EQ(log.steps()[0].value, 0.325);
}

TEST(RunLogTest, ReadsDeepSpeedsPipelineAndNeMo) {
  EXPECT_DOUBLE_EQ(
      after({"steps: 10 loss: 4.5 iter time (s): 1.250 samples/sec: 51.2"}).steps()[0].value, 1.25);
  EXPECT_DOUBLE_EQ(after({"Epoch 0: train_step_timing in s: 0.75, loss=1"}).steps()[0].value, 0.75);
}

TEST(RunLogTest, ReadsPlaitTrain) {
  const RunLog log = after({"step 3 | loss 4.52 | time 0.125 s | memory 1.5 GiB"});
  EXPECT_DOUBLE_EQ(log.steps()[0].value, 0.125);
  EXPECT_DOUBLE_EQ(log.memory()->value, 1.5 * 0x1p30);
}

TEST(RunLogTest, OneWayOfPrintingStepsCounts) {
  // DeepSpeed prints a step under Megatron's loop in both ways.
  const RunLog log = after({"elapsed time per iteration (ms): 1000.0 |", "CurrSamplesPerSec=60.0,",
                            "elapsed time per iteration (ms): 1100.0 |"});
  EXPECT_EQ(log.steps().size(), 2U);
}

TEST(RunLogTest, OwnPatternsHaveUnits) {
  const RunLog log = after({"took 250 ms using 2.5 MB", "took 2 s using 1 GiB"},
                           {"took ([0-9.]+) (\\w+)", "using ([0-9.]+) (\\w+)"});
  EXPECT_DOUBLE_EQ(log.steps()[0].value, 0.25);
  EXPECT_DOUBLE_EQ(log.steps()[1].value, 2);
  EXPECT_DOUBLE_EQ(log.memory()->value, 0x1p30);
  EXPECT_DOUBLE_EQ(after({"took 3"}, {"took ([0-9.]+)", ""}).steps()[0].value, 3);
}

TEST(RunLogTest, WrongPatternsAreRefused) {
  EXPECT_THROW(RunLog({"took [0-9", ""}, 1), InputError);
  EXPECT_THROW(RunLog({"took [0-9]+", ""}, 1), InputError);
}

TEST(RunLogTest, OutOfMemoryIsRecognised) {
  for (const char* line :
       {"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
        "RuntimeError: CUDA out of memory.", "torch.OutOfMemoryError: CUDA out of memory",
        "NCCL WARN Cuda failure 'out of memory'", "RuntimeError: CUDA error: out of memory",
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while",
        "RuntimeError: [enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"})
    EXPECT_EQ(after({line}).out_of_memory(), line);
  EXPECT_EQ(after({"memory (MB) | allocated: 1"}).out_of_memory(), "");
}

TEST(RunLogTest, WithoutAnErrorTheLastTextThatIsNoStepTellsWhatHappened) {
  const std::string step = "elapsed time per iteration (ms): 5.0";
  EXPECT_EQ(after({"sh: 1: run.sh: not found", step, "", std::string("\x01\xff", 2)}).last_error(),
            "sh: 1: run.sh: not found");
  EXPECT_EQ(after({"ValueError: no", "3 of 4 ranks ended"}).last_error(), "ValueError: no");
  EXPECT_EQ(after({step}).last_error(), "");
}

TEST(RunLogTest, LongLinesAreNoTrouble) {
  const RunLog log = after({std::string(60000, 'x')}, {"(x+x+)+y([0-9])", ""});
  EXPECT_TRUE(log.steps().empty());
}

}  // namespace
}  // namespace plait::runtime
