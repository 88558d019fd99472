#include "runtime/launch/cores.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

namespace plait::runtime {
namespace {

std::vector<int> cores_of_new_thread() {
  std::vector<int> cores;
  std::thread([&] { cores = available_cores(); }).join();
  return cores;
}

TEST(Cores, RanksGetThemInOrderOrNotAtAll) {
  EXPECT_EQ(cores_of_ranks({1, 2}, {4, 5, 7}), (std::vector<std::vector<int>>{{4}, {5, 7}}));
  EXPECT_EQ(cores_of_ranks({2, 2}, {0, 1, 2}), (std::vector<std::vector<int>>{{}, {}}));
}

TEST(Cores, ThreadsOfABoundRankRoamWhileAsked) {
  const std::vector<int> all = available_cores();
  if (all.size() < 2) GTEST_SKIP() << "one core: nowhere to roam";
  std::thread([&] {
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(static_cast<std::size_t>(all.front()), &first);
    ASSERT_EQ(sched_setaffinity(0, sizeof(first), &first), 0);
    const std::vector<int> own{all.front()};
    {
      const RoamingThreads not_told;
      EXPECT_EQ(cores_of_new_thread(), own);
    }
    setenv(kCoresOfRun, list_of_cores(all).c_str(), 1);
    {
      const RoamingThreads roaming;
      EXPECT_EQ(cores_of_new_thread(), all);
    }
    EXPECT_EQ(cores_of_new_thread(), own);
    setenv(kCoresOfRun, "none,99999999", 1);
    {
      const RoamingThreads told_nonsense;
      EXPECT_EQ(cores_of_new_thread(), own);
    }
    unsetenv(kCoresOfRun);
  }).join();
}

}  // namespace
}  // namespace plait::runtime
