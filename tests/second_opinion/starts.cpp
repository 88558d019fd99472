#include "second_opinion/starts.h"

#include <algorithm>
#include <map>

namespace plait::second_opinion {
namespace {

// Device lists worth a pipeline: all, fastest types first or last; each type alone.
std::vector<std::vector<DeviceId>> device_orders(const Problem& problem) {
  std::map<double, std::vector<DeviceId>> by_speed;
  for (int i = 0; i < problem.cluster.device_count(); ++i)
    by_speed[peak_of(problem, DeviceId(i))].push_back(DeviceId(i));
  std::vector<std::vector<DeviceId>> orders(2);
  for (const auto& [speed, devices] : by_speed) {
    orders[0].insert(orders[0].end(), devices.begin(), devices.end());
    orders[1].insert(orders[1].begin(), devices.begin(), devices.end());
    if (by_speed.size() > 1) orders.push_back(devices);
  }
  if (by_speed.size() == 1) orders.pop_back();
  return orders;
}

int power_of_two(Random& random, int most) {
  int power = 1;
  while (power * 2 <= most) power *= 2;
  int exponent = 0;
  while ((1 << exponent) < power) ++exponent;
  return 1 << pick(random, 0, exponent);
}

// `stages` stages of the same tensor degree, on equal parts of the devices.
Sketch evenly(const Problem& problem, const std::vector<DeviceId>& devices, int stages,
              int tensor) {
  Sketch sketch;
  sketch.sequence = problem.model.sequence_length;
  const int data = static_cast<int>(devices.size()) / (stages * tensor);
  auto next = devices.begin();
  for (int s = 0; s < stages; ++s) {
    Part part;
    part.tensor = tensor;
    part.data = data;
    part.devices.assign(next, next + static_cast<std::ptrdiff_t>(data) * tensor);
    next += static_cast<std::ptrdiff_t>(data) * tensor;
    sketch.parts.push_back(part);
  }
  spread_units(sketch, apportion(problem.model.unit_count(), std::vector<double>(stages, 1.0)), 1);
  return sketch;
}

}  // namespace

std::vector<Sketch> uniform_sketches(const Problem& problem, Random& random) {
  std::vector<Sketch> out;
  const std::vector<int> batches = divisors(problem.job.global_batch);
  for (const std::vector<DeviceId>& devices : device_orders(problem)) {
    const int most = std::min(static_cast<int>(devices.size()), problem.model.unit_count());
    for (int stages = 1; stages <= most; stages = stages < 4 ? stages + 1 : stages * 3 / 2) {
      for (int tensor = 1; tensor <= 8 && tensor * stages <= std::ssize(devices); tensor *= 2) {
        Sketch sketch = evenly(problem, devices, stages, tensor);
        sketch.settings.zero = random() % 2 == 0 ? ZeroStage::optimizer : ZeroStage::off;
        // Few samples a replica, or a few times that.
        const int data = sketch.parts.front().data;
        std::vector<int> fitting;
        for (const int m : batches)
          if (problem.job.global_batch / m >= data) fitting.push_back(m);
        if (fitting.empty()) continue;
        const int back = std::min(static_cast<int>(fitting.size()) - 1, pick(random, 0, 2));
        sketch.settings.micro_batches = fitting[fitting.size() - 1 - back];
        if (set_all_shares(problem, sketch)) out.push_back(std::move(sketch));
      }
    }
  }
  return out;
}

Sketch random_sketch(const Problem& problem, Random& random) {
  std::vector<DeviceId> devices = device_orders(problem).front();
  std::rotate(devices.begin(),
              devices.begin() + pick(random, 0, static_cast<int>(devices.size()) - 1),
              devices.end());
  const int most = std::min(static_cast<int>(devices.size()), problem.model.unit_count());
  const int stages = pick(random, 1, std::min(most, 24));
  const int tensor = power_of_two(random, static_cast<int>(devices.size()) / stages);
  Sketch sketch = evenly(problem, devices, stages, std::min(tensor, 8));
  const std::vector<int> batches = divisors(problem.job.global_batch);
  sketch.settings.micro_batches = batches[random() % batches.size()];
  sketch.settings.zero = random() % 2 == 0 ? ZeroStage::optimizer : ZeroStage::off;
  if (random() % 3 == 0)
    for (Part& part : sketch.parts) part.recompute = Recompute::full;
  set_all_shares(problem, sketch);
  return sketch;
}

}  // namespace plait::second_opinion
