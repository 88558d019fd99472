#include "second_opinion/sketch.h"

#include <algorithm>
#include <numeric>

namespace plait::second_opinion {

int Part::unit_count() const { return std::accumulate(units.begin(), units.end(), 0); }

Sketch sketch_of(const Problem& problem, const Plan& plan) {
  Sketch sketch;
  sketch.sequence = problem.model.sequence_length;
  sketch.settings = plan;
  sketch.settings.stages.clear();
  for (const Stage& stage : plan.stages) {
    Part part;
    part.units.assign(chunk_count(stage), 0);
    for (const Span& span : stage.spans) {
      part.units[span.chunk] += span.units.size();
      if (span.recompute == Recompute::none) part.kept = std::max(part.kept, span.units.size());
    }
    part.tensor = stage.spans.front().tensor;
    part.data = stage.spans.front().data;
    part.recompute = stage.spans.front().recompute;
    part.devices = stage.devices;
    part.shares = stage.shares;
    sketch.parts.push_back(std::move(part));
  }
  return sketch;
}

Plan plan_of(const Sketch& sketch) {
  Plan plan = sketch.settings;
  const int stages = sketch.part_count();
  const int chunks = sketch.chunks();
  std::vector<int> sizes(static_cast<std::size_t>(stages) * chunks);
  for (int s = 0; s < stages; ++s)
    for (int c = 0; c < chunks; ++c)
      sizes[chunk_position(plan.schedule, stages, s, c)] = sketch.parts[s].units[c];
  std::vector<int> begins(sizes.size() + 1, 0);
  std::partial_sum(sizes.begin(), sizes.end(), begins.begin() + 1);
  int most_tensor = 1;
  int most_data = 1;
  bool cuts_sequence = sketch.sequence > 1;
  for (int s = 0; s < stages; ++s) {
    const Part& part = sketch.parts[s];
    Stage stage;
    for (int c = 0; c < chunks; ++c) {
      const int at = chunk_position(plan.schedule, stages, s, c);
      const int end = begins[at + 1];
      const int first_kept =
          part.recompute == Recompute::none ? begins[at] : std::max(begins[at], end - part.kept);
      Span span{.units = {begins[at], first_kept},
                .tensor = part.tensor,
                .data = part.data,
                .recompute = part.recompute,
                .chunk = c};
      if (span.units.size() > 0) stage.spans.push_back(span);
      span.units = {first_kept, end};
      span.recompute = Recompute::none;
      if (span.units.size() > 0) stage.spans.push_back(span);
    }
    stage.devices = part.devices;
    stage.shares = part.shares;
    most_tensor = std::max(most_tensor, part.tensor);
    cuts_sequence &= sketch.sequence / plan.context % part.tensor == 0;
    most_data = std::max(most_data, part.data * plan.context);
    plan.stages.push_back(std::move(stage));
  }
  plan.sequence_parallel = most_tensor > 1 && cuts_sequence;
  if (most_data == 1) plan.zero = ZeroStage::off;
  return plan;
}

std::vector<int> apportion(int sum, const std::vector<double>& weights) {
  const int count = static_cast<int>(weights.size());
  if (count == 0 || count > sum) return {};
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<int> out(weights.size());
  for (int i = 0; i < count; ++i) out[i] = std::max(1, static_cast<int>(sum * weights[i] / total));
  // Where something is left, to the one that is furthest below its weight; and back.
  for (int rest = sum - std::accumulate(out.begin(), out.end(), 0); rest != 0;) {
    const int by = rest > 0 ? 1 : -1;
    int chosen = -1;
    double worst = 0;
    for (int i = 0; i < count; ++i) {
      if (out[i] + by < 1) continue;
      const double load = by * (out[i] + by) / weights[i];
      if (chosen < 0 || load < worst) chosen = i, worst = load;
    }
    out[chosen] += by;
    rest -= by;
  }
  return out;
}

void spread_units(Sketch& sketch, const std::vector<int>& units, int chunks) {
  for (int s = 0; s < sketch.part_count(); ++s) {
    sketch.parts[s].units.assign(chunks, 0);
    for (int c = 0; c < chunks; ++c)
      sketch.parts[s].units[c] = units[s] / chunks + (c < units[s] % chunks ? 1 : 0);
  }
}

bool set_shares(const Problem& problem, Sketch& sketch, Part& part,
                const std::vector<double>& speeds) {
  part.shares.clear();
  const int micro_batch = problem.job.global_batch / sketch.settings.micro_batches;
  if (speeds.empty() && micro_batch % part.data == 0) return true;
  part.shares =
      apportion(micro_batch, speeds.empty() ? std::vector<double>(part.data, 1.0) : speeds);
  if (part.shares.empty()) return false;
  const int first = part.shares.front();
  if (std::ranges::all_of(part.shares, [&](int share) { return share == first; }))
    part.shares.clear();
  return true;
}

double peak_of(const Problem& problem, DeviceId id) {
  const DeviceType& type = problem.cluster.type_of(id);
  return type.peak_of(DType::fp16).value * type.efficiency.matmul;
}

bool set_all_shares(const Problem& problem, Sketch& sketch) {
  for (Part& part : sketch.parts) {
    std::vector<double> speeds;
    const int group = part.tensor * sketch.settings.context;
    for (int d = 0; d < part.data; ++d)
      speeds.push_back(peak_of(problem, part.devices[static_cast<std::size_t>(d) * group]));
    const bool alike =
        std::ranges::all_of(speeds, [&](double speed) { return speed == speeds.front(); });
    if (!set_shares(problem, sketch, part, alike ? std::vector<double>{} : speeds)) return false;
  }
  return true;
}

void balance(Sketch& sketch, const Estimate& cost) {
  std::vector<double> rates;
  int sum = 0;
  for (int s = 0; s < sketch.part_count(); ++s) {
    const StageCost& stage = cost.stages[s];
    const int units = sketch.parts[s].unit_count();
    rates.push_back(units / (stage.forward_total() + stage.backward_total()).value);
    sum += units;
  }
  const int chunks = sketch.chunks();
  std::vector<int> units = apportion(sum / chunks, rates);
  if (units.empty()) return;
  if (chunks == 1) return spread_units(sketch, units, 1);
  // A unit that no chunk has room for goes to the fastest.
  for (int& count : units) count *= chunks;
  units[std::ranges::max_element(rates) - rates.begin()] += sum % chunks;
  spread_units(sketch, units, chunks);
}

std::vector<DeviceId> idle_devices(const Problem& problem, const Sketch& sketch) {
  std::vector<bool> used(problem.cluster.devices.size());
  for (const Part& part : sketch.parts)
    for (const DeviceId id : part.devices) used[index(id)] = true;
  std::vector<DeviceId> idle;
  for (int i = 0; i < problem.cluster.device_count(); ++i)
    if (!used[i]) idle.push_back(DeviceId(i));
  return idle;
}

}  // namespace plait::second_opinion
