#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace plait {

// Calls body(i) for every i in [0, count), on at most `threads` threads; the only place that makes
// threads. Which thread runs which i is not defined, so body(i) must write to its own slot and the
// caller merges the slots in index order: then the result is the same for any thread count.
// When a body throws (no more memory), the others end soon and one of the exceptions is thrown
// here. Where the system has no more threads, those that there are do the work.
template <typename Body>
void parallel_for(int count, int threads, const Body& body) {
  const int workers = std::min(threads, count);
  if (workers <= 1) {
    for (int i = 0; i < count; ++i) body(i);
    return;
  }
  std::atomic<int> next = 0;
  std::atomic<bool> failed = false;
  std::exception_ptr first;
  const auto work = [&] {
    try {
      for (int i = next++; i < count; i = next++) body(i);
    } catch (...) {
      next = count;
      if (!failed.exchange(true)) first = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> pool;
    pool.reserve(static_cast<std::size_t>(workers));
    try {
      for (int w = 1; w < workers; ++w) pool.emplace_back(work);
    } catch (const std::system_error&) {
    }
    work();
  }
  if (failed) std::rethrow_exception(first);
}

}  // namespace plait
