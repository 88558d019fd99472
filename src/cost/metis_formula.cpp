#include "cost/metis_formula.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/error.h"

namespace plait {
namespace {

// Metis takes 46 GB/s as 46 * 2^20 elements a millisecond.
constexpr double kElementsPerByte = 0x1p20 * 1e3 / 1e9;
constexpr double kUpdates = 2;  // the measured optimizer time is doubled

template <typename Values>
std::vector<double> running_sums(const Values& values) {
  std::vector<double> sums{0};
  for (const auto& value : values) sums.push_back(sums.back() + value.value);
  return sums;
}

double between(const std::vector<double>& sums, const UnitRange& layers) {
  return sums[layers.end] - sums[layers.begin];
}

std::vector<int> binary_digits(int number) {
  std::vector<int> digits;
  for (int bit = 1; bit <= number; bit *= 2)
    if ((number & bit) != 0) digits.push_back(bit);
  return digits;
}

}  // namespace

MetisFormula::MetisFormula(const Problem& problem, const MetisTable& table)
    : problem_(problem), table_(table), parameters_{0} {
  const Cluster& cluster = problem.cluster;
  PLAIT_CHECK(table.points.size() == cluster.device_types.size());
  for (const auto& points : table.points) {
    sums_.emplace_back();
    for (const auto& [key, point] : points)
      sums_.back()[key] = {running_sums(point.layers), running_sums(point.memory)};
  }
  // Of the layers between the first and the last, only the first one's size is looked at.
  for (int l = 0; l < layers(); ++l)
    parameters_.push_back(parameters_.back() +
                          table.parameters[l == 0 || l == layers() - 1 ? l : 1]);
  bandwidth_.assign(cluster.device_types.size(), 0);
  for (const Device& device : cluster.devices)
    if (bandwidth_[device.type] == 0)
      bandwidth_[device.type] = cluster.nodes[device.node].intra.bandwidth.value * kElementsPerByte;
}

const MetisFormula::Sums* MetisFormula::sums(int type, int tensor, int samples) const {
  const auto it = sums_[type].find({tensor, samples});
  return it == sums_[type].end() ? nullptr : &it->second;
}

bool MetisFormula::divide_samples(std::span<const DeviceId> devices, MetisCut& cut,
                                  int micro_batch) const {
  std::vector<double> ideal;
  for (int r = 0; r < cut.data; ++r) {
    const int type = problem_.cluster.device(devices[r * cut.tensor]).type;
    const Sums* one = sums(type, cut.tensor, 1);
    if (one == nullptr) return false;
    ideal.push_back(1 / one->times.back());
  }
  const double sum = std::accumulate(ideal.begin(), ideal.end(), 0.0);
  std::vector<int> order(ideal.size());
  for (std::size_t r = 0; r < ideal.size(); ++r) {
    ideal[r] = micro_batch * ideal[r] / sum;
    cut.shares.push_back(static_cast<int>(ideal[r]));
    order[r] = static_cast<int>(r);
  }
  std::ranges::stable_sort(
      order, [&](int a, int b) { return ideal[a] - cut.shares[a] > ideal[b] - cut.shares[b]; });
  const int left = micro_batch - std::accumulate(cut.shares.begin(), cut.shares.end(), 0);
  if (left > cut.data) return false;
  for (int i = 0; i < left; ++i) ++cut.shares[order[i]];
  return std::ranges::all_of(cut.shares, [](int share) { return share > 0; });
}

std::optional<MetisCut> MetisFormula::cut(std::span<const DeviceId> devices, int data, int tensor,
                                          int micro_batches) const {
  const Cluster& cluster = problem_.cluster;
  const int micro_batch = problem_.job.global_batch / micro_batches;
  if (micro_batch % data != 0) return std::nullopt;
  MetisCut cut;
  cut.tensor = tensor;
  cut.data = data;
  cut.samples = micro_batch / data;
  cut.bandwidth = HUGE_VAL;
  std::set<int> types;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const int type = cluster.device(devices[i]).type;
    types.insert(type);
    if (type != cluster.device(devices[i - i % tensor]).type) return std::nullopt;
  }
  if (types.size() > 1 && !divide_samples(devices, cut, micro_batch)) return std::nullopt;
  std::set<std::pair<int, int>> replicas;  // type, samples
  for (int r = 0; r < data; ++r)
    replicas.insert({cluster.device(devices[r * tensor]).type,
                     cut.shares.empty() ? cut.samples : cut.shares[r]});
  for (const int type : types) {
    const auto even = table_.points[type].find({tensor, cut.samples});
    if (even == table_.points[type].end()) return std::nullopt;
    cut.sync = std::max(cut.sync, even->second.sync);
    cut.bandwidth = std::min(cut.bandwidth, bandwidth_[type]);
    const double memory = cluster.device_types[type].memory.value;
    cut.held.emplace_back(&sums(type, tensor, cut.samples)->bytes, memory);
  }
  for (const auto& [type, samples] : replicas) {
    cut.runs.emplace_back();
    for (const int slice : binary_digits(samples)) {
      const Sums* measured = sums(type, tensor, slice);
      if (measured == nullptr) return std::nullopt;
      cut.runs.back().push_back(&measured->times);
      if (slice != cut.samples)
        cut.held.emplace_back(&measured->bytes, cluster.device_types[type].memory.value);
    }
  }
  return cut;
}

Seconds MetisFormula::time(const MetisCut& cut, const UnitRange& layers) const {
  double longest = 0;
  for (const auto& run : cut.runs) {
    double sum = 0;
    for (const auto* times : run) sum += between(*times, layers);
    longest = std::max(longest, sum);
  }
  return Seconds(longest);
}

bool MetisFormula::fits(const MetisCut& cut, const UnitRange& layers) const {
  return std::ranges::all_of(
      cut.held, [&](const auto& held) { return between(*held.first, layers) <= held.second; });
}

Seconds MetisFormula::update(const MetisCut& cut, const UnitRange& layers) const {
  return table_.optimizer * (kUpdates / cut.tensor * layers.size() / this->layers());
}

Seconds MetisFormula::gradients(const MetisCut& cut, const UnitRange& layers) const {
  return Seconds(2.0 * (cut.data - 1) / cut.data * between(parameters_, layers) / cut.tensor /
                 cut.bandwidth);
}

Seconds MetisFormula::send(const MetisCut& cut, int end, double next_bandwidth) const {
  const Model& model = problem_.model;
  const double elements = end == layers() - 1
                              ? 1.0 * model.sequence_length * model.vocabulary / cut.tensor
                              : model.unit(end - 1).output;
  return Seconds(cut.samples * elements / std::min(cut.bandwidth, next_bandwidth));
}

std::optional<MetisTerms> MetisFormula::cost(const Plan& plan) const {
  MetisTerms terms;
  Seconds longest;
  std::optional<MetisCut> before;
  for (const Stage& stage : plan.stages) {
    const Span& span = stage.spans.front();
    const UnitRange units{span.units.begin, stage.spans.back().units.end};
    std::optional<MetisCut> own = cut(stage.devices, span.data, span.tensor, plan.micro_batches);
    if (!own || !fits(*own, units)) return std::nullopt;
    if (before) terms.sends += send(*before, units.begin, own->bandwidth);
    const Seconds x = time(*own, units);
    longest = std::max(longest, x);
    terms.execution += x;
    terms.update = std::max(terms.update, update(*own, units));
    terms.gradients = std::max(terms.gradients, gradients(*own, units));
    terms.sync = own->sync * plan.micro_batches;
    before = std::move(own);
  }
  terms.execution += longest * (plan.micro_batches - 1.0);
  terms.batches = table_.batch_generator * plan.micro_batches;
  return terms;
}

}  // namespace plait
