#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/profiler/profile.h"

namespace plait::runtime {

// Marks points in time on a device without waiting for it: events of its stream on CUDA, the clock
// on the CPU, where work is done when a call returns.
class Stopwatch {
 public:
  explicit Stopwatch(c10::Device device) : device_(device) {}
  void mark();
  // Waits for the device; seconds between each mark and the next since the last call.
  std::vector<double> intervals();

 private:
  c10::Device device_;
  std::vector<std::chrono::steady_clock::time_point> times_;  // of the host
  std::vector<c10::Event> events_;
};

void synchronise(c10::Device device);
// Gives the pool of the caching allocator back to the device; nothing on the CPU.
void empty_pool(c10::Device device);

struct Repetition {
  double tight = 0.01;
  Seconds longest{0.4};
  int fewest = 5;
  // Of work without a pause before anything counts, and again at least while it does.
  Seconds settle{0};
};

// What is repeated: `once` marks `marks` times. `hold` keeps the device busy for some seconds
// without marks; nothing on the CPU.
struct Repeated {
  int marks = 2;
  std::function<void(Stopwatch&)> once;
  std::function<void(double seconds)> hold = nullptr;
};

// By interval inside a run, the times of all runs.
struct Repeats {
  std::vector<std::vector<double>> device;
};

// Runs it again and again: first to warm up, waiting for each, then in batches without waiting in
// between, until the median of every interval is tight or time is over. What runs while the device
// settles does not count. Where the host takes as
// long to launch a run as the device to do it, the device is held before each run until all of it
// is launched: so what is measured is the device. A run of over two seconds on the CPU is not
// repeated: it would take a budget of many points.
Repeats repeat(c10::Device device, const Repetition& repetition, const Repeated& what);

// Counts what tensors take on this thread and on the threads that compute its gradients, while it
// lives: bytes that were not there at its beginning, and the pool of the caching allocator.
class MemoryWatch {
 public:
  MemoryWatch();
  ~MemoryWatch();
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;

  std::int64_t now() const;
  std::int64_t peak() const;
  void forget_peak();
  std::int64_t reserved() const;  // most; 0 where there is no pool

 private:
  struct Counter;
  std::shared_ptr<Counter> counter_;
};

}  // namespace plait::runtime
