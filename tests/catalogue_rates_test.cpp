#include <gtest/gtest.h>

#include <cmath>

#include "cost/engine.h"
#include "io/cluster/catalogue.h"
#include "plan/sample_frameworks.h"
#include "plan/sample_problems.h"

// What must hold of predictions on every device type of the catalogue, measured or not.
namespace plait {
namespace {

constexpr const char* kFrameworks[] = {"megatron",  "megatron-lm", "fsdp", "fsdp-compile",
                                       "deepspeed", "eager",       "jax"};
constexpr double kRounding = 1e-9;

// Four layers of Llama 2 7B on a node of eight, data-parallel, `samples` a replica one by one.
Problem problem_on(const DeviceType& type, const char* framework, int sequence, int samples) {
  TransformerConfig config = samples::llama(4, 4096, 11008, 32, 32);
  config.sequence = sequence;
  config.vocabulary = 32000;
  Job job;
  job.global_batch = 8 * samples;
  job.framework = samples::framework(framework);
  job.precision = type.supports(DType::bf16) ? Precision::bf16 : Precision::fp16;
  return samples::problem_of(config, samples::cluster_of(type, 1, 8), job);
}

Plan plan_of(const Problem& problem, int micro_batches) {
  Plan plan;
  plan.micro_batches = micro_batches;
  Stage stage;
  stage.spans.push_back({.units = {0, problem.model.unit_count()}, .tensor = 1, .data = 8});
  for (int d = 0; d < 8; ++d) stage.devices.push_back(DeviceId(d));
  plan.stages.push_back(stage);
  return plan;
}

Seconds step_of(const Problem& problem, int micro_batches) {
  return CostEngine(problem).estimate(plan_of(problem, micro_batches)).step;
}

template <typename Check>
void on_every_device(const Check& check) {
  for (const DeviceEntry& entry : builtin_catalogue().devices)
    for (const char* framework : kFrameworks) {
      DeviceType type = entry.type;
      if (entry.in_clusters) type.efficiency = *entry.in_clusters;
      SCOPED_TRACE(type.name + ", " + framework);
      check(type, framework);
    }
}

TEST(CatalogueRates, LargeWorkReachesWhatTrainingReaches) {
  on_every_device([](const DeviceType& type, const char* framework) {
    const Problem problem = problem_on(type, framework, 4096, 32);
    const double mfu = model_flops_utilisation(problem, plan_of(problem, 32), step_of(problem, 32));
    EXPECT_GT(mfu, 0.12);
    EXPECT_LT(mfu, 0.75);
  });
}

TEST(CatalogueRates, TwiceTheSamplesTakeAtMostTwiceAsLong) {
  on_every_device([](const DeviceType& type, const char* framework) {
    const Problem problem = problem_on(type, framework, 1024, 1024);
    Seconds before = step_of(problem, 1024);
    for (int micro_batches = 512; micro_batches >= 1; micro_batches /= 2) {
      const Seconds larger = step_of(problem, micro_batches);  // micro-batches twice as large
      EXPECT_LE(larger.value, before.value * (1 + kRounding)) << micro_batches;
      before = larger;
    }
    EXPECT_LE(step_of(problem_on(type, framework, 1024, 2048), 2048).value,
              2 * step_of(problem, 1024).value * (1 + kRounding));
  });
}

TEST(CatalogueRates, TwiceTheSequenceTakesOneToFourTimesAsLong) {
  on_every_device([](const DeviceType& type, const char* framework) {
    Seconds before = step_of(problem_on(type, framework, 512, 1), 1);
    for (int sequence = 1024; sequence <= 1'048'576; sequence *= 2) {
      const Seconds after = step_of(problem_on(type, framework, sequence, 1), 1);
      EXPECT_GE(after.value, before.value * (1 - kRounding)) << sequence;
      EXPECT_LE(after.value, 4 * before.value * (1 + kRounding)) << sequence;
      before = after;
    }
  });
}

TEST(CatalogueRates, AFasterPartNeverMakesAStepLonger) {
  on_every_device([](const DeviceType& type, const char* framework) {
    const Seconds before = step_of(problem_on(type, framework, 2048, 2), 2);
    DeviceType compute = type;
    for (FlopsPerSecond& peak : compute.peak) peak = peak * 1.3;
    DeviceType memory = type;
    memory.memory_bandwidth = memory.memory_bandwidth * 1.3;
    DeviceType links = type;
    links.intra.bandwidth = links.intra.bandwidth * 1.3;
    for (const DeviceType& faster : {compute, memory, links}) {
      const Seconds after = step_of(problem_on(faster, framework, 2048, 2), 2);
      EXPECT_LE(after.value, before.value * (1 + kRounding));
      EXPECT_GE(after.value, before.value / 1.3 * (1 - kRounding));
    }
  });
}

}  // namespace
}  // namespace plait
