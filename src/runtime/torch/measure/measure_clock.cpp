#include "runtime/torch/measure/measure_clock.h"

#include <c10/core/Allocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/version.h>

#include <algorithm>

#include "base/error.h"

// Generic events can be timed, and pools emptied, since these versions; devices with events need
// them.
#define PLAIT_TORCH_AT_LEAST(major, minor) \
  (TORCH_VERSION_MAJOR > (major) ||        \
   (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))
#if PLAIT_TORCH_AT_LEAST(2, 9)
#include <c10/core/CachingDeviceAllocator.h>
#endif

namespace plait::runtime {
namespace {

c10::Stream stream_of(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

constexpr double kBatch = 0.04;   // seconds between looks at the results
constexpr double kWarm = 0.02;    // seconds
constexpr int kBurst = 3;         // runs that are launched before one waits, while warming up
constexpr int kFewestWarm = 9;    // runs of them
constexpr double kAhead = 2;      // of the time to launch a run, that the device must take
constexpr int kMostOfBatch = 64;  // marks beyond that fill the queue of the device
constexpr int kMostRepeats = 2000;
constexpr double kSlow = 2;  // seconds; a first run on the CPU that takes longer is the only one

}  // namespace

void Stopwatch::mark() {
  times_.push_back(std::chrono::steady_clock::now());
  if (device_.is_cpu()) return;
  events_.emplace_back(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
  events_.back().record(stream_of(device_));
}

std::vector<double> Stopwatch::intervals() {
  std::vector<double> out;
  if (device_.is_cpu()) {
    for (std::size_t i = 1; i < times_.size(); ++i)
      out.push_back(std::chrono::duration<double>(times_[i] - times_[i - 1]).count());
    times_.clear();
    return out;
  }
  times_.clear();
#if PLAIT_TORCH_AT_LEAST(2, 5)
  synchronise(device_);
  for (std::size_t i = 1; i < events_.size(); ++i)
    out.push_back(events_[i - 1].elapsedTime(events_[i]) * 1e-3);
  events_.clear();
  return out;
#else
  throw InputError("`device`", "this libtorch is too old to time a GPU: 2.5 or newer is needed");
#endif
}

void synchronise(c10::Device device) {
  if (device.is_cpu()) return;
  const c10::impl::VirtualGuardImpl guard(device.type());
  guard.synchronizeStream(guard.getStream(device));
}

void empty_pool(c10::Device device) {
  if (device.is_cpu()) return;
#if PLAIT_TORCH_AT_LEAST(2, 9)
  synchronise(device);
  c10::getDeviceAllocator(device.type())->emptyCache();
#endif
}

Repeats repeat(c10::Device device, const Repetition& repetition, const Repeated& what) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  const auto parts = static_cast<std::size_t>(what.marks) - 1;
  Repeats out{std::vector<std::vector<double>>(parts)};
  Stopwatch watch(device);
  // The first run loads kernels and fills the allocator's pool.
  what.once(watch);
  const std::vector<double> first = watch.intervals();
  if (device.is_cpu() && elapsed() > std::max(kSlow, repetition.longest.value)) {
    for (std::size_t part = 0; part < parts; ++part) out.device[part].push_back(first[part]);
    return out;
  }
  std::vector<double> launching;
  const int burst = device.is_cpu() ? 1 : kBurst;
  double one = 0;
  int warm = 0;
  const double warm_begin = elapsed();
  do {
    // The first of a burst finds the host's threads asleep; more would fill the queue of the
    // device.
    for (int i = 0; i < burst; ++i) {
      const double launch_begin = elapsed();
      what.once(watch);
      launching.push_back(elapsed() - launch_begin);
    }
    watch.intervals();
    warm += burst;
    one = (elapsed() - warm_begin) / warm;
  } while ((!device.is_cpu() && warm < kFewestWarm) ||
           (elapsed() - warm_begin < kWarm && elapsed() < repetition.longest.value / 2));
  const double launch = timing_of(launching).median.value;
  const bool waits = what.hold != nullptr && one < kAhead * launch;
  const int batch = std::clamp(static_cast<int>(kBatch / std::max(one, 1e-7)), 1, kMostOfBatch);
  const auto run_batch = [&] {
    if (what.hold != nullptr) what.hold(kAhead * launch);
    for (int i = 0; i < batch; ++i) {
      if (waits) what.hold(kAhead * launch);
      what.once(watch);
    }
    return watch.intervals();
  };
  const double settle = repetition.settle.value;
  while (elapsed() - warm_begin < settle) run_batch();
  const double least = settle > 0 ? elapsed() + settle : 0;
  const double limit = std::max(least, elapsed() + repetition.longest.value);
  while (true) {
    const std::vector<double> all = run_batch();
    for (std::size_t i = 0; i < all.size(); ++i)
      if (const std::size_t part = i % what.marks; part < parts) out.device[part].push_back(all[i]);
    const int repeats = static_cast<int>(out.device[0].size());
    const bool over = elapsed() > limit || repeats >= kMostRepeats;
    if (repeats < (over ? 3 : repetition.fewest)) continue;
    if (over) break;
    const bool tight = elapsed() >= least && std::ranges::all_of(out.device, [&](const auto& part) {
                         return timing_of(part).spread <= repetition.tight;
                       });
    if (tight) break;
  }
  return out;
}

struct MemoryWatch::Counter : c10::MemoryReportingInfoBase {
  // The types of the totals differ between versions of libtorch.
#if PLAIT_TORCH_AT_LEAST(2, 0)
  using Total = std::size_t;
#else
  using Total = std::int64_t;
#endif
  void reportMemoryUsage(void*, std::int64_t size, Total, Total total_reserved,
                         c10::Device) override {
    const std::int64_t value = now += size;
    std::int64_t most = peak;
    while (value > most && !peak.compare_exchange_weak(most, value)) {
    }
    const auto pool = static_cast<std::int64_t>(total_reserved);
    most = reserved;
    while (pool > most && !reserved.compare_exchange_weak(most, pool)) {
    }
  }
  bool memoryProfilingEnabled() const override { return true; }

  std::atomic<std::int64_t> now{0};
  std::atomic<std::int64_t> peak{0};
  std::atomic<std::int64_t> reserved{0};
};

MemoryWatch::MemoryWatch() : counter_(std::make_shared<Counter>()) {
  c10::ThreadLocalDebugInfo::_push(c10::DebugInfoKind::PROFILER_STATE, counter_);
}

MemoryWatch::~MemoryWatch() { c10::ThreadLocalDebugInfo::_pop(c10::DebugInfoKind::PROFILER_STATE); }

std::int64_t MemoryWatch::now() const { return counter_->now; }
std::int64_t MemoryWatch::peak() const { return counter_->peak; }
std::int64_t MemoryWatch::reserved() const { return counter_->reserved; }
void MemoryWatch::forget_peak() { counter_->peak = counter_->now.load(); }

}  // namespace plait::runtime
