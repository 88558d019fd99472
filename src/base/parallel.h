#pragma once

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace plait {

// Calls body(i) for every i in [0, count), on at most `threads` threads; the only place that makes
// threads. Which thread runs which i is not defined, so body(i) must write to its own slot and the
// caller merges the slots in index order: then the result is the same for any thread count.
// body must not throw.
template <typename Body>
void parallel_for(int count, int threads, const Body& body) {
  const int workers = std::min(threads, count);
  if (workers <= 1) {
    for (int i = 0; i < count; ++i) body(i);
    return;
  }
  std::atomic<int> next = 0;
  const auto work = [&] {
    for (int i = next++; i < count; i = next++) body(i);
  };
  std::vector<std::jthread> pool;
  for (int w = 1; w < workers; ++w) pool.emplace_back(work);
  work();
}

}  // namespace plait
