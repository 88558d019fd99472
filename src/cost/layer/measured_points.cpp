#include "cost/layer/measured_points.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "model/fingerprint.h"

namespace plait {
namespace {

// Position of the degree that is nearest to `wanted`, by ratio; the smaller one of two equals.
int nearest(const std::vector<int>& degrees, int wanted) {
  const auto distance = [&](int degree) {
    return std::abs(std::log(static_cast<double>(degree) / wanted));
  };
  return *std::ranges::min_element(degrees, {}, distance);
}

}  // namespace

MeasuredPoints::MeasuredPoints(const MeasuredPlace& place, const AnalyticCost& analytic)
    : model_(place.model),
      kind_(place.kind),
      measured_(&place.kind),
      sharding_(place.sharding),
      analytic_(analytic) {
  std::vector<const Entry*> entries = entries_of(place, place.split);
  if (entries.empty() && place.split != 0) {
    entries = entries_of(place, 0);
    measured_ = &place.usual;
  }
  if (entries.empty()) return;
  std::vector<int> tensors;
  for (const Entry* entry : entries) tensors.push_back(entry->first.tensor);
  tensor_ = nearest(tensors, sharding_.tensor);
  std::erase_if(entries, [&](const Entry* entry) { return entry->first.tensor != tensor_; });
  std::vector<int> sequences;
  for (const Entry* entry : entries) sequences.push_back(tokens(entry->first));
  sequence_ = nearest(sequences, std::max(1, model_.sequence_length));
  for (const Entry* entry : entries)
    if (tokens(entry->first) == sequence_)
      samples_.emplace_back(entry->first.micro_batch, entry->second);
  inside_ = samples_.front().second.communication_inside;
}

MeasuredPasses MeasuredPoints::passes() const {
  const auto distance = [&](const auto& entry) {
    return std::abs(std::log(entry.first / sharding_.samples));
  };
  const ComputeSample& own = std::ranges::min_element(samples_, {}, distance)->second;
  const auto sum = [](std::optional<Seconds> a, std::optional<Seconds> b) {
    return a.value_or(Seconds(0)) + b.value_or(Seconds(0));
  };
  return {sum(own.forward, own.backward), sum(own.forward_launch, own.backward_launch)};
}

double MeasuredPoints::spread() const {
  double sum = 0;
  double weights = 0;
  for (const auto& [micro_batch, sample] : samples_) {
    const double time = sample.forward.value_or(sample.both.value_or(Seconds(0))).value;
    sum += sample.spread.value_or(0) * time;
    weights += time;
  }
  return weights > 0 ? sum / weights : 0;
}

bool MeasuredPoints::same_degrees() const {
  return measured_ == &kind_ && tensor_ == sharding_.tensor && sequence() == 0 &&
         sharding_.context == 1 && sharding_.expert == 1 &&
         (sharding_.tensor == 1 || !sharding_.sequence_parallel);
}

std::vector<const MeasuredPoints::Entry*> MeasuredPoints::entries_of(const MeasuredPlace& place,
                                                                     int split) {
  const ComputeKey first{.unit = place.kind.name,
                         .device_type = place.device_type,
                         .tensor = 0,
                         .micro_batch = 0,
                         .sequence = 0,
                         .split = 0};
  std::vector<const Entry*> entries;
  std::string own;  // fingerprint, made when the first entry wants it
  const auto applies = [&](const Entry& entry) {
    if (entry.first.split != split || entry.second.out_of_memory) return false;
    if (entry.first.shape.empty()) return true;
    if (own.empty()) own = fingerprint(place.model, place.usual);
    return entry.first.shape == own;
  };
  const auto& all = place.profile.compute;
  for (auto it = all.lower_bound(first); it != all.end() && it->first.unit == first.unit &&
                                         it->first.device_type == first.device_type;
       ++it)
    if (applies(*it)) entries.push_back(&*it);
  return entries;
}

int MeasuredPoints::tokens(const ComputeKey& key) const {
  return std::max(1, key.sequence == 0 ? model_.sequence_length : key.sequence);
}

UnitCosts MeasuredPoints::measured_conditions(double b) const {
  const Sharding there{.samples = b, .tensor = tensor_};
  if (sequence() == 0) return analytic_(*measured_, there);
  const double longer = static_cast<double>(sequence_) / std::max(1, model_.sequence_length);
  return analytic_(at_sequence_ratio(*measured_, longer), there);
}

const UnitCosts& MeasuredPoints::there() const {
  if (!there_) there_ = measured_conditions(sharding_.samples);
  return *there_;
}

const UnitCosts& MeasuredPoints::here() const {
  if (!here_) here_ = analytic_(kind_, sharding_);
  return *here_;
}

}  // namespace plait
