#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "runtime/profiler/profile.h"

namespace plait::runtime {
namespace {

using TimingPart = std::optional<Timing> Measurement::*;

constexpr TimingPart kParts[] = {&Measurement::forward,         &Measurement::backward,
                                 &Measurement::weight_gradient, &Measurement::optimizer,
                                 &Measurement::forward_launch,  &Measurement::backward_launch};

Timing combined(const std::vector<Timing>& rounds) {
  std::vector<double> medians;
  std::vector<double> spreads;
  Timing out;
  for (const Timing& round : rounds) {
    medians.push_back(round.median.value);
    spreads.push_back(round.spread);
    out.repeats += round.repeats;
  }
  const auto [low, high] = std::ranges::minmax(medians);
  out.median = timing_of(medians).median;
  out.spread = timing_of(spreads).median.value;
  if (out.median > Seconds(0))
    out.spread = std::max(out.spread, (high - low) / 2 / out.median.value);
  return out;
}

}  // namespace

Measurement combined(const std::vector<Measurement>& rounds) {
  PLAIT_CHECK(!rounds.empty());
  Measurement out = rounds.front();
  for (const Measurement& round : rounds) {
    if (round.out_of_memory) return round;
    for (const std::string& flag : round.flags)
      if (std::ranges::find(out.flags, flag) == out.flags.end()) out.flags.push_back(flag);
  }
  for (const TimingPart part : kParts) {
    std::vector<Timing> timings;
    for (const Measurement& round : rounds)
      if (round.*part) timings.push_back(*(round.*part));
    if (!timings.empty()) out.*part = combined(timings);
  }
  return out;
}

MeasureOutcome measure_points(const std::vector<ProfilePoint>& points, Meter& meter,
                              const MeasureRun& run) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  struct Missing {
    std::size_t point;
    std::string fingerprint;
  };
  std::vector<std::vector<Measurement>> found(points.size());
  std::vector<bool> fresh(points.size());
  std::vector<Missing> missing;  // round after round
  for (int round = 0; round < run.rounds; ++round)
    for (std::size_t i = 0; i < points.size(); ++i) {
      std::string fingerprint = fingerprint_of(points[i], meter.machine(), round);
      if (const Measurement* known = run.cache.find(fingerprint)) {
        found[i].push_back(*known);
        continue;
      }
      missing.push_back({i, std::move(fingerprint)});
      fresh[i] = true;
    }
  double done = 0;
  for (const auto& [i, fingerprint] : missing) {
    const bool late = run.budget > Seconds(0) && elapsed() > run.budget.value;
    if (late || run.stop.stop_requested()) break;
    const ProfilePoint& point = points[i];
    // What does not fit will not fit in the next round either.
    const bool hopeless = !found[i].empty() && found[i].back().out_of_memory;
    const Measurement result = hopeless     ? found[i].back()
                               : point.unit ? meter.unit(*point.unit)
                                            : meter.op(point.op);
    run.cache.append(fingerprint, point.text, result);
    found[i].push_back(result);
    ++done;
    const double left = (static_cast<double>(missing.size()) - done) * elapsed() / done;
    const double limit = run.budget > Seconds(0) ? run.budget.value - elapsed() : left;
    if (run.progress)
      run.progress(done / static_cast<double>(missing.size()),
                   Seconds(std::max(0.0, std::min(left, limit))));
  }
  MeasureOutcome outcome;
  outcome.results.resize(points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (found[i].empty()) {
      ++outcome.left_out;
      continue;
    }
    outcome.results[i] = combined(found[i]);
    ++(fresh[i] ? outcome.measured : outcome.from_cache);
  }
  return outcome;
}

}  // namespace plait::runtime
