#include "search/paths/critical_path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "cost/pipeline/simulator.h"

namespace plait {
namespace {

struct DrawnStep {
  StepGraph::Shape shape;
  PipelineTimes times;
};

void draw_times(std::mt19937_64& random, DrawnStep& step) {
  std::uniform_real_distribution<double> any(0.1, 1);
  const int chunks = step.shape.stages * step.shape.chunks;
  step.times = {};
  for (int i = 0; i < chunks; ++i) {
    step.times.forward.push_back(any(random));
    step.times.backward.push_back(2 * any(random));
  }
  for (int s = 0; s < step.shape.stages; ++s) step.times.finish.push_back(3 * any(random));
}

DrawnStep drawn_step(std::mt19937_64& random) {
  std::uniform_real_distribution<double> any(0, 1);
  DrawnStep out;
  out.shape.stages = 2 + static_cast<int>(random() % 4);
  out.shape.chunks = 1 + static_cast<int>(random() % 3);
  out.shape.schedule =
      out.shape.chunks > 1 ? Schedule::interleaved : static_cast<Schedule>(random() % 2);
  out.shape.micro_batches = out.shape.stages * (1 + static_cast<int>(random() % 3));
  for (int k = 0; k + 1 < out.shape.stages * out.shape.chunks; ++k) {
    out.shape.send.push_back(any(random));
    out.shape.busy.push_back(out.shape.send.back() * (random() % 2 == 0 ? 1 : 0.2));
  }
  draw_times(random, out);
  return out;
}

double simulated_step(const DrawnStep& step) {
  Pipeline pipeline{.schedule = step.shape.schedule,
                    .stages = step.shape.stages,
                    .chunks = step.shape.chunks,
                    .micro_batches = step.shape.micro_batches};
  for (std::size_t i = 0; i < step.times.forward.size(); ++i)
    pipeline.time.push_back({Seconds(step.times.forward[i]), Seconds(step.times.backward[i]), {}});
  for (const double send : step.shape.send) pipeline.send.emplace_back(send);
  for (const double busy : step.shape.busy) pipeline.send_busy.emplace_back(busy);
  const Trace trace = simulate(pipeline);
  double end = 0;
  for (int s = 0; s < step.shape.stages; ++s)
    end = std::max(end, trace.stage_end[s].value + step.times.finish[s]);
  return end;
}

TEST(CriticalPath, IsAsLongAsTheSimulatedStep) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 300; ++i) {
    const DrawnStep step = drawn_step(random);
    StepGraph graph(step.shape);
    EXPECT_NEAR(graph.longest(step.times).length(step.times), simulated_step(step), 1e-9) << i;
  }
}

TEST(CriticalPath, IsNeverLongerThanTheStepWithOtherTimes) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 300; ++i) {
    DrawnStep step = drawn_step(random);
    StepGraph graph(step.shape);
    const StepPath path = graph.longest(step.times);
    for (int other = 0; other < 4; ++other) {
      draw_times(random, step);
      EXPECT_LE(path.length(step.times), simulated_step(step) + 1e-9) << i;
    }
  }
}

}  // namespace
}  // namespace plait
