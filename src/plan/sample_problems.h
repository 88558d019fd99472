#pragma once

// Devices, models and jobs that the tests of this layer share. Round numbers where a result is
// derived by hand, the catalogue's where it is compared with published runs.

#include "model/transformer.h"
#include "plan/problem.h"

namespace plait::samples {

// 100 Tflop/s, 1 TB/s, 100 multiprocessors, everything reached, kernels that take 10 us.
inline DeviceType plain_device() {
  DeviceType d;
  d.name = "plain";
  d.memory = Bytes(80 * 0x1p30);
  d.memory_bandwidth = BytesPerSecond(1e12);
  d.peak = {FlopsPerSecond(10e12), FlopsPerSecond(50e12), FlopsPerSecond(100e12),
            FlopsPerSecond(100e12), FlopsPerSecond(200e12)};
  d.multiprocessors = 100;
  d.intra = {BytesPerSecond(100e9), Seconds(5e-6)};
  d.per_node = 8;
  Efficiency& e = d.efficiency;
  e.matmul = e.batched = e.attention = e.attention_backward = e.memory = 1;
  e.optimizer = e.intra = e.inter = e.fp8 = e.portable_attention = 1;
  e.matmul_inner = e.wave_tail = 0;
  e.misaligned = 3;
  e.batched_misaligned = 0.1;
  e.kernel = Seconds(10e-6);
  return d;
}

inline DeviceType a100(double terabytes_per_second = 1.555) {
  DeviceType d = plain_device();
  d.name = "A100";
  d.memory_bandwidth = BytesPerSecond(terabytes_per_second * 1e12);
  d.peak = {FlopsPerSecond(19.5e12), FlopsPerSecond(156e12), FlopsPerSecond(312e12),
            FlopsPerSecond(312e12), FlopsPerSecond(0)};
  d.multiprocessors = 108;
  d.intra = {BytesPerSecond(300e9), Seconds(3e-6)};
  d.efficiency = {};
  return d;
}

inline DeviceType h100() {
  DeviceType d = a100(3.35);
  d.name = "H100";
  d.peak = {FlopsPerSecond(66.9e12), FlopsPerSecond(494.7e12), FlopsPerSecond(989e12),
            FlopsPerSecond(989e12), FlopsPerSecond(1979e12)};
  d.multiprocessors = 132;
  d.intra.bandwidth = BytesPerSecond(450e9);
  Efficiency& e = d.efficiency;
  e.matmul = 0.61;
  e.matmul_inner = 398;
  e.wave_tail = 0.34;
  e.misaligned = 3.4;
  e.fp8 = 1.01;
  e.attention = 0.61;
  e.attention_backward = 0.686;
  e.portable_attention = 0.414;
  e.memory = 0.65;
  return d;
}

// `nodes` servers of `per_node` such devices; the network of a node carries 25 GB/s a device.
inline Cluster cluster_of(const DeviceType& type, int nodes, int per_node) {
  Cluster cluster;
  cluster.name = "sample";
  cluster.device_types = {type};
  cluster.zones = {"zone"};
  for (int n = 0; n < nodes; ++n) {
    cluster.nodes.push_back(
        {"node", 0, type.intra, {BytesPerSecond(25e9 * per_node), Seconds(5e-6)}, {}});
    for (int d = 0; d < per_node; ++d) cluster.devices.push_back({0, n});
  }
  return cluster;
}

inline TransformerConfig gpt(int layers, int hidden, int heads, int sequence) {
  TransformerConfig c;
  c.name = "gpt";
  c.sequence = sequence;
  c.vocabulary = 50257;
  c.layers = layers;
  c.hidden = hidden;
  c.heads = heads;
  return c;
}

inline TransformerConfig llama(int layers, int hidden, int ffn, int heads, int kv_heads) {
  TransformerConfig c = gpt(layers, hidden, heads, 8192);
  c.name = "llama";
  c.vocabulary = 128256;
  c.kv_heads = kv_heads;
  c.ffn = ffn;
  c.gated = true;
  c.activation = Function::silu;
  c.fused_qkv = false;
  c.norm = NormKind::rms;
  c.positions = Positions::rotary;
  c.qkv_bias = c.projection_bias = c.mlp_bias = c.dropout = c.tied = false;
  return c;
}

inline Problem problem_of(const TransformerConfig& config, const Cluster& cluster, Job job) {
  Problem problem;
  problem.model = build_transformer(config);
  problem.cluster = cluster;
  problem.job = job;
  return problem;
}

}  // namespace plait::samples
