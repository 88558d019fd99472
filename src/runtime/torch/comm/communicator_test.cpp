#include "runtime/torch/comm/communicator.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

namespace plait::runtime {
namespace {

std::vector<std::string> environment() {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) all.emplace_back(*entry);
  return all;
}

// A setenv beside threads that read the environment, as Gloo's and MKL's do, may crash them.
TEST(Communicator, RanksThatAreThreadsLeaveTheEnvironmentAlone) {
  const std::vector<std::string> before = environment();
  const std::shared_ptr<Meeting> meeting = meet_in_process();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      Communicator ranks(meeting, rank, 2, at::kCPU, nullptr);
      ranks.make_groups({}, {});
      ranks.everyone().all_gather(at::zeros({1}), 0);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(environment(), before);
}

}  // namespace
}  // namespace plait::runtime
