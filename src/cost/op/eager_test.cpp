#include "cost/op/eager.h"

#include <gtest/gtest.h>

#include "cost/layer/layer_cost.h"
#include "cost/op/kernels.h"
#include "cost/op/op_time.h"
#include "cost/op/saved_bytes.h"
#include "plan/sample_frameworks.h"
#include "plan/sample_problems.h"

namespace plait {
namespace {

Job eager_job(Precision precision) {
  Job job;
  job.global_batch = 1;
  job.framework = samples::framework("eager");
  job.precision = precision;
  return job;
}

// Bytes that a block keeps for one position, in units of the hidden size.
double saved_per_feature(const TransformerConfig& config, Precision precision) {
  const Model model = build_transformer(config);
  Bytes saved;
  for (const Op& op : model.unit(1).ops)
    saved += saved_bytes(eager_job(precision), model, op, {.samples = 1}).all;
  return saved.value / config.sequence / config.hidden;
}

TEST(Eager, Gpt2BlockKeepsTheTensorsOfItsActivation) {
  TransformerConfig gpt = samples::gpt(1, 1024, 16, 1024);
  gpt.dropout = false;
  const double softmax = 4.0 * 16 / 1024;  // a value for each head and position
  // bf16: norms 2 * 2, inputs of qkv and up 2 * 2, q k v 6, projection's input 2, gelu_new and
  // down's input 5 tensors of 4 h: 40. 56 in all.
  EXPECT_NEAR(saved_per_feature(gpt, Precision::pure_bf16), 56 + softmax, 1e-9);
  // Autocast: norms 2 * 4 of the fp32 stream, inputs 2 * 2, q k v 6, 2, and 64 for the MLP.
  EXPECT_NEAR(saved_per_feature(gpt, Precision::bf16), 84 + softmax, 1e-9);
}

TEST(Eager, LlamaBlockKeepsNormsInFp32AndThreeTensorsOfItsGate) {
  const TransformerConfig llama = samples::llama(1, 2048, 5632, 32, 4);
  // Norms 2 * 6, inputs 2 * 2, q k v 2 * (1 + 2 / 8), projection's input 2, and 4 tensors of ffn.
  const double expected = 12 + 4 + 2.5 + 2 + 8 * 5632.0 / 2048 + 4.0 * 32 / 2048;
  EXPECT_NEAR(saved_per_feature(llama, Precision::pure_bf16), expected, 1e-9);
  // Autocast: norms 2 * 8; copies for three and two matrices instead of one each.
  const double converted = 16 + 6 + 4 + 2.5 + 2 + 8 * 5632.0 / 2048 + 4.0 * 32 / 2048;
  EXPECT_NEAR(saved_per_feature(llama, Precision::bf16), converted, 1e-9);
}

TEST(Eager, ReluKeepsNothingOfItsOwn) {
  TransformerConfig opt = samples::gpt(1, 1024, 16, 1024);
  opt.dropout = false;
  opt.activation = Function::relu;
  // 4 + 4 + 6 + 2 and down's input of 8.
  EXPECT_NEAR(saved_per_feature(opt, Precision::pure_bf16), 24 + 4.0 * 16 / 1024, 1e-9);
}

TEST(Eager, ActivationsTakeTheirPasses) {
  Op op;
  op.function = Function::gelu_new;
  op.split = Split::shard;
  op.saved = 1e6;
  op.moved = 2e6;
  const DeviceType d = samples::plain_device();
  const OpTime pure = op_time(eager_job(Precision::pure_bf16), {}, d, op, {.samples = 1});
  // 12.5 passes over 2 MB at 1 TB/s and eight kernels of 7.5 us, backward 19 passes and eleven;
  // nineteen launches of 24 us, eight of them forward.
  EXPECT_NEAR(pure.forward.value, 12.5 * 2e6 / 1e12 + 8 * 7.5e-6, 1e-12);
  EXPECT_NEAR(pure.backward.value, 19.0 * 2e6 / 1e12 + 11 * 7.5e-6, 1e-12);
  EXPECT_NEAR(pure.host.value, 19 * 24e-6, 1e-12);
  EXPECT_NEAR(pure.host_forward.value, 8 * 24e-6, 1e-12);
  const OpTime mixed = op_time(eager_job(Precision::bf16), {}, d, op, {.samples = 1});
  EXPECT_NEAR(mixed.forward.value, 33.5 * 2e6 / 1e12 + 10 * 7.5e-6, 1e-12);
  // BLOOM's goes through 21 tensors where gelu_new goes through 18, and through 44 for 28 backward.
  op.function = Function::gelu_twice;
  const OpTime bloom = op_time(eager_job(Precision::pure_bf16), {}, d, op, {.samples = 1});
  EXPECT_NEAR(bloom.forward.value, 14.6 * 2e6 / 1e12 + 9 * 7.5e-6, 1e-12);
  EXPECT_NEAR(bloom.backward.value, 29.9 * 2e6 / 1e12 + 18 * 7.5e-6, 1e-12);
}

// Kernels that a block dispatches, as counted in PyTorch's dispatcher with transformers 5.22.
struct BlockLaunches {
  double forward = 0;
  double backward = 0;
};

BlockLaunches launches_of(const TransformerConfig& config, bool autocast) {
  const Model model = build_transformer(config);
  BlockLaunches sum;
  for (const Op& op : model.unit(1).ops) {
    if (op.kind == OpKind::attention) {
      sum.forward += 1;
      sum.backward += op.matrices == 1 ? 2 : 1;
    } else if (op.kind == OpKind::matmul) {
      const Launches launches = product_launches(op, autocast);
      sum.forward += launches.forward;
      sum.backward += launches.backward;
    } else {
      const EagerPasses kernels = eager_passes(op, autocast);
      sum.forward += kernels.launches;
      sum.backward += kernels.launches_backward;
    }
  }
  return sum;
}

TEST(Eager, BlocksLaunchWhatPyTorchDispatches) {
  TransformerConfig gpt = samples::gpt(1, 1024, 16, 1024);
  gpt.dropout = false;
  EXPECT_EQ(launches_of(gpt, false).forward, 17);
  EXPECT_EQ(launches_of(gpt, false).backward, 29);
  EXPECT_EQ(launches_of(gpt, true).forward, 29);
  EXPECT_EQ(launches_of(gpt, true).backward, 45);
  TransformerConfig llama = samples::llama(1, 2048, 5632, 32, 4);
  llama.fused_qkv = false;
  llama.activation = Function::silu;
  EXPECT_EQ(launches_of(llama, false).forward, 38);
  EXPECT_EQ(launches_of(llama, false).backward, 71);
  EXPECT_EQ(launches_of(llama, true).forward, 48);
  EXPECT_EQ(launches_of(llama, true).backward, 87);
}

TEST(Eager, RotaryOfAPartOfEachHeadKeepsACopyAndTheConcatenation) {
  TransformerConfig neox = samples::gpt(1, 1024, 16, 1024);
  neox.dropout = false;
  neox.activation = Function::gelu;
  neox.positions = Positions::rotary;
  neox.rotary_dim = 16;
  neox.parallel = true;
  // One input of both norms 2, inputs of qkv and up 2 * 2, concatenated q k v 6, turned q and k 4,
  // attention's result and its copy 2 * 2, gelu and down's input 2 * 8: 36.
  EXPECT_NEAR(saved_per_feature(neox, Precision::pure_bf16), 36 + 4.0 * 16 / 1024, 1e-9);
}

TEST(Eager, NormsThatScaleInFp32KeepTwoWideTensors) {
  TransformerConfig gemma = samples::llama(1, 2048, 5632, 32, 4);
  const double usual = saved_per_feature(gemma, Precision::pure_bf16);
  gemma.wide_norm = true;
  EXPECT_NEAR(saved_per_feature(gemma, Precision::pure_bf16), usual + 2 * 2, 1e-9);
}

// No fused kernel takes a learnt bias.
TEST(Eager, ScoresWithABiasAreKernelsOfTheirOwn) {
  Op op;
  op.kind = OpKind::attention;
  op.split = Split::heads;
  op.rows = op.columns = 1000;
  op.inner = 60;
  op.count = op.kv_count = 10;
  op.matrices = 3;
  op.writes_scores = op.learnt_bias = true;
  const Job job = eager_job(Precision::pure_bf16);
  const OpTime time = op_time(job, {}, samples::plain_device(), op, {.samples = 1});
  // 1e7 scores: two products of 2 * 60 flops each at 0.6 of 10 Tflop/s in fp32, 22 + 8 bytes a
  // score at 1 TB/s, twelve kernels of 10 us.
  EXPECT_NEAR(time.forward.value, 2 * 1.2e9 / 6e12 + 30 * 1e7 / 1e12 + 120e-6, 1e-12);
  // The softmax and copies, 5.5 bytes a score.
  EXPECT_NEAR(saved_bytes(job, {}, op, {.samples = 1}).all.value, 5.5 * 1e7, 1e-6);
}

// Of the first block of a model.
LayerCost cost_of_block(const Problem& problem, const ReplicaShape& shape) {
  const ModelLayers layers = layers_of(problem.model);
  const auto kernels = kernels_of(problem.job, problem.model, problem.cluster.device_types[0]);
  const OpPoints points(problem.profile, "H100");
  const ReplicaSetting setting{problem, shape, *kernels, points, layers};
  return layer_cost(setting, layers.shapes[layers.shape_of[1]]).front();
}

TEST(Eager, RecomputeStopsBeforeTheLastProduct) {
  TransformerConfig gpt = samples::gpt(1, 1024, 16, 1024);
  gpt.dropout = false;
  const auto repeated = [](const TransformerConfig& config) {
    const Problem problem = samples::problem_of(config, samples::cluster_of(samples::h100(), 1, 1),
                                                eager_job(Precision::pure_bf16));
    const LayerCost cost = cost_of_block(problem, ReplicaShape{});
    const UnitCost& full = cost.by_recompute[static_cast<int>(Recompute::full)];
    return full.recompute / full.forward;
  };
  EXPECT_LT(repeated(gpt), 0.9);
  // A norm at the end needs the sum.
  gpt.norm_place = NormPlace::after_adding;
  EXPECT_NEAR(repeated(gpt), 1, 1e-12);
}

TEST(Eager, SmallBatchesTakeTheTimeOfTheirLaunches) {
  const Problem problem = samples::problem_of(samples::llama(1, 2048, 5632, 32, 4),
                                              samples::cluster_of(samples::h100(), 1, 1),
                                              eager_job(Precision::pure_bf16));
  const auto total = [&](double samples) {
    ReplicaShape shape;
    shape.sharding.samples = samples;
    return cost_of_block(problem, shape).by_recompute[0].total();
  };
  // Five products and attention, 38 kernels forward and 71 backward: 0.67 + 109 * 0.024 = 3.3 ms,
  // less what the output layer hides.
  EXPECT_LT(total(0.01).value, 3.4e-3);
  EXPECT_GT(total(0.01).value, 2e-3);
}

double loss_share(Precision precision, const Model& model) {
  return kernels_of(eager_job(precision), model, samples::plain_device())->loss_share();
}

TEST(Eager, MaskedModelsDoNotConvertTheirLogits) {
  Model model;
  model.causal = true;
  EXPECT_EQ(loss_share(Precision::pure_bf16, model), 1);
  model.causal = false;
  EXPECT_EQ(loss_share(Precision::pure_bf16, model), 0.5);
  // 10 bytes a logit instead of 12.
  EXPECT_EQ(loss_share(Precision::bf16, model), 5.0 / 6);
}

TEST(Eager, TheStreamIsFp32UnderAutocastOnly) {
  EXPECT_EQ(stream_bytes(eager_job(Precision::bf16)), 4);
  EXPECT_EQ(stream_bytes(eager_job(Precision::pure_bf16)), 2);
  Job job = eager_job(Precision::bf16);
  job.framework = samples::framework("megatron");
  EXPECT_EQ(stream_bytes(job), 2);
}

}  // namespace
}  // namespace plait
