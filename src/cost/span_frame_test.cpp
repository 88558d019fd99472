#include "cost/span_frame.h"

#include <gtest/gtest.h>

#include "cost/engine.h"
#include "plan/sample_frameworks.h"
#include "plan/sample_problems.h"

namespace plait {
namespace {

constexpr double kGiB = 0x1p30;

Job job_of(const char* framework, AttentionKernel attention, int batch,
           Precision precision = Precision::bf16) {
  Job job;
  job.global_batch = batch;
  job.framework = samples::framework(framework);
  job.attention = attention;
  job.precision = precision;
  return job;
}

// A frame over `devices` devices of the problem's cluster, all of the model on them.
struct Frame {
  Frame(const Problem& problem, const PlanSettings& settings, int tensor, int data)
      : engine(problem),
        frame(
            problem, settings, ids(tensor * data * settings.context), tensor, data, {},
            [this](const ReplicaShape& shape) -> const UnitTable& { return engine.table(shape); }) {
  }
  static std::vector<DeviceId> ids(int count) {
    std::vector<DeviceId> out;
    for (int d = 0; d < count; ++d) out.push_back(DeviceId(d));
    return out;
  }
  CostEngine engine;
  SpanFrame frame;
};

void expect_rates_add_up(const Problem& problem, const PlanSettings& settings, int data) {
  Frame f(problem, settings, 2, data);
  const auto rates = f.frame.finish_rates();
  ASSERT_TRUE(rates);
  for (const UnitRange units : {UnitRange{0, 1}, UnitRange{1, 3}, UnitRange{0, 6}}) {
    const UnitCost cost = f.frame.time_on(0, units, Recompute::none);
    const SpanFrame::Cover cover = f.frame.cover(units, Recompute::none);
    const Seconds exact = f.frame.gradient_sync(units, cover) + f.frame.optimizer(units);
    const UnitCost first = f.frame.time_on(0, f.frame.first_layer(units), Recompute::none);
    const Seconds sum = rates->finish({cost.parameters, cost.expert_parameters},
                                      {first.parameters, first.expert_parameters}, cover);
    EXPECT_NEAR(sum / exact, 1, 1e-12);
  }
}

TEST(FinishRates, AddUpToWhatIsDoneOnceAStep) {
  const Job job = job_of("megatron-lm", AttentionKernel::plain, 32);
  const Cluster cluster = samples::cluster_of(samples::a100(), 2, 8);
  TransformerConfig mixture = samples::gpt(4, 1024, 16, 1024);
  mixture.moe = {.experts = 8, .top_k = 2, .ffn = 1024};
  const Problem dense = samples::problem_of(samples::gpt(4, 1024, 16, 1024), cluster, job);
  const Problem sparse = samples::problem_of(mixture, cluster, job);
  PlanSettings settings;
  for (const ZeroStage zero : {ZeroStage::off, ZeroStage::optimizer}) {
    settings.zero = zero;
    for (const int data : {1, 2, 8}) expect_rates_add_up(dense, settings, data);
    for (const int expert : {1, 4, 8}) {
      settings.expert = expert;
      expect_rates_add_up(sparse, settings, 8);
    }
    settings.expert = 1;
  }
  settings.zero = ZeroStage::parameters;
  EXPECT_FALSE(Frame(dense, settings, 2, 8).frame.finish_rates());
}

// Two replicas, of which one kind of device has a measured optimizer.
TEST(FinishRates, AreNotSaidWhereAnyReplicaIsMeasured) {
  Cluster cluster = samples::cluster_of(samples::a100(), 1, 1);
  cluster.device_types.push_back(samples::a100());
  cluster.device_types.back().name = "other";
  cluster.nodes.push_back(cluster.nodes.front());
  cluster.devices.push_back({1, 1});
  Problem problem = samples::problem_of(samples::gpt(4, 1024, 16, 1024), cluster,
                                        job_of("megatron-lm", AttentionKernel::plain, 2));
  EXPECT_TRUE(Frame(problem, {}, 1, 2).frame.finish_rates());
  problem.profile.compute[{"decoder", "other", 1, 1, 0, 0}] = {
      .forward = Seconds(0.01), .backward = Seconds(0.02), .optimizer = Seconds(0.01)};
  EXPECT_FALSE(Frame(problem, {}, 1, 2).frame.finish_rates());
}

// Whichever of them comes first.
TEST(SpanFrame, DevicesThatShareASequenceWaitForTheSlowest) {
  Cluster cluster = samples::cluster_of(samples::a100(), 1, 1);
  cluster.device_types.push_back(samples::a100());
  cluster.device_types.back().name = "slow";
  cluster.device_types.back().efficiency.matmul /= 2;
  cluster.device_types.back().memory = 0.5 * samples::a100().memory;
  cluster.nodes.push_back(cluster.nodes.front());
  cluster.devices.push_back({1, 1});
  const Job job = job_of("megatron", AttentionKernel::flash, 2);
  Problem problem = samples::problem_of(samples::gpt(4, 1024, 16, 1024), cluster, job);
  const PlanSettings settings{.context = 2};
  const auto time = [&] {
    return Frame(problem, settings, 1, 1).frame.time({0, 6}, Recompute::none).total();
  };
  const Seconds mixed = time();
  Frame f(problem, settings, 1, 1);
  ASSERT_EQ(f.frame.replica_count(), 2);
  Bytes least = samples::a100().memory;
  for (const int r : {0, 1})
    least = std::min(least, f.frame.memory(r, {0, 6}, Recompute::none, 0).capacity);
  EXPECT_EQ(least, cluster.device_types[1].memory);
  std::swap(problem.cluster.devices[0].type, problem.cluster.devices[1].type);
  EXPECT_EQ(time(), mixed);
  problem.cluster.devices[0].type = problem.cluster.devices[1].type = 0;
  EXPECT_LT(1.2 * time(), mixed);
}

TEST(StageMemory, PlainGptBlocksKeepKorthikantisBytes) {
  // Eq. 2 of arXiv 2205.05198: s b h (10 + 24/t + 5 a s / (h t)) in 16 bits with dropout.
  const Problem problem = samples::problem_of(samples::gpt(4, 1024, 16, 1024),
                                              samples::cluster_of(samples::a100(), 1, 8),
                                              job_of("megatron-lm", AttentionKernel::plain, 2));
  Frame f(problem, {}, 4, 1);
  const double sbh = 1024.0 * 2 * 1024;
  const auto saved = [&](Recompute r) { return f.frame.memory(0, {1, 2}, r, 0).saved.value; };
  EXPECT_DOUBLE_EQ(saved(Recompute::none), sbh * (10 + 24.0 / 4 + 5.0 * 16 * 1024 / (1024 * 4)));
  EXPECT_DOUBLE_EQ(saved(Recompute::selective), sbh * (10 + 24.0 / 4));
  EXPECT_DOUBLE_EQ(saved(Recompute::full), 2 * sbh);
}

TEST(StageMemory, RecomputedUnitsNeedTheirActivationsForAMoment) {
  const Problem problem = samples::problem_of(samples::gpt(4, 1024, 16, 1024),
                                              samples::cluster_of(samples::a100(), 1, 8),
                                              job_of("megatron-lm", AttentionKernel::plain, 2));
  Frame f(problem, {}, 1, 1);
  const auto memory = [&](Recompute r) { return f.frame.memory(0, {1, 5}, r, 0); };
  const double sbh = 1024.0 * 2 * 1024;
  EXPECT_EQ(memory(Recompute::none).working_set.value, 0);
  EXPECT_DOUBLE_EQ(memory(Recompute::full).working_set.value, sbh * (34 + 5 * 16));
  EXPECT_DOUBLE_EQ(memory(Recompute::selective).working_set.value, sbh * 5 * 16);
}

TEST(StageMemory, ZeroCutsWhatItSays) {
  const Problem problem = samples::problem_of(samples::gpt(4, 1024, 16, 1024),
                                              samples::cluster_of(samples::a100(), 1, 8),
                                              job_of("megatron", AttentionKernel::flash, 8));
  const double p = 12.0 * 1024 * 1024 + 13 * 1024;
  const auto memory = [&](const char* framework, ZeroStage zero) {
    Problem other = problem;
    other.job.framework = samples::framework(framework);
    PlanSettings settings;
    settings.zero = zero;
    Frame f(other, settings, 1, 8);
    return f.frame.memory(0, {1, 2}, Recompute::none, 0);
  };
  const auto states = [](const SpanFrame::Memory& m) {
    return (m.weights + m.gradients + m.optimizer_state).value;
  };
  EXPECT_DOUBLE_EQ(states(memory("megatron", ZeroStage::off)), 18 * p);
  EXPECT_DOUBLE_EQ(states(memory("megatron", ZeroStage::optimizer)), 6 * p + 12 * p / 8);
  EXPECT_DOUBLE_EQ(states(memory("megatron", ZeroStage::gradients)), 2 * p + 16 * p / 8);
  // DeepSpeed keeps an fp32 copy of the gradients, cut with the optimizer state.
  EXPECT_DOUBLE_EQ(states(memory("megatron-deepspeed", ZeroStage::optimizer)), 4 * p + 16 * p / 8);
  // FSDP: fp32 weights, gradients and moments, all cut, and two gathered units in 16 bits.
  const SpanFrame::Memory cut = memory("fsdp", ZeroStage::parameters);
  EXPECT_DOUBLE_EQ(states(cut), 16 * p / 8);
  EXPECT_DOUBLE_EQ(cut.workspace.value, 2 * 2 * p);
}

TEST(StageMemory, LogitsCountWhereTheLossIs) {
  const Problem problem = samples::problem_of(samples::gpt(4, 1024, 16, 1024),
                                              samples::cluster_of(samples::a100(), 1, 8),
                                              job_of("megatron", AttentionKernel::flash, 8));
  Frame f(problem, {}, 4, 1);
  const SpanFrame::Memory head = f.frame.memory(0, {5, 6}, Recompute::none, 0);
  // 10 bytes for each logit of a quarter of the vocabulary, 4 of them kept when others go first.
  EXPECT_DOUBLE_EQ(head.loss.value, 10.0 * 8 * 1024 * 50257 / 4);
  EXPECT_DOUBLE_EQ(head.kept_loss.value, 4.0 * 8 * 1024 * 50257 / 4);
  EXPECT_EQ(head.peak(1, 3) - head.peak(1), 3 * head.kept_loss);
}

TEST(StageMemory, TheLossIsOverWhenRecomputedUnitsRunBackward) {
  SpanFrame::Memory memory;
  memory.saved = Bytes(10);
  memory.working_set = Bytes(5);
  memory.loss = Bytes(7);
  EXPECT_EQ(memory.peak(2), Bytes(27));
  memory.working_set = Bytes(9);
  EXPECT_EQ(memory.peak(2), Bytes(29));
}

TEST(StageMemory, FreedGradientsMatterAtTheEndOfBackward) {
  SpanFrame::Memory memory;
  memory.weights = Bytes(2);
  memory.gradients = Bytes(20);
  memory.late = Bytes(3);
  memory.saved = Bytes(10);
  memory.keeps_gradients = false;
  EXPECT_EQ(memory.peak(1), Bytes(25));  // 2 + 20 + 3
  EXPECT_EQ(memory.peak(4), Bytes(42));  // 2 + 4 * 10
  memory.keeps_gradients = true;
  EXPECT_EQ(memory.peak(4), Bytes(62));
}

// Peak allocation of Hugging Face GPT-2 steps, measured on one H200 with PyTorch 2.11: batch of
// sequences of 1024, without dropout.
TEST(StageMemory, Gpt2StepsNeedWhatWasMeasured) {
  struct Step {
    int layers, hidden, heads, batch;
    Precision precision;
    Recompute recompute;
    double measured_mib;
  };
  constexpr Precision mixed = Precision::bf16;
  constexpr Precision pure = Precision::pure_bf16;
  const Step steps[] = {
      {12, 768, 12, 4, pure, Recompute::none, 5165.0},
      {12, 768, 12, 4, mixed, Recompute::none, 7126.7},
      {12, 768, 12, 16, pure, Recompute::full, 10537.6},
      {12, 768, 12, 16, mixed, Recompute::full, 11635.2},
      {24, 1024, 16, 1, pure, Recompute::full, 2969.6},
      {24, 1024, 16, 1, mixed, Recompute::none, 7413.8},
      {36, 1280, 20, 8, pure, Recompute::none, 29434.0},
      {36, 1280, 20, 8, mixed, Recompute::none, 45435.7},
  };
  DeviceType h200 = samples::h100();
  h200.memory = Bytes(139.8 * kGiB);
  for (const Step& step : steps) {
    TransformerConfig config = samples::gpt(step.layers, step.hidden, step.heads, 1024);
    config.dropout = false;
    const Problem problem =
        samples::problem_of(config, samples::cluster_of(h200, 1, 1),
                            job_of("eager", AttentionKernel::flash, step.batch, step.precision));
    Frame f(problem, {}, 1, 1);
    const double mib =
        f.frame.memory(0, {0, step.layers + 2}, step.recompute, 0).peak(1).value / 0x1p20;
    EXPECT_NEAR(mib / step.measured_mib, 1, 0.03) << step.layers << " layers, " << step.batch;
  }
}

TEST(GradientSync, IsAnAllReduceOrItsTwoHalves) {
  const Problem problem = samples::problem_of(samples::gpt(4, 1024, 16, 1024),
                                              samples::cluster_of(samples::a100(), 1, 8),
                                              job_of("megatron-lm", AttentionKernel::flash, 8));
  const double p = 12.0 * 1024 * 1024 + 13 * 1024;
  const Group group = group_of(problem.cluster, Frame::ids(8));
  Frame off(problem, {}, 1, 8);
  EXPECT_NEAR(off.frame.whole_gradient_sync({1, 2}).value, all_reduce(group, Bytes(4 * p)).value,
              1e-12);
  PlanSettings zero1;
  zero1.zero = ZeroStage::optimizer;
  Frame cut(problem, zero1, 1, 8);
  EXPECT_NEAR(cut.frame.whole_gradient_sync({1, 2}).value,
              (reduce_scatter(group, Bytes(4 * p)) + all_gather(group, Bytes(2 * p))).value, 1e-12);
}

// On 2 nodes of one device each: what the backward pass covers is hidden, the rest counts.
TEST(GradientSync, HidesBehindTheBackwardPassAndNothingElse) {
  const Problem problem = samples::problem_of(samples::gpt(4, 1024, 16, 1024),
                                              samples::cluster_of(samples::a100(), 2, 1),
                                              job_of("megatron", AttentionKernel::flash, 8));
  Frame f(problem, {}, 1, 2);
  const UnitRange layers{1, 5};
  const Seconds whole = f.frame.whole_gradient_sync(layers);
  EXPECT_EQ(f.frame.least_gradient_sync(layers), Seconds(0));
  const SpanFrame::Cover half{{}, 0.5 * whole};
  EXPECT_NEAR(f.frame.gradient_sync(layers, half) / whole, 0.5, 1e-12);
  // The first layer's gradients are there last, with nothing left to hide behind.
  const SpanFrame::Cover endless{Seconds(1e9), Seconds(1e9)};
  EXPECT_NEAR(f.frame.gradient_sync(layers, endless) / f.frame.whole_gradient_sync({1, 2}), 1,
              1e-12);
  const UnitCost layer = f.frame.time({1, 2}, Recompute::none);
  const SpanFrame::Cover cover = f.frame.cover(layers, Recompute::none);
  EXPECT_NEAR(cover.backward / (4 * layer.backward_total()), 1, 1e-9);
  EXPECT_NEAR(cover.forward / (4 * layer.forward_total()), 1, 1e-9);
}

TEST(Optimizer, MovesTwentyEightBytesAParameter) {
  const Problem problem = samples::problem_of(samples::gpt(4, 1024, 16, 1024),
                                              samples::cluster_of(samples::a100(), 1, 8),
                                              job_of("megatron-lm", AttentionKernel::flash, 8));
  const double p = 12.0 * 1024 * 1024 + 13 * 1024;
  Frame off(problem, {}, 1, 8);
  EXPECT_NEAR(off.frame.optimizer({1, 2}).value, 28 * p / (0.9 * 1.555e12), 1e-12);
  PlanSettings zero1;
  zero1.zero = ZeroStage::optimizer;
  Frame cut(problem, zero1, 1, 8);
  EXPECT_NEAR(cut.frame.optimizer({1, 2}).value, 28 * p / 8 / (0.9 * 1.555e12), 1e-12);
}

TEST(Optimizer, InHostMemoryIsSentUpdatedThereAndSentBack) {
  Problem problem = samples::problem_of(samples::gpt(4, 1024, 16, 1024),
                                        samples::cluster_of(samples::a100(), 1, 8),
                                        job_of("megatron-lm", AttentionKernel::flash, 8));
  problem.cluster.device_types[0].host_link = BytesPerSecond(20e9);
  problem.cluster.device_types[0].host_memory = BytesPerSecond(10e9);
  const double p = 12.0 * 1024 * 1024 + 13 * 1024;
  const StateBytes state = state_bytes(problem.job);
  PlanSettings settings;
  settings.offload = 0.5;
  Frame f(problem, settings, 1, 8);
  // Of half of the parameters the gradient leaves and the weight returns at 20 GB/s, and 30 bytes
  // are moved at 10 GB/s; the other half moves 28 bytes at 0.9 x 1.555 TB/s.
  const double there = (state.sent_gradient + state.gathered) / 20e9 + 30 / 10e9;
  EXPECT_NEAR(f.frame.optimizer({1, 2}).value, 0.5 * p * (there + 28 / (0.9 * 1.555e12)), 1e-9);
  const SpanFrame::Memory memory = f.frame.memory(0, {1, 2}, Recompute::none, 0);
  EXPECT_NEAR(memory.optimizer_state.value, 0.5 * state.optimizer * p, 1);
  const auto rates = f.frame.finish_rates();
  ASSERT_TRUE(rates);
  EXPECT_NEAR(rates->updated.value, 0.5 * (there + 28 / (0.9 * 1.555e12)), 1e-18);
}

TEST(MemoryLimit, StandsInPlaceOfTheDevicesMemory) {
  Problem problem = samples::problem_of(samples::gpt(4, 1024, 16, 1024),
                                        samples::cluster_of(samples::a100(), 1, 8),
                                        job_of("megatron", AttentionKernel::flash, 8));
  problem.job.memory_limit = Bytes(12e9);
  problem.job.reserve = 0;
  Frame f(problem, {}, 1, 8);
  const SpanFrame::Memory memory = f.frame.memory(0, {0, 6}, Recompute::none, 0);
  EXPECT_EQ(memory.capacity, Bytes(12e9));
  EXPECT_EQ(memory.reserve, Bytes(0));
  EXPECT_EQ(memory.spare(1), Bytes(12e9) - memory.peak(1));
}

TEST(Adapters, OfARankAreSummedAndUpdatedInPlaceOfTheWeights) {
  Problem problem = samples::problem_of(samples::gpt(4, 1024, 16, 1024),
                                        samples::cluster_of(samples::a100(), 1, 8),
                                        job_of("megatron-lm", AttentionKernel::flash, 8));
  problem.job.adapters = true;
  problem.job.adapter_rank = 16;
  Frame f(problem, {}, 1, 8);
  const UnitCost layer = f.frame.time({1, 2}, Recompute::none);
  // Four products, of which one has queries, keys and values in one or three matrices.
  const double least = 16.0 * ((1024 + 3072) + (1024 + 1024) + 2 * (1024 + 4096));
  EXPECT_GE(layer.trained, least);
  EXPECT_LE(layer.trained, least + 16 * 2 * 1024);
  EXPECT_NEAR(layer.parameters, 12.0 * 1024 * 1024 + 13 * 1024 + layer.trained, 1e-6);
  EXPECT_NEAR(f.frame.optimizer({1, 2}).value, 28 * layer.trained / (0.9 * 1.555e12), 1e-15);
  const SpanFrame::Memory memory = f.frame.memory(0, {1, 2}, Recompute::none, 0);
  EXPECT_NEAR(memory.weights.value, 2 * layer.parameters, 1);
  EXPECT_NEAR(memory.gradients.value, state_bytes(problem.job).gradient * layer.trained, 1);
  EXPECT_NEAR(memory.optimizer_state.value, 12 * layer.trained, 1);
}

TEST(Adapters, LeaveAQuarterOfTheWeightsMemoryWhereTheseHaveFourBits) {
  Problem problem = samples::problem_of(samples::gpt(4, 1024, 16, 1024),
                                        samples::cluster_of(samples::a100(), 1, 8),
                                        job_of("megatron-lm", AttentionKernel::flash, 8));
  problem.job.adapters = true;
  problem.job.adapter_rank = 16;
  const SpanFrame::Memory whole =
      Frame(problem, {}, 1, 8).frame.memory(0, {1, 2}, Recompute::none, 0);
  problem.job.four_bit_weights = true;
  Frame f(problem, {}, 1, 8);
  const SpanFrame::Memory four = f.frame.memory(0, {1, 2}, Recompute::none, 0);
  // 12 x 1024 x 1024 weights of products: 2 - 0.516 bytes less of each; biases count with them.
  EXPECT_NEAR((whole.weights - four.weights).value, (2 - 0.5159) * 12 * 1024 * 1024, 2e4);
  EXPECT_EQ(four.gradients, whole.gradients);
  EXPECT_EQ(four.optimizer_state, whole.optimizer_state);
  // The largest product is written out: 4096 x 1024 in 2 bytes.
  EXPECT_NEAR((four.transient - whole.transient).value, 2.0 * 4096 * 1024, 1e4);
}

TEST(Adapters, OfUnknownRankNeedNeitherSyncNorOptimizer) {
  Problem problem = samples::problem_of(samples::gpt(4, 1024, 16, 1024),
                                        samples::cluster_of(samples::a100(), 1, 8),
                                        job_of("megatron", AttentionKernel::flash, 8));
  problem.job.adapters = true;
  Frame f(problem, {}, 1, 8);
  EXPECT_EQ(f.frame.whole_gradient_sync({0, 6}).value, 0);
  EXPECT_EQ(f.frame.optimizer({0, 6}).value, 0);
}

}  // namespace
}  // namespace plait
