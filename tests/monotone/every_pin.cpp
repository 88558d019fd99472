#include "monotone/every_pin.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "plan/names.h"

namespace plait::monotone {

std::vector<Pinned> every_pin(const Problem& problem, const Target& target) {
  std::vector<Pinned> out;
  const auto add = [&](std::string words, const Pins& pins) {
    if (!violation_of(problem, pins, target)) out.push_back({std::move(words), pins});
  };
  for (const int n : {1, 2, 4, 8}) {
    add(fmt::format("--tp {}", n), {.tensor = n});
    add(fmt::format("--cp {}", n), {.context = n});
    add(fmt::format("--ep {}", n), {.expert = n});
    add(fmt::format("--micro-batch {}", n), {.micro_batch = n});
  }
  for (const int n : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32})
    add(fmt::format("--pp {} --stages any", n), {.pipeline = n});
  for (const int n : {1, 2, 3, 4, 6, 8, 12, 16, 32, 64})
    add(fmt::format("--dp {}", n), {.data = n});
  for (int n = 1; n <= problem.job.global_batch; n *= 2)
    add(fmt::format("--micro-batches {}", n), {.micro_batches = n});
  for (const Schedule own : target.schedules)
    add(fmt::format("--schedule {}", name_of(own)), {.schedule = own});
  for (const int n : {2, 3, 4, 8})
    add(fmt::format("--schedule interleaved --chunks {}", n),
        {.schedule = Schedule::interleaved, .chunks = n});
  for (const ZeroStage own : target.zero)
    add(fmt::format("--zero {}", name_of(own)), {.zero = own});
  for (const Recompute own : target.recomputes)
    add(fmt::format("--recompute {}", name_of(own)), {.recompute = own});
  for (const int n : {1, 2, 4})
    add(fmt::format("--recompute-layers {}", n), {.recompute_layers = n});
  for (const bool on : {false, true})
    add(fmt::format("--sequence-parallel {}", on), {.sequence_parallel = on});
  return out;
}

Pinned pins_like(const Problem& problem, const Plan& plan) {
  const Span& span = plan.stages.front().spans.front();
  const int chunks = chunk_count(plan.stages.front());
  Pins pins{.tensor = span.tensor,
            .pipeline = plan.stage_count(),
            .data = span.data,
            .context = plan.context,
            .expert = plan.expert,
            .micro_batch = problem.job.global_batch / (plan.micro_batches * span.data),
            .micro_batches = plan.micro_batches,
            .zero = plan.zero};
  if (plan.stage_count() > 1) pins.schedule = plan.schedule;
  if (plan.schedule == Schedule::interleaved) pins.chunks = chunks;
  return {fmt::format("--tp {} --pp {} --stages any --dp {} --cp {} --ep {} --micro-batches {} "
                      "--zero {} --schedule {} (chunks {})",
                      span.tensor, plan.stage_count(), span.data, plan.context, plan.expert,
                      plan.micro_batches, name_of(plan.zero), name_of(plan.schedule), chunks),
          pins};
}

void adapt(Problem& problem, const Target& target) {
  bool old = false;
  for (const DeviceType& type : problem.cluster.device_types)
    old |= type.supports(DType::fp16) && !type.supports(DType::bf16);
  if (old) problem.job.attention = AttentionKernel::plain;
  if (old) problem.job.precision = Precision::fp16;
  if (!target.precisions.empty() &&
      std::ranges::find(target.precisions, problem.job.precision) == target.precisions.end())
    problem.job.precision = target.precisions.front();
}

Cluster with_hosts_in_another_order(const Cluster& cluster, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int> order(cluster.nodes.size());
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  Cluster out = cluster;
  out.nodes.clear();
  out.devices.clear();
  for (std::size_t at = 0; at < order.size(); ++at) {
    out.nodes.push_back(cluster.nodes[order[at]]);
    for (const Device& device : cluster.devices)
      if (device.node == order[at]) out.devices.push_back({device.type, static_cast<int>(at)});
  }
  return out;
}

}  // namespace plait::monotone
