#include "random_problem.h"

#include <algorithm>

#include "plan/sample_frameworks.h"

namespace plait {
namespace {

int pick(std::mt19937_64& random, int least, int most) {
  return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
}

double factor(std::mt19937_64& random, double most) {
  return 1 + (most - 1) * static_cast<double>(random() % 1000) / 1000;
}

LayerKind random_layer(std::mt19937_64& random, int index) {
  const double hidden = 512 * pick(random, 1, 4);
  const double tokens = 1024;
  LayerKind kind;
  kind.name = "layer" + std::to_string(index);
  Op up;
  up.name = "up";
  up.kind = OpKind::matmul;
  up.split = Split::column;
  up.rows = tokens;
  up.inner = hidden;
  up.columns = 4 * hidden * pick(random, 1, 3);
  up.forward = Flops(2 * up.rows * up.inner * up.columns);
  up.parameters = up.inner * up.columns;
  up.saved = tokens * hidden * pick(random, 1, 20);
  up.backward_reduce = tokens * hidden;
  Op down = up;
  down.name = "down";
  down.split = Split::row;
  down.inner = up.columns;
  down.columns = hidden;
  down.saved = tokens * up.columns;
  down.saved_is_sharded = true;
  down.backward_reduce = 0;
  down.forward_reduce = tokens * hidden;
  kind.ops = {up, down};
  kind.output = tokens * hidden;
  return kind;
}

}  // namespace

Problem random_problem(std::mt19937_64& random, int max_units, int max_devices) {
  Problem problem;
  Model& model = problem.model;
  model.name = "random";
  model.sequence_length = 1024;
  const int kinds = pick(random, 1, 3);
  for (int k = 0; k < kinds; ++k) model.kinds.push_back(random_layer(random, k));
  const int units = pick(random, 1, max_units);
  for (int u = 0; u < units; ++u) model.units.push_back(pick(random, 0, kinds - 1));

  Cluster& cluster = problem.cluster;
  cluster.zones = {"zone"};
  const int types = pick(random, 1, 2);
  for (int t = 0; t < types; ++t) {
    DeviceType type;
    type.name = t == 0 ? "fast" : "slow";
    type.memory = Bytes(factor(random, 30) * 5e8);
    type.memory_bandwidth = BytesPerSecond(1e12 / factor(random, 3));
    type.peak.fill(FlopsPerSecond(1e14 / factor(random, 4)));
    type.intra = {BytesPerSecond(1e11), Seconds(5e-6)};
    cluster.device_types.push_back(type);
  }
  int left = max_devices;
  for (int n = 0; left > 0 && n < 4; ++n) {
    const int type = pick(random, 0, types - 1);
    const int count = std::min(left, 1 << pick(random, 0, 2));
    cluster.nodes.push_back({"n" + std::to_string(n),
                             0,
                             {BytesPerSecond(1e11), Seconds(5e-6)},
                             {BytesPerSecond(1e9 * pick(random, 1, 50)), Seconds(2e-5)},
                             UsdPerSecond(1e-3)});
    for (int d = 0; d < count; ++d) cluster.devices.push_back({type, n});
    left -= count;
  }

  constexpr int kBatches[] = {1, 2, 3, 4, 6, 8, 12};
  problem.job.framework = samples::framework("megatron");
  problem.job.global_batch = kBatches[pick(random, 0, 6)];
  return problem;
}

}  // namespace plait
