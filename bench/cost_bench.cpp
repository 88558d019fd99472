// How fast plans are costed, on one core:
//   engine_plans    all uniform plans of GPT-3 175B on 512 devices by CostEngine::estimate(): plans
//   a second simulation      64 stages x 512 micro-batches, event by event
#include <benchmark/benchmark.h>

#include <vector>

#include "cost/engine.h"
#include "cost/pipeline/simulator.h"
#include "io/cluster/catalogue.h"
#include "io/cluster/load_cluster.h"
#include "io/model/zoo.h"
#include "plan/check.h"

namespace plait {
namespace {

Problem gpt3_problem() {
  Problem problem;
  problem.model = build_transformer(*zoo_transformer("gpt3-175b"));
  problem.cluster = load_cluster("64xA100-80GB:8").cluster;
  problem.job.global_batch = 1536;
  problem.job.framework = find_framework(builtin_catalogue(), "megatron", "bench");
  return problem;
}

// A plan in which all stages are alike: devices in order, the same number of layers in each stage,
// the embedding with the first of them and the head with the last.
Plan uniform_plan(int layers, int tensor, int data, int pipeline, Recompute recompute) {
  Plan plan;
  const int each = layers / pipeline;
  const int size = tensor * data;
  for (int s = 0; s < pipeline; ++s) {
    Stage stage;
    stage.spans.push_back(
        {.units = {s == 0 ? 0 : 1 + s * each, s + 1 == pipeline ? layers + 2 : 1 + (s + 1) * each},
         .tensor = tensor,
         .data = data,
         .recompute = recompute});
    for (int d = 0; d < size; ++d) stage.devices.push_back(DeviceId{s * size + d});
    plan.stages.push_back(std::move(stage));
  }
  return plan;
}

std::vector<Plan> all_plans(const Problem& problem) {
  const int layers = problem.model.unit_count() - 2;
  std::vector<Plan> plans;
  for (const int tensor : {1, 2, 4, 8})
    for (int pipeline = 1; pipeline <= layers; ++pipeline)
      for (int data = 1; data <= 512; data *= 2)
        for (int m = 1; m <= 1536; m *= 2)
          for (const ZeroStage zero : {ZeroStage::off, ZeroStage::optimizer})
            for (const Recompute recompute :
                 {Recompute::none, Recompute::selective, Recompute::full})
              for (const Schedule schedule : {Schedule::gpipe, Schedule::one_f_one_b}) {
                const bool whole = layers % pipeline == 0 && 1536 % (m * data) == 0;
                if (!whole || tensor * data * pipeline > 512) continue;
                Plan plan = uniform_plan(layers, tensor, data, pipeline, recompute);
                plan.micro_batches = m;
                plan.zero = zero;
                plan.sequence_parallel = tensor > 1;
                plan.schedule = schedule;
                if (check_plan(problem, plan).empty()) plans.push_back(std::move(plan));
              }
  return plans;
}

void engine_plans(benchmark::State& state) {
  const Problem problem = gpt3_problem();
  const CostEngine engine(problem);
  const std::vector<Plan> plans = all_plans(problem);
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
