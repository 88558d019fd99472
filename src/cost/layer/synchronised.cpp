#include "cost/layer/synchronised.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace plait {
namespace {

// Relative standard deviations of what the analytic model expects.
constexpr double kUnsureHost = 0.5;
constexpr double kUnsureDevice = 0.25;
// The part of the host's time that is the forward pass: backward launches twice the kernels, but
// from compiled code (the header says more).
constexpr double kForwardLaunch = 0.5;
// Of what is expected of the device. Set, not fitted: two standard deviations.
constexpr double kLeastDevice = 1 - 2 * kUnsureDevice;

struct Measured {
  int micro_batch = 1;
  Seconds forward;
};

// Of each tensor degree, the smallest micro-batch that was timed alone.
std::map<int, Measured> times_alone(const MeasuredPlace& place) {
  std::map<int, Measured> found;
  for (const auto& [key, sample] : place.profile.compute) {
    if (key.unit != place.usual.name || key.device_type != place.device_type || key.split != 0 ||
        !key.shape.empty())
      continue;
    if (key.sequence != 0 && key.sequence != place.model.sequence_length) continue;
    if (!sample.synchronised || !sample.forward) return {};
    found.try_emplace(key.tensor, Measured{key.micro_batch, *sample.forward});
  }
  return found;
}

struct Shares {
  double launch = 0;
  double device = 0;
};

Shares share_out(double whole, double launch, double device) {
  const double square_launch = launch * launch;
  const double square_device = device * device;
  const double spread_launch = std::pow(2 * kUnsureHost * square_launch, 2);
  const double spread_device = std::pow(2 * kUnsureDevice * square_device, 2);
  const double spread = spread_launch + spread_device;
  if (spread <= 0) return {0, whole};
  const double square = whole * whole;
  const double left = square - square_launch - square_device;
  const double shared = square_device + left * spread_device / spread;
  const double least = std::min(square, kLeastDevice * kLeastDevice * square_device);
  const double own = std::clamp(shared, least, square);
  return {std::sqrt(square - own), std::sqrt(own)};
}

}  // namespace

std::optional<Adjustment> explain_synchronised(const MeasuredPlace& place,
                                               const AnalyticSides& analytic) {
  const std::map<int, Measured> times = times_alone(place);
  if (times.empty()) return std::nullopt;
  const auto sides_at = [&](int tensor, const Measured& measured) {
    return analytic(place.usual,
                    {.samples = static_cast<double>(measured.micro_batch), .tensor = tensor});
  };
  const auto& [least_tensor, least] = *times.begin();
  const LaunchedCost first = sides_at(least_tensor, least);
  const double compute = std::max(0.0, (least.forward - first.device.forward_comm).value);
  const double expected_launch = kForwardLaunch * first.host.value;
  const Shares shares = share_out(compute, expected_launch, first.device.forward.value);
  Adjustment out;
  if (first.device.forward > Seconds(0)) out.device = shares.device / first.device.forward.value;
  if (expected_launch > 0) out.host = shares.launch / expected_launch;
  const int wanted = place.sharding.tensor;
  auto nearest = times.begin();
  for (auto it = times.begin(); it != times.end(); ++it)
    if (std::abs(std::log(1.0 * it->first / wanted)) <
        std::abs(std::log(1.0 * nearest->first / wanted)))
      nearest = it;
  if (wanted > 1 && nearest->first > 1) {
    const LaunchedCost there = sides_at(nearest->first, nearest->second);
    const double explained =
        there.device.forward_comm.value + std::hypot(out.device * there.device.forward.value,
                                                     out.host * kForwardLaunch * there.host.value);
    out.wait = Seconds(std::max(0.0, nearest->second.forward.value - explained));
  }
  out.origin.time = Source::interpolated;
  out.origin.tensor = nearest->first;
  out.origin.micro_batch_low = out.origin.micro_batch_high = nearest->second.micro_batch;
  return out;
}

}  // namespace plait
