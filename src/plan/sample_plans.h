#pragma once

// Problems and plans for tests: small, valid, and between them of every shape that a plan can have.

#include <random>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "plan/problem.h"

namespace plait::samples {

inline Op sample_op(std::string name, OpKind kind, Split split, double inner, double columns,
                    double count) {
  Op op;
  op.name = std::move(name);
  op.kind = kind;
  op.split = split;
  op.rows = 1024;
  op.inner = inner;
  op.columns = columns;
  op.count = count;
  op.forward = Flops(2 * op.rows * inner * columns * count);
  op.parameters = kind == OpKind::attention ? 0 : inner * columns * count;
  return op;
}

// An embedding, `layers` decoder layers with 8 heads of 64, and a tied head; sequences of 1024
// tokens. `experts` > 0 replaces the feed-forward part by that many experts.
inline Model sample_model(int layers, int experts = 0) {
  Model model;
  model.name = "sample";
  model.sequence_length = 1024;
  model.vocabulary = 50257;
  model.causal = true;
  LayerKind decoder{.name = "decoder", .ops = {}, .output = 1024 * 512};
  decoder.ops = {sample_op("qkv", OpKind::matmul, Split::column, 512, 1536, 1),
                 sample_op("attention", OpKind::attention, Split::heads, 64, 1024, 8),
                 sample_op("projection", OpKind::matmul, Split::row, 512, 512, 1)};
  if (experts > 0) {
    decoder.ops.push_back(sample_op("experts", OpKind::matmul, Split::experts, 512, 2048, experts));
    decoder.ops.back().expert_exchange = 2 * 1024 * 512;
  } else {
    decoder.ops.push_back(sample_op("up", OpKind::matmul, Split::column, 512, 2048, 1));
    decoder.ops.push_back(sample_op("down", OpKind::matmul, Split::row, 2048, 512, 1));
  }
  model.kinds = {{.name = "embedding",
                  .ops = {sample_op("table", OpKind::embedding, Split::vocabulary, 512, 50257, 1)},
                  .output = 1024 * 512},
                 decoder,
                 {.name = "head",
                  .ops = {sample_op("logits", OpKind::matmul, Split::vocabulary, 512, 50257, 1)},
                  .output = 1}};
  model.units.assign(layers + 2, 1);
  model.units.front() = 0;
  model.units.back() = 2;
  model.ties = {{.first = 0, .second = layers + 1, .parameters = 512.0 * 50257}};
  return model;
}

// Nodes of eight devices, the first `fast_nodes` of one type and the rest of another, in two zones.
inline Cluster sample_cluster(int nodes, int fast_nodes) {
  Cluster cluster;
  cluster.name = "samples";
  cluster.zones = {"near", "far"};
  cluster.zone_links = {{.a = 0, .b = 1, .link = {BytesPerSecond(1.25e9), Seconds(1e-3)}}};
  for (const char* name : {"Fast", "Slow"}) {
    DeviceType type;
    type.name = name;
    type.memory = Bytes(80.0 * 0x1p30);
    type.memory_bandwidth = BytesPerSecond(2.039e12);
    type.peak[static_cast<int>(DType::bf16)] = FlopsPerSecond(312e12);
    type.intra = {BytesPerSecond(300e9), Seconds(3e-6)};
    type.price = UsdPerSecond(4.1 / 3600);
    cluster.device_types.push_back(type);
  }
  for (int n = 0; n < nodes; ++n) {
    Node node;
    node.name = "node" + std::to_string(n);
    node.zone = n < fast_nodes ? 0 : 1;
    node.intra = cluster.device_types[0].intra;
    node.uplink = {BytesPerSecond(25e9), Seconds(1e-5)};
    node.price = UsdPerSecond(32.77 / 3600);
    cluster.nodes.push_back(node);
    cluster.devices.insert(cluster.devices.end(), 8,
                           Device{.type = n < fast_nodes ? 0 : 1, .node = n});
  }
  return cluster;
}

// Two stages of four devices each on one node: six layers, tensor 2, data 2, batch 16 in four.
inline Problem sample_problem() {
  Problem problem;
  problem.model = sample_model(6);
  problem.cluster = sample_cluster(2, 1);
  problem.job.global_batch = 16;
  return problem;
}

inline Plan sample_plan() {
  Plan plan;
  plan.micro_batches = 4;
  for (int s = 0; s < 2; ++s) {
    Stage stage;
    stage.spans = {{.units = {4 * s, 4 * s + 4}, .tensor = 2, .data = 2}};
    for (int d = 0; d < 4; ++d) stage.devices.push_back(DeviceId{4 * s + d});
    plan.stages.push_back(stage);
  }
  return plan;
}

struct Sample {
  Problem problem;
  Plan plan;
};

// A valid plan of any shape for a problem made to measure.
class RandomPlans {
 public:
  explicit RandomPlans(unsigned seed) : random_(seed) {}

  Sample next() {
    Plan plan;
    plan.schedule = static_cast<Schedule>(below(6));
    const bool interleaved = plan.schedule == Schedule::interleaved;
    const int stages = interleaved ? 2 + below(3) : 1 + below(6);
    const int chunks = interleaved ? 2 + below(2) : plan.schedule == Schedule::zb_v ? 2 : 1;
    plan.context = 1 << below(2);
    plan.micro_batches = stages * (1 + below(4));
    plan.zero = static_cast<ZeroStage>(below(4));
    plan.sequence_parallel = below(2) == 0;
    plan.offload = below(3) == 0 ? std::uniform_real_distribution<double>(0, 1)(random_) : 0;
    const bool sparse = below(3) == 0;
    plan.expert = sparse ? 1 << below(2) : 1;
    const int micro_batch = 8 * (1 + below(3));

    std::vector<int> ids(64);
    for (int i = 0; i < 64; ++i) ids[i] = i;
    if (below(2) == 0) shuffle_pairs(ids);
    const int units = place_units(plan, stages, chunks);
    int next_id = 0;
    const int tensor_bits = below(2);
    for (Stage& stage : plan.stages) {
      const int bits = below(4) == 0 ? 1 - tensor_bits : tensor_bits;
      const int size = plan.context * 4;
      for (int d = 0; d < size; ++d) stage.devices.push_back(DeviceId{ids[next_id++]});
      give_degrees(stage, bits);
      if (below(4) == 0) give_shares(stage, micro_batch);
    }
    Sample sample{.problem = {}, .plan = plan};
    sample.problem.model = sample_model(units - 2, sparse ? 8 : 0);
    sample.problem.cluster = sample_cluster(8, 4);
    sample.problem.job.global_batch = micro_batch * plan.micro_batches;
    return sample;
  }

  int below(int limit) { return std::uniform_int_distribution<int>(0, limit - 1)(random_); }

 private:
  // Pairs stay together so that a tensor group of two keeps one device type.
  void shuffle_pairs(std::vector<int>& ids) {
    for (int i = 31; i > 0; --i) {
      const int j = below(i + 1);
      std::swap(ids[2 * i], ids[2 * j]);
      std::swap(ids[2 * i + 1], ids[2 * j + 1]);
    }
  }

  // Uneven chunks of one to three spans of one to three units, in pipeline order.
  int place_units(Plan& plan, int stages, int chunks) {
    plan.stages.resize(stages);
    std::vector<std::pair<int, int>> order(stages * chunks);
    for (int s = 0; s < stages; ++s)
      for (int c = 0; c < chunks; ++c) order[chunk_position(plan.schedule, stages, s, c)] = {s, c};
    const bool even = below(3) == 0;
    int unit = 0;
    for (const auto& [stage, chunk] : order) {
      const int spans = even ? 1 : 1 + below(3);
      for (int i = 0; i < spans; ++i) {
        Span span;
        span.units = {unit, unit + (even ? 2 : 1 + below(3))};
        span.chunk = chunk;
        span.recompute = static_cast<Recompute>(below(even ? 1 : 3));
        unit = span.units.end;
        plan.stages[stage].spans.push_back(span);
      }
    }
    if (unit >= 3) return unit;
    const auto [stage, chunk] = order.back();
    plan.stages[stage].spans.back().units.end = 3;  // an embedding, a layer and a head
    return 3;
  }

  void give_degrees(Stage& stage, int bits) {
    const bool mixed = below(5) == 0;
    for (Span& span : stage.spans) {
      const int own = mixed ? below(2) : bits;
      span.tensor = 1 << own;
      span.data = 4 >> own;
    }
  }

  void give_shares(Stage& stage, int micro_batch) {
    const int data = stage.spans[0].data;
    for (const Span& span : stage.spans)
      if (span.data != data) return;
    stage.shares.assign(data, 1);
    for (int left = micro_batch - data; left > 0; --left) ++stage.shares[below(data)];
  }

  std::mt19937 random_;
};

}  // namespace plait::samples
