// How fast plans are costed, on one core:
//   uniform_plans   closed form, all uniform plans of GPT-3 175B on 512 devices: plans a second
//   engine_plans    the same plans through CostEngine::estimate()
//   simulation      64 stages x 512 micro-batches, event by event
#include <benchmark/benchmark.h>

#include <vector>

#include "cost/simulator.h"
#include "cost/uniform.h"
#include "io/load_cluster.h"
#include "io/zoo.h"
#include "plan/check.h"

namespace plait {
namespace {

Problem gpt3_problem() {
  Problem problem;
  problem.model = build_transformer(*zoo_transformer("gpt3-175b"));
  problem.cluster = load_cluster("64xA100-80GB:8").cluster;
  problem.job.global_batch = 1536;
  return problem;
}

std::vector<UniformPlan> all_plans(const Problem& problem) {
  const int layers = problem.model.unit_count() - 2;
  std::vector<UniformPlan> plans;
  for (const int tensor : {1, 2, 4, 8})
    for (int pipeline = 1; pipeline <= layers; ++pipeline)
      for (int data = 1; data <= 512; data *= 2)
        for (int m = 1; m <= 1536; m *= 2)
          for (const ZeroStage zero : {ZeroStage::off, ZeroStage::optimizer})
            for (const Recompute recompute :
                 {Recompute::none, Recompute::selective, Recompute::full})
              for (const Schedule schedule : {Schedule::gpipe, Schedule::one_f_one_b}) {
                UniformPlan plan{.tensor = tensor,
                                 .data = data,
                                 .pipeline = pipeline,
                                 .micro_batches = m,
                                 .zero = zero,
                                 .sequence_parallel = tensor > 1,
                                 .recompute = recompute,
                                 .schedule = schedule};
                const bool whole = layers % pipeline == 0 && 1536 % (m * data) == 0;
                if (!whole || tensor * data * pipeline > 512) continue;
                if (check_plan(problem, plan_of(problem, plan)).empty()) plans.push_back(plan);
              }
  return plans;
}

void uniform_plans(benchmark::State& state) {
  const Problem problem = gpt3_problem();
  const CostEngine engine(problem);
  UniformCost uniform(engine);
  const std::vector<UniformPlan> plans = all_plans(problem);
  while (state.KeepRunning())
    for (const UniformPlan& plan : plans) benchmark::DoNotOptimize(uniform.evaluate(plan));
  state.SetItemsProcessed(state.iterations() * static_cast<long>(plans.size()));
  state.counters["distinct plans"] = static_cast<double>(plans.size());
}
BENCHMARK(uniform_plans)->Unit(benchmark::kMillisecond);

void engine_plans(benchmark::State& state) {
  const Problem problem = gpt3_problem();
  const CostEngine engine(problem);
  std::vector<Plan> plans;
  for (const UniformPlan& plan : all_plans(problem)) plans.push_back(plan_of(problem, plan));
  while (state.KeepRunning())
    for (const Plan& plan : plans) benchmark::DoNotOptimize(engine.estimate(plan));
  state.SetItemsProcessed(state.iterations() * static_cast<long>(plans.size()));
}
BENCHMARK(engine_plans)->Unit(benchmark::kMillisecond);

void simulation(benchmark::State& state) {
  Pipeline pipeline;
  pipeline.schedule = static_cast<Schedule>(state.range(0));
  pipeline.stages = 64;
  pipeline.chunks = pipeline.schedule == Schedule::zb_v ? 2 : 1;
  pipeline.micro_batches = 512;
  const bool split = splits_backward(pipeline.schedule);
  for (int s = 0; s < pipeline.stages * pipeline.chunks; ++s)
    pipeline.time.push_back({Seconds(10e-3 + 1e-5 * (s % 7)), Seconds(split ? 10e-3 : 20e-3),
                             Seconds(split ? 10e-3 : 0)});
  pipeline.send.assign(pipeline.time.size() - 1, Seconds(1e-4));
  while (state.KeepRunning()) benchmark::DoNotOptimize(simulate(pipeline));
}
BENCHMARK(simulation)
    ->Arg(static_cast<int>(Schedule::gpipe))
    ->Arg(static_cast<int>(Schedule::one_f_one_b))
    ->Arg(static_cast<int>(Schedule::zb_h1))
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace plait
