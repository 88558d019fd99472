#include "base/parallel.h"

#include <gtest/gtest.h>

#include <new>
#include <numeric>
#include <vector>

namespace plait {
namespace {

TEST(ParallelFor, CallsEveryIndexOnce) {
  for (const int threads : {1, 2, 7}) {
    std::vector<int> calls(100);
    parallel_for(100, threads, [&](int i) { ++calls[static_cast<std::size_t>(i)]; });
    EXPECT_EQ(calls, std::vector<int>(100, 1)) << threads;
  }
}

// As when memory runs out in a worker: main() turns it into a sentence.
TEST(ParallelFor, WhatAWorkerThrowsReachesTheCaller) {
  for (const int threads : {1, 2, 7})
    EXPECT_THROW(parallel_for(100, threads,
                              [](int i) {
                                if (i % 10 == 3) throw std::bad_alloc();
                              }),
                 std::bad_alloc)
        << threads;
}

}  // namespace
}  // namespace plait
