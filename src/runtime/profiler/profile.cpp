#include "runtime/profiler/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/version.h"
#include "model/fingerprint.h"
#include "plan/names.h"

namespace plait::runtime {
namespace {

double middle(std::vector<double>& values) {
  std::ranges::sort(values);
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

// Numbers in profiles have four digits: more is noise.
Seconds rounded(Seconds time) {
  if (time.value <= 0) return time;
  const double unit = std::pow(10, std::floor(std::log10(time.value)) - 3);
  // Through text, so that 0.0001234 is written as such.
  return Seconds(std::stod(fmt::format("{:.4g}", std::round(time.value / unit) * unit)));
}

double rounded(double spread) { return std::round(spread * 1e4) / 1e4; }

std::optional<Seconds> time_of(const std::optional<Timing>& timing) {
  return timing ? std::optional<Seconds>(rounded(timing->median)) : std::nullopt;
}

std::optional<double> spread_of(const Measurement& result) {
  std::optional<double> worst;
  for (const auto* timing : {&result.forward, &result.backward, &result.weight_gradient})
    if (*timing) worst = std::max(worst.value_or(0), rounded((*timing)->spread));
  return worst;
}

void add_unit(const UnitPlace& place, const Measurement& result, const Machine& machine,
              Profile& profile) {
  const LayerKind& kind = place.model->unit(place.unit);
  const ComputeKey key{.unit = kind.name,
                       .device_type = machine.device_type,
                       .tensor = place.tensor,
                       .micro_batch = place.micro_batch,
                       .sequence = place.model->sequence_length,
                       .split = 0,
                       .shape = fingerprint(*place.model, kind)};
  ComputeSample sample;
  sample.forward = time_of(result.forward);
  sample.backward = time_of(result.backward);
  sample.forward_launch = time_of(result.forward_launch);
  sample.backward_launch = time_of(result.backward_launch);
  sample.saved_activations = result.saved;
  sample.input = result.input;
  sample.workspace = result.workspace;
  sample.optimizer = time_of(result.optimizer);
  sample.reserved = result.reserved;
  sample.spread = spread_of(result);
  sample.flags = result.flags;
  sample.out_of_memory = result.out_of_memory;
  profile.compute[key] = sample;
}

void add_op(OpKey key, const Measurement& result, const Machine& machine, Profile& profile) {
  key.device_type = machine.device_type;
  OpSample sample;
  sample.forward = time_of(result.forward);
  sample.backward = time_of(result.backward);
  sample.weight_gradient = time_of(result.weight_gradient);
  sample.spread = spread_of(result);
  sample.flags = result.flags;
  sample.out_of_memory = result.out_of_memory;
  profile.ops[key] = sample;
}

template <typename Quantity>
void compare(ProfileComparison& comparison, const std::string& what,
             const std::optional<Quantity>& a, const std::optional<Quantity>& b) {
  if (a && b) comparison.both.push_back({what, a->value, b->value});
}

}  // namespace

Timing timing_of(std::vector<double> seconds) {
  PLAIT_CHECK(!seconds.empty());
  Timing timing;
  timing.repeats = static_cast<int>(seconds.size());
  timing.median = Seconds(middle(seconds));
  // Order statistics n/2 -+ 0.98 sqrt(n) hold the median with 95 %.
  const double n = static_cast<double>(seconds.size());
  const auto low = static_cast<std::size_t>(std::max(0.0, std::floor(n / 2 - 0.98 * std::sqrt(n))));
  const auto high =
      static_cast<std::size_t>(std::min(n - 1, std::ceil(n / 2 + 0.98 * std::sqrt(n))));
  if (timing.median > Seconds(0))
    timing.spread = (seconds[high] - seconds[low]) / 2 / timing.median.value;
  return timing;
}

bool has_outliers(std::vector<double> seconds) {
  const double median = middle(seconds);
  std::vector<double> off;
  for (const double value : seconds) off.push_back(std::abs(value - median));
  const double typical = 1.4826 * middle(off);
  const double limit = std::max(5 * typical, 0.05 * median);
  const auto far = std::ranges::count_if(off, [&](double value) { return value > limit; });
  return static_cast<double>(far) > static_cast<double>(seconds.size()) / 20;
}

double drift_of(const std::vector<double>& seconds) {
  const auto half = seconds.begin() + static_cast<long>(seconds.size() / 2);
  std::vector<double> first(seconds.begin(), half), second(half, seconds.end());
  if (first.empty()) return 0;
  const double before = middle(first);
  return before > 0 ? middle(second) / before - 1 : 0;
}

void add_flags(const std::vector<double>& seconds, std::vector<std::string>& flags) {
  constexpr double kDrift = 0.03;
  constexpr std::size_t kFewest = 20;  // repeats; of fewer the halves differ by chance
  const auto add = [&](const std::string& flag) {
    if (std::ranges::find(flags, flag) == flags.end()) flags.push_back(flag);
  };
  if (seconds.size() == 1) add("measured once");
  if (has_outliers(seconds)) add("outliers");
  const double drift = drift_of(seconds);
  if (seconds.size() >= kFewest && std::abs(drift) > kDrift)
    add(fmt::format("{} by {:.0f} %", drift > 0 ? "slowed down" : "sped up",
                    100 * std::abs(drift)));
}

Profile profile_of(const std::vector<ProfilePoint>& points, const MeasureOutcome& outcome,
                   const Machine& machine) {
  Profile profile;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!outcome.results[i]) continue;
    if (points[i].unit)
      add_unit(*points[i].unit, *outcome.results[i], machine, profile);
    else
      add_op(points[i].op, *outcome.results[i], machine, profile);
  }
  profile.provenance.source = "plait profile";
  profile.provenance.versions = machine.versions;
  profile.provenance.versions["plait"] = version();
  return profile;
}

Profile merged(Profile a, const Profile& b) {
  for (const auto& [key, sample] : b.compute) a.compute[key] = sample;
  for (const auto& [key, sample] : b.ops) a.ops[key] = sample;
  for (const auto& [key, curve] : b.collectives) a.collectives[key] = curve;
  for (const StepExtra& extra : b.extras) {
    std::erase_if(a.extras, [&](const StepExtra& own) {
      return own.name == extra.name && own.device_type == extra.device_type;
    });
    a.extras.push_back(extra);
  }
  if (a.provenance.source.empty()) {
    a.provenance = b.provenance;
    return a;
  }
  for (const auto& [name, version] : b.provenance.versions)
    if (const auto [it, fresh] = a.provenance.versions.emplace(name, version);
        !fresh && it->second != version)
      it->second += " and " + version;
  if (!b.provenance.command.empty() && b.provenance.command != a.provenance.command)
    a.provenance.notes.push_back("merged with: " + b.provenance.command);
  for (const std::string& note : b.provenance.notes)
    if (std::ranges::find(a.provenance.notes, note) == a.provenance.notes.end())
      a.provenance.notes.push_back(note);
  return a;
}

ProfileComparison compare_profiles(const Profile& a, const Profile& b) {
  ProfileComparison comparison;
  for (const auto& [key, sample] : a.compute) {
    const auto other = b.compute.find(key);
    if (other == b.compute.end()) {
      ++comparison.only_a;
      continue;
    }
    const std::string what = fmt::format("{} {} tp {} mbs {} seq {}", key.device_type, key.unit,
                                         key.tensor, key.micro_batch, key.sequence);
    compare(comparison, what + " forward", sample.forward, other->second.forward);
    compare(comparison, what + " backward", sample.backward, other->second.backward);
    compare(comparison, what + " both", sample.both, other->second.both);
    compare(comparison, what + " optimizer", sample.optimizer, other->second.optimizer);
    compare(comparison, what + " saved", sample.saved_activations, other->second.saved_activations);
  }
  for (const auto& [key, sample] : a.ops) {
    const auto other = b.ops.find(key);
    if (other == b.ops.end()) {
      ++comparison.only_a;
      continue;
    }
    const std::string what = fmt::format(
        "{} {} {} {} {}x{}x{}x{}", key.device_type, name_of(key.kind), name_of(key.function),
        name_of(key.dtype), key.count, key.rows, key.inner, key.columns);
    compare(comparison, what + " forward", sample.forward, other->second.forward);
    compare(comparison, what + " backward", sample.backward, other->second.backward);
    compare(comparison, what + " weight gradient", sample.weight_gradient,
            other->second.weight_gradient);
  }
  for (const auto& [key, curve] : a.collectives) {
    const auto other = b.collectives.find(key);
    if (other == b.collectives.end()) {
      ++comparison.only_a;
      continue;
    }
    for (const CollectivePoint& point : curve)
      for (const CollectivePoint& match : other->second)
        if (match.size == point.size)
          comparison.both.push_back(
              {fmt::format("{} {} {}x{} {:.0f} B", key.device_type, key.collective, key.nodes,
                           key.devices_per_node, point.size.value),
               point.time.value, match.time.value});
  }
  for (const auto& [key, sample] : b.compute) comparison.only_b += a.compute.contains(key) ? 0 : 1;
  for (const auto& [key, sample] : b.ops) comparison.only_b += a.ops.contains(key) ? 0 : 1;
  for (const auto& [key, curve] : b.collectives)
    comparison.only_b += a.collectives.contains(key) ? 0 : 1;
  return comparison;
}

double ProfileDifference::relative() const {
  constexpr double kResolution = 1e-6;  // seconds; events are stamped every half microsecond
  if (a <= 0 || std::abs(b - a) < kResolution) return 0;
  return b / a - 1;
}

double ProfileComparison::median() const {
  std::vector<double> sizes;
  for (const ProfileDifference& difference : both) sizes.push_back(std::abs(difference.relative()));
  return sizes.empty() ? 0 : middle(sizes);
}

double ProfileComparison::largest() const {
  double most = 0;
  for (const ProfileDifference& difference : both)
    most = std::max(most, std::abs(difference.relative()));
  return most;
}

}  // namespace plait::runtime
