#include "cost/stage_memo.h"

#include <gtest/gtest.h>

#include <random>

#include "plan/sample_problems.h"

namespace plait {
namespace {

Pipeline random_pipeline(std::mt19937& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % n); };
  Pipeline pipeline;
  pipeline.schedule = static_cast<Schedule>(below(6));
  const bool in_chunks =
      pipeline.schedule == Schedule::interleaved || pipeline.schedule == Schedule::zb_v;
  pipeline.stages = (in_chunks ? 2 : 1) + below(9);
  pipeline.chunks = in_chunks ? 2 : 1;
  pipeline.micro_batches = pipeline.stages * (1 + below(3));
  const auto time = [&] { return Seconds(1 + 0.25 * below(5)); };
  for (int i = 0; i < pipeline.stages * pipeline.chunks; ++i)
    pipeline.time.push_back(
        {time(), time(), splits_backward(pipeline.schedule) ? time() : Seconds(0)});
  for (int i = 0; i + 1 < pipeline.stages * pipeline.chunks; ++i)
    pipeline.send.push_back(0.1 * time());
  return pipeline;
}

// Whatever limits a pipeline was asked for with before: one that is below the limit is what
// simulate() says, any other is not below it.
TEST(StageMemo, APipelineThatIsRememberedIsTheOneThatIsSimulated) {
  Problem problem;
  StageMemo memo(problem);
  std::mt19937 random(3);
  int below = 0;
  for (int i = 0; i < 300; ++i) {
    const Pipeline pipeline = random_pipeline(random);
    const Trace free = simulate(pipeline);
    for (int k = 0; k < 6; ++k) {
      const Seconds limit =
          k == 3 ? Seconds(HUGE_VAL)
                 : (0.75 + 0.1 * static_cast<double>(random() % 6)) * free.longest_stage;
      const Trace own = memo.simulated(pipeline, limit);
      if (free.longest_stage >= limit) {
        EXPECT_GE(own.longest_stage, limit);
        continue;
      }
      ++below;
      EXPECT_EQ(own.longest_stage, free.longest_stage);
      EXPECT_EQ(own.makespan, free.makespan);
      EXPECT_EQ(own.busy, free.busy);
      EXPECT_EQ(own.stage_begin, free.stage_begin);
      EXPECT_EQ(own.stage_end, free.stage_end);
    }
  }
  EXPECT_GT(below, 500);
}

}  // namespace
}  // namespace plait
