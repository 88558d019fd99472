#include "plan/target.h"

#include <gtest/gtest.h>

#include <functional>

#include "plan/check.h"
#include "plan/sample_problems.h"

namespace plait {
namespace {

// A Llama of 8 layers with 16 heads, 4 of keys and values, on 2 nodes of 8 A100.
Problem small_problem() {
  return samples::problem_of(samples::llama(8, 2048, 5632, 16, 4),
                             samples::cluster_of(samples::a100(), 2, 8), {.global_batch = 32});
}

// Two stages of 8 devices, tp 2, dp 4: what every program with a pipeline can run.
Plan small_plan() {
  Plan plan;
  plan.micro_batches = 4;
  plan.zero = ZeroStage::off;
  for (int s = 0; s < 2; ++s) {
    Stage stage;
    stage.spans = {{.units = {5 * s, 5 * s + 5}, .tensor = 2, .data = 4}};
    for (int d = 0; d < 8; ++d) stage.devices.push_back(DeviceId(8 * s + d));
    plan.stages.push_back(stage);
  }
  return plan;
}

std::string reason(const char* target, const Problem& problem, const Plan& plan) {
  return why_not(*target_named(target), problem, plan).value_or("");
}

void cut_as(Plan& plan, int tensor, int data) {
  for (Stage& stage : plan.stages)
    for (Span& span : stage.spans) span.tensor = tensor, span.data = data;
}

// Recomputes so many layers of the first stage, which begins with the embedding, and of the second.
void recompute_first(Plan& plan, int first, int second) {
  for (Stage& stage : plan.stages) {
    const bool has_embedding = stage.spans.front().units.begin == 0;
    Span rest = stage.spans.front();
    Span& some = stage.spans.front();
    some.recompute = Recompute::full;
    some.units.end = rest.units.begin = some.units.begin + (has_embedding ? first + 1 : second);
    stage.spans.push_back(rest);
  }
}

// One stage on all 16 devices.
Plan one_stage(int tensor, int data) {
  Plan plan = small_plan();
  plan.micro_batches = 2;
  Stage& stage = plan.stages.front();
  stage.spans = {{.units = {0, 10}, .tensor = tensor, .data = data}};
  for (int d = 8; d < 16; ++d) stage.devices.push_back(DeviceId(d));
  plan.stages.pop_back();
  return plan;
}

TEST(Targets, MegatronRecomputesTheFirstLayersOfEveryStage) {
  // --recompute-method block --recompute-num-layers 3; the last stage has four layers and the head.
  const Problem problem = small_problem();
  Plan plan = small_plan();
  recompute_first(plan, 3, 3);
  ASSERT_TRUE(check_plan(problem, plan).empty());
  for (const char* name : {"megatron", "plait", "any"})
    EXPECT_EQ(reason(name, problem, plan), "") << name;
  // A stage that has fewer layers recomputes all that it has.
  plan = small_plan();
  plan.stages[0].spans[0].units = {0, 3};
  plan.stages[0].spans[0].recompute = Recompute::full;
  plan.stages[1].spans[0].units = {3, 6};
  plan.stages[1].spans[0].recompute = Recompute::full;
  plan.stages[1].spans.push_back(plan.stages[1].spans[0]);
  plan.stages[1].spans[1].units = {6, 10};
  plan.stages[1].spans[1].recompute = Recompute::none;
  ASSERT_TRUE(check_plan(problem, plan).empty());
  EXPECT_EQ(reason("megatron", problem, plan), "");
}

TEST(Targets, APlainPipelineRunsWhereverThereIsOne) {
  const Problem problem = small_problem();
  const Plan plan = small_plan();
  ASSERT_TRUE(check_plan(problem, plan).empty());
  for (const char* name : {"megatron", "megatron-deepspeed", "torchtitan", "plait", "any"})
    EXPECT_EQ(reason(name, problem, plan), "") << name;
  EXPECT_EQ(reason("fsdp", problem, plan), "PyTorch FSDP2 has no pipeline, the plan has 2 stages");
  EXPECT_EQ(reason("deepspeed", problem, plan),
            "DeepSpeed has no tensor parallelism, the plan has tp 2");
  EXPECT_EQ(reason("jax", problem, plan),
            "JAX has the schedules gpipe and interleaved, the plan 1f1b");
  EXPECT_EQ(reason("aceso", problem, plan),
            "Aceso's runtime trains in fp32, tf32 and fp16, not in bf16");
}

struct Change {
  const char* target;
  std::function<void(Problem&, Plan&)> make;
  const char* reason;
};

// Each rule by a plan that breaks it alone.
TEST(Targets, EachRuleHasItsSentence) {
  const Change changes[] = {
      {"megatron",
       [](Problem&, Plan& p) {
         p.stages[1].spans[0] = {{5, 10}, 4, 2};
       },
       "Megatron-LM has one tensor degree for all layers, the plan has 2, 4"},
      {"megatron", [](Problem&, Plan& p) { cut_as(p, 8, 1); },
       "Megatron-LM needs a tensor degree that divides the 4 heads of keys and values, the plan "
       "has 8"},
      {"megatron", [](Problem&, Plan& p) { p.schedule = Schedule::zb_h1; },
       "Megatron-LM has the schedules 1f1b and interleaved, the plan zb-h1"},
      {"megatron", [](Problem&, Plan& p) { p.zero = ZeroStage::parameters; },
       "Megatron-LM runs ZeRO 0 and 1 in a pipeline, the plan has 3"},
      {"megatron-deepspeed",
       [](Problem&, Plan& p) {
         p.stages[0].spans[0].units = {0, 4};
         p.stages[1].spans[0].units = {4, 10};
       },
       "Megatron-DeepSpeed gives every stage equally many or one more layers, the plan has 3, 5"},
      {"jax",
       [](Problem&, Plan& p) {
         p.schedule = Schedule::gpipe;
         p.stages[0].spans[0].units = {0, 6};
         p.stages[1].spans[0].units = {6, 10};
       },
       "JAX gives every stage equally many layers, the plan has 5, 3"},
      {"megatron", [](Problem&, Plan& p) { p.stages[0].spans[0].recompute = Recompute::full; },
       "Megatron-LM recomputes the first layers of every stage, equally many, the plan 4, 0"},
      {"megatron", [](Problem&, Plan& p) { p.stages[0].spans[0].recompute = Recompute::selective; },
       "Megatron-LM recomputes layers in full beside others that are not at all, the plan "
       "recomputes some selectively"},
      {"torchtitan", [](Problem&, Plan& p) { p.stages[0].spans[0].recompute = Recompute::full; },
       "TorchTitan recomputes the same in all stages, the plan none and full"},
      {"torchtitan", [](Problem&, Plan& p) { recompute_first(p, 1, 1); },
       "TorchTitan recomputes the same in all layers, the plan none and full"},
      {"megatron", [](Problem&, Plan& p) { recompute_first(p, 1, 3); },
       "Megatron-LM recomputes the first layers of every stage, equally many, the plan 1, 3"},
      {"megatron",
       [](Problem&, Plan& p) {
         recompute_first(p, 2, 2);
         std::swap(p.stages[1].spans[0].recompute, p.stages[1].spans[1].recompute);
       },
       "Megatron-LM recomputes the first layers of every stage, equally many, the plan 2, 2 that "
       "are not first"},
      {"plait", [](Problem&, Plan& p) { p.offload = 0.5; },
       "plait train keeps no optimizer states in host memory"},
      {"megatron",
       [](Problem&, Plan& p) {
         p.stages[0].shares = {1, 3, 2, 2};
       },
       "Megatron-LM gives every replica the same samples, the plan has shares"},
      {"megatron",
       [](Problem& problem, Plan&) {
         problem.cluster.nodes.push_back(problem.cluster.nodes[0]);
         problem.cluster.devices.push_back({0, 1});
       },
       "Megatron-LM uses all devices of a node or none, the plan 8 of the 9 of node"},
      {"megatron",
       [](Problem&, Plan& p) {
         for (int d = 0; d < 4; ++d) std::swap(p.stages[0].devices[d], p.stages[1].devices[d]);
       },
       "Megatron-LM numbers the devices of a node in a row, the plan does not: device 12 comes "
       "after 3"},
      {"megatron", [](Problem&, Plan& p) { p.stages[0].spans[0].split = 1; },
       "Megatron-LM cuts every product in its usual way, the plan has split 1"},
      {"plait", [](Problem&, Plan& p) { p.context = 2, cut_as(p, 2, 2); },
       "plait train has no context parallelism, the plan has cp 2"},
      {"plait", [](Problem&, Plan& p) { p.expert = 2; },
       "plait train has no expert parallelism, the plan has ep 2"},
      {"plait", [](Problem& problem, Plan&) { problem.job.adapters = true; },
       "plait train does not train adapters alone"},
      {"megatron",
       [](Problem& problem, Plan&) { problem.job.adapters = problem.job.four_bit_weights = true; },
       "Megatron-LM does not keep weights in 4 bits"},
      {"torchtitan",
       [](Problem& problem, Plan&) { problem.job.adapters = problem.job.four_bit_weights = true; },
       "TorchTitan does not keep weights in 4 bits"},
      {"megatron",
       [](Problem& problem, Plan& p) {
         problem.model.sequence_length = 6;
         p.context = 2;
         cut_as(p, 2, 2);
       },
       "Megatron-LM cuts sequences into 4 parts for cp 2, which 6 tokens are not a multiple of"},
      {"megatron",
       [](Problem& problem, Plan& p) {
         problem.job.attention = AttentionKernel::plain;
         p.context = 2;
         cut_as(p, 2, 2);
       },
       "Megatron-LM has context parallelism with flash attention only, the plan has cp 2"},
      {"megatron",
       [](Problem& problem, Plan&) {
         problem.cluster.device_types[0].peak[static_cast<int>(DType::bf16)] = FlopsPerSecond(0);
       },
       "A100 does not compute in bf16"},
      {"megatron",
       [](Problem& problem, Plan&) {
         problem.job.precision = Precision::fp16;
         problem.cluster.device_types[0].peak[static_cast<int>(DType::bf16)] = FlopsPerSecond(0);
       },
       "A100 is older than the devices that flash attention runs on"},
  };
  for (const Change& change : changes) {
    Problem problem = small_problem();
    Plan plan = small_plan();
    change.make(problem, plan);
    EXPECT_EQ(reason(change.target, problem, plan), change.reason);
    EXPECT_EQ(reason("any", problem, plan), "");
  }
}

TEST(Targets, ExpertsBesideATensorDegreeNeedSequenceParallelismInMegatron) {
  Problem problem = small_problem();
  Plan plan = small_plan();
  Op experts = problem.model.kinds[1].ops[1];
  experts.split = Split::experts;
  experts.count = 8;
  problem.model.kinds[1].ops.push_back(experts);
  EXPECT_EQ(reason("megatron", problem, plan),
            "Megatron-LM needs sequence parallelism where experts have a tensor degree");
  plan.sequence_parallel = true;
  EXPECT_EQ(reason("megatron", problem, plan), "");
}

TEST(Targets, CutsInsideLayersAreForOpLevelProgramsOnly) {
  Problem problem = small_problem();
  problem.model = at_op_granularity(problem.model);
  Plan plan = small_plan();
  const int units = problem.model.unit_count();
  plan.stages[0].spans[0].units = {0, 4};  // embedding, norm, qkv, ..
  plan.stages[1].spans[0].units = {4, units};
  ASSERT_TRUE(check_plan(problem, plan).empty());
  EXPECT_EQ(reason("megatron", problem, plan),
            "Megatron-LM cuts between layers only, the plan cuts inside one");
  problem.job.precision = Precision::fp16;
  EXPECT_EQ(reason("aceso", problem, plan), "");
}

TEST(Targets, ZeroStagesDependOnThePipeline) {
  const Problem problem = small_problem();
  Plan plan = one_stage(1, 16);
  plan.zero = ZeroStage::parameters;
  ASSERT_TRUE(check_plan(problem, plan).empty());
  for (const char* name : {"megatron-deepspeed", "deepspeed", "fsdp", "torchtitan", "jax"})
    EXPECT_EQ(reason(name, problem, plan), "") << name;
  EXPECT_EQ(reason("megatron", problem, plan), "Megatron-LM runs ZeRO 0 and 1, the plan has 3");
  plan.zero = ZeroStage::optimizer;
  EXPECT_EQ(reason("fsdp", problem, plan), "PyTorch FSDP2 runs ZeRO 0, 2 and 3, the plan has 1");
}

TEST(Targets, HostMemoryGoesWithZeroStages) {
  const Problem problem = small_problem();
  Plan plan = one_stage(1, 16);
  plan.offload = 1;
  EXPECT_EQ(reason("megatron", problem, plan),
            "Megatron-LM keeps optimizer states in host memory from ZeRO 1 on, the plan has 0");
  EXPECT_EQ(reason("jax", problem, plan), "");
  plan.zero = ZeroStage::optimizer;
  EXPECT_EQ(reason("megatron", problem, plan), "");
  EXPECT_EQ(reason("deepspeed", problem, plan), "");
  plan.offload = 0.5;
  EXPECT_EQ(reason("megatron", problem, plan), "");
  EXPECT_EQ(reason("deepspeed", problem, plan),
            "DeepSpeed keeps a part of the optimizer states in host memory from ZeRO 3 on, the "
            "plan has offload 0.5 and ZeRO 1");
  Target whole = *target_named("jax");
  whole.parts_from = std::nullopt;
  EXPECT_EQ(why_not(whole, problem, plan),
            "JAX keeps all optimizer states in host memory or none, the plan has 0.5");
}

// What exporters add to a row: accelerate's processes, axes of a mesh.
TEST(Targets, RulesThatNoRowHas) {
  const Problem problem = small_problem();
  Target target{.name = "own", .program = "It"};
  target.equal_nodes = target.experts_over_replicas = true;
  Plan plan = one_stage(1, 16);
  EXPECT_EQ(why_not(target, problem, plan), std::nullopt);
  plan.expert = 3;
  EXPECT_EQ(why_not(target, problem, plan),
            "It has experts over whole replicas, the plan has dp 16 and ep 3");
  plan.expert = 1;
  EXPECT_EQ(why_not(target, problem, plan), std::nullopt);
  plan.stages[0].devices.resize(12);  // 8 of the first node, 4 of the second
  EXPECT_EQ(why_not(target, problem, plan),
            "It starts equally many processes on every node, the plan has 4 and 8");
}

TEST(Targets, KeyValueHeadsOfLatentAttentionAreAllHeads) {
  TransformerConfig config = samples::llama(2, 1024, 2816, 16, 4);
  EXPECT_EQ(key_value_heads(build_transformer(config)), 4);
  config.kv_heads = 0;
  EXPECT_EQ(key_value_heads(build_transformer(config)), 16);
}

// TorchTitan's mesh dimension of FSDP has the devices that share sequences, whatever is asked for.
TEST(Target, TorchtitanCutsStatesOverAContextGroup) {
  const Problem problem = small_problem();
  Plan plan = one_stage(1, 8);
  plan.context = 2;
  EXPECT_EQ(reason("torchtitan", problem, plan),
            "TorchTitan cuts states over devices that share sequences, the plan has ZeRO 0");
  plan.zero = ZeroStage::gradients;
  EXPECT_EQ(reason("torchtitan", problem, plan), "");
}

TEST(Target, JaxCutsArraysIntoEqualParts) {
  Problem problem = small_problem();
  Plan plan = one_stage(1, 16);
  plan.zero = ZeroStage::parameters;
  EXPECT_EQ(reason("jax", problem, plan), "");
  std::get<TransformerConfig>(problem.model.architecture).hidden = 2040;
  EXPECT_EQ(reason("jax", problem, plan),
            "JAX cuts states evenly, the plan over 16 devices, of which a width of 2040 is not a "
            "multiple");
  EXPECT_EQ(reason("torchtitan", problem, plan), "");
  plan.zero = ZeroStage::off;
  EXPECT_EQ(reason("jax", problem, plan), "");
}

TEST(Targets, DevicesOfOnePlanSumWithEachOther) {
  Problem problem = small_problem();
  const Plan plan = small_plan();
  DeviceType other = problem.cluster.device_types.front();
  other.name = "MI300X";
  other.collectives = "RCCL";
  problem.cluster.device_types.push_back(other);
  EXPECT_EQ(reason("megatron", problem, plan), "");  // it is there, but not used
  for (Device& device : problem.cluster.devices)
    if (device.node == 1) device.type = 1;
  EXPECT_EQ(reason("megatron", problem, plan),
            "Megatron-LM sums over all devices with one library, " +
                problem.cluster.device_types.front().name + " has NCCL and MI300X has RCCL");
  EXPECT_EQ(reason("any", problem, plan), "");
  for (Device& device : problem.cluster.devices) device.type = 1;
  EXPECT_EQ(reason("megatron", problem, plan), "");
}

TEST(Targets, NamesAreFoundAndUnknownOnesAreNot) {
  for (const std::string_view name : target_names()) EXPECT_EQ(target_named(name)->name, name);
  EXPECT_EQ(target_named("megatrom"), nullptr);
  EXPECT_EQ(targets().back(), Target{});
}

}  // namespace
}  // namespace plait
