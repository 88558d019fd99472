#include "search/bound/step_paths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "cost/pipeline/simulator.h"

namespace plait {
namespace {

Pipeline random_pipeline(std::mt19937_64& random, Schedule schedule) {
  std::uniform_real_distribution<double> time(0.1, 2.0);
  Pipeline p;
  p.schedule = schedule;
  p.stages = std::uniform_int_distribution(2, 8)(random);
  p.micro_batches = std::uniform_int_distribution(1, 12)(random);
  for (int s = 0; s < p.stages; ++s)
    p.time.push_back({Seconds(time(random)), Seconds(time(random)), Seconds(0)});
  for (int s = 0; s + 1 < p.stages; ++s) p.send.emplace_back(time(random) / 4);
  return p;
}

// The stage at which all pivots stand, with finish times, as a sum over stages.
double length_of(const PivotPath& path, const Pipeline& p, const std::vector<double>& finish,
                 int pivot, double longest) {
  double sum = 0;
  for (int s = 0; s < p.stages; ++s) {
    const PathWeights& part = s < pivot ? path.before : s == pivot ? path.at : path.after;
    const double forward = p.time[s].forward.value;
    const double backward = p.time[s].backward.value;
    sum += part.time * (forward + backward) + part.forward * forward +
           part.longer * std::max(forward, backward) + part.finish * finish[s] +
           part.each * longest;
    if (s == 0) sum += part.closing * finish[s];
    // Half of a hand-over there and back is one way.
    if (s > 0) sum += part.in * p.send[s - 1].value;
    if (s + 1 < p.stages) sum += part.out * p.send[s].value;
  }
  return sum;
}

// A step ends when every stage has done its last task and then its finish.
TEST(StepPaths, NoStepIsShorterThanAnyPathAtAnyStage) {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> time(0.0, 3.0);
  for (int i = 0; i < 3000; ++i) {
    const Schedule schedule = i % 3 == 0 ? Schedule::gpipe : Schedule::one_f_one_b;
    const Pipeline p = random_pipeline(random, schedule);
    std::vector<double> finish;
    for (int s = 0; s < p.stages; ++s) finish.push_back(time(random));
    const Trace trace = simulate(p);
    double step = 0;
    double longest = 0;
    for (int s = 0; s < p.stages; ++s) {
      step = std::max(step, trace.stage_end[s].value + finish[s]);
      longest = std::max(longest, (p.time[s].forward + p.time[s].backward).value);
    }
    const PathFamily fill = schedule == Schedule::gpipe  ? PathFamily::gpipe
                            : p.stages < p.micro_batches ? PathFamily::filled
                                                         : PathFamily::filling;
    for (const PivotPath& path : step_paths(fill, p.micro_batches, 1))
      for (int pivot = 0; pivot < p.stages; ++pivot)
        ASSERT_LE(length_of(path, p, finish, pivot, longest), step * (1 + 1e-9))
            << "pipeline " << i << ", " << p.stages << " stages, pivot " << pivot << ", m "
            << p.micro_batches;
  }
}

// Four stages of 1 s forward and 2 s backward, eight micro-batches: (8 + 3) 3 s; from the first
// stage 2 R + (m - k + 1) x = 18 + 15 s, from the last one L + m x = 9 + 24 s.
TEST(StepPaths, AreTightForEqualStages) {
  Pipeline p;
  p.stages = 4;
  p.micro_batches = 8;
  p.time.assign(4, {Seconds(1), Seconds(2), Seconds(0)});
  p.send.assign(3, Seconds(0));
  const std::vector<double> finish(4, 0);
  const std::vector<PivotPath> paths = step_paths(PathFamily::filled, 8, 1);
  EXPECT_DOUBLE_EQ(length_of(paths[2], p, finish, 0, 3), 33);
  EXPECT_DOUBLE_EQ(length_of(paths[0], p, finish, 3, 3), 33);
  EXPECT_DOUBLE_EQ(simulate(p).makespan.value, 33);
}

}  // namespace
}  // namespace plait
