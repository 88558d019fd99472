#include <gtest/gtest.h>

#include <string>

#include "cost/engine.h"
#include "io/cluster/catalogue.h"
#include "io/model/zoo.h"
#include "plan/describe.h"
#include "plan/sample_frameworks.h"
#include "plan/sample_problems.h"

// A model read op by op costs what it costs read layer by layer.
namespace plait {
namespace {

constexpr double kTolerance = 1e-9;  // relative

// The same plan for the model taken apart: a layer becomes its ops.
Plan at_op_granularity(const Plan& plan, const Model& model) {
  std::vector<int> first{0};
  for (int u = 0; u < model.unit_count(); ++u)
    first.push_back(first.back() + static_cast<int>(model.unit(u).ops.size()));
  Plan fine = plan;
  for (Stage& stage : fine.stages)
    for (Span& span : stage.spans) span.units = {first[span.units.begin], first[span.units.end]};
  return fine;
}

void expect_near(double coarse, double fine, const std::string& what) {
  EXPECT_NEAR(fine, coarse, kTolerance * std::abs(coarse)) << what;
}

void expect_same_cost(const Problem& problem, const Plan& plan, const std::string& what) {
  Problem fine = problem;
  fine.model = at_op_granularity(problem.model);
  const Estimate a = CostEngine(problem).estimate(plan);
  const Estimate b = CostEngine(fine).estimate(at_op_granularity(plan, problem.model));
  const std::string where = what + ", " + describe(plan);
  expect_near(a.step.value, b.step.value, where);
  expect_near(a.bubble.value, b.bubble.value, where + ": bubble");
  for (std::size_t s = 0; s < a.stages.size(); ++s) {
    const std::string at = where + ", stage " + std::to_string(s);
    for (const auto time : {&StageCost::forward, &StageCost::backward, &StageCost::recompute,
                            &StageCost::weight_gradient, &StageCost::forward_comm,
                            &StageCost::backward_comm, &StageCost::send, &StageCost::gradient_sync,
                            &StageCost::tied_sync, &StageCost::optimizer})
      expect_near((a.stages[s].*time).value, (b.stages[s].*time).value, at);
    for (const auto bytes :
         {&StageCost::weights, &StageCost::gradients, &StageCost::optimizer_state,
          &StageCost::activations, &StageCost::workspace, &StageCost::reserve})
      expect_near((a.stages[s].*bytes).value, (b.stages[s].*bytes).value, at + ": bytes");
  }
}

// Two stages of four devices, or one of eight; tensor degree 2.
Plan plan_of(const Model& model, int stages, ZeroStage zero, Recompute recompute) {
  Plan plan;
  plan.micro_batches = 4;
  plan.zero = zero;
  const int units = model.unit_count();
  for (int s = 0; s < stages; ++s) {
    Stage stage;
    stage.spans = {{.units = {units * s / stages, units * (s + 1) / stages},
                    .tensor = 2,
                    .data = 4 / stages,
                    .recompute = recompute}};
    for (int d = 0; d < 8 / stages; ++d) stage.devices.push_back(DeviceId{8 / stages * s + d});
    plan.stages.push_back(stage);
  }
  return plan;
}

// A dense decoder, one whose norms and gates differ, an encoder, a mixture with a layer that is not
// one, encoder and decoder, images.
Problem problem_with(const std::string& name, const DeviceType& device, int batch) {
  Problem problem;
  problem.model = zoo_model(name, std::nullopt)->model;
  problem.cluster = samples::cluster_of(device, 1, 8);
  problem.job.global_batch = batch;
  problem.job.framework = samples::framework("megatron");
  return problem;
}

void expect_same_cost_in_every_way(Problem problem, const std::string& what) {
  for (const AttentionKernel attention : {AttentionKernel::flash, AttentionKernel::plain})
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full})
      for (const ZeroStage zero :
           {ZeroStage::off, ZeroStage::optimizer, ZeroStage::gradients, ZeroStage::parameters}) {
        problem.job.attention = attention;
        for (const int stages : {1, 2})
          expect_same_cost(problem, plan_of(problem.model, stages, zero, recompute), what);
      }
}

TEST(Granularity, APlanCostsTheSameByOpAndByLayerWhateverTheFramework) {
  for (const std::string_view name : framework_names(builtin_catalogue()))
    for (const char* model : {"gpt2", "qwen3-0.6b", "bert-base", "deepseek-v2-lite", "t5-small"}) {
      // 16 samples: little work, so that the host is late; the H100 is fast.
      Problem problem = problem_with(model, samples::h100(), 16);
      problem.job.framework = samples::framework(std::string(name));
      expect_same_cost_in_every_way(problem, std::string(name) + " " + model);
    }
}

TEST(Granularity, APlanCostsTheSameByOpAndByLayerWhateverThePrecision) {
  for (const Precision precision :
       {Precision::fp32, Precision::fp16, Precision::pure_bf16, Precision::fp8})
    for (const char* framework : {"megatron", "eager", "fsdp"})
      for (const char* model : {"gpt2", "gemma-2-2b", "wide-resnet-250m", "transgan"}) {
        Problem problem = problem_with(model, samples::a100(), 64);
        problem.job.precision = precision;
        problem.job.framework = samples::framework(framework);
        expect_same_cost_in_every_way(problem, std::string(framework) + " " + model);
      }
}

TEST(Granularity, MeasuredLayersAreSharedOutAmongTheirOps) {
  Problem problem = problem_with("gpt2", samples::a100(), 64);
  for (const int micro_batch : {1, 4})
    for (const LayerKind& kind : problem.model.kinds) {
      ComputeSample sample;
      sample.forward = Seconds(2e-3 * micro_batch + 1e-3);
      sample.backward = Seconds(5e-3 * micro_batch + 1e-3);
      sample.saved_activations = Bytes(3e8 * micro_batch);
      sample.workspace = Bytes(1e8);
      sample.optimizer = Seconds(1e-3);
      problem.profile.compute[{
          .unit = kind.name, .device_type = "A100", .tensor = 2, .micro_batch = micro_batch}] =
          sample;
    }
  expect_same_cost_in_every_way(problem, "measured");
}

// A stage may begin inside a layer: the parts of a layer add up to it.
TEST(Granularity, TimesOfThePartsOfALayerAddUpToTheLayer) {
  Problem problem = problem_with("gpt2", samples::h100(), 16);
  for (const char* framework : {"megatron-lm", "eager"}) {
    problem.job.framework = samples::framework(framework);
    Problem fine = problem;
    fine.model = at_op_granularity(problem.model);
    ReplicaShape shape;
    shape.weight_group = {
        .members = 4, .nodes = 1, .per_node = 4, .intra = {BytesPerSecond(100e9), Seconds(5e-6)}};
    const UnitTable coarse(problem, shape);
    const UnitTable table(fine, shape);
    const int ops = static_cast<int>(problem.model.unit(1).ops.size());
    const int begin = static_cast<int>(problem.model.unit(0).ops.size());
    const UnitRange whole{begin, begin + ops};
    for (const Recompute recompute : {Recompute::none, Recompute::full}) {
      Seconds sum;
      for (int op = whole.begin; op < whole.end; ++op) {
        const Seconds part = table.cost({op, op + 1}, recompute).total();
        EXPECT_GT(part, Seconds(0)) << framework << " " << fine.model.unit(op).name;
        sum += part;
      }
      const Seconds layer = coarse.cost({1, 2}, recompute).total();
      expect_near(layer.value, sum.value, framework);
    }
  }
}

}  // namespace
}  // namespace plait
