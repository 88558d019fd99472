#include "runtime/meet/watchdog.h"

#include <gtest/gtest.h>

#include "runtime/launch/run_secret.h"
#include "runtime/meet/meeting_server.h"

namespace plait::runtime {
namespace {

constexpr auto kSettled = std::chrono::seconds(1);  // all have met and beaten

// Ranks of one process, each with a watchdog of its own, and a server that could die.
class WatchdogTest : public testing::Test {
 protected:
  WatchdogTest() {
    const MeetingPlace place = meeting_place(
        {.world = kWorld, .local_world = kWorld, .port = free_port(), .secret = new_secret()});
    server_ = std::make_unique<MeetingServer>(place, nullptr);
    for (int rank = 0; rank < kWorld; ++rank) {
      hearts_.push_back(std::make_unique<Heartbeat>(-1));
      WatchdogOptions watch;
      watch.every = Seconds(0.05);
      watch.silence = Seconds(2);
      watch.stall = {.first_step = 2, .base = 2, .steps = 0};
      watch.on_failure = [](const RankFailure&) {};
      dogs_.push_back(std::make_unique<Watchdog>(place, rank, *hearts_.back(), watch));
    }
  }

  void expect_named(int rank, const std::string& words, int except = -1) {
    for (int other = 0; other < kWorld; ++other) {
      if (other == except) continue;
      const auto failure = dogs_[static_cast<std::size_t>(other)]->failure(Seconds(10));
      ASSERT_TRUE(failure) << other;
      EXPECT_EQ(failure->rank, rank);
      EXPECT_NE(failure->reason.find(words), std::string::npos) << failure->reason;
    }
  }

  static constexpr int kWorld = 3;
  std::unique_ptr<MeetingServer> server_;
  std::vector<std::unique_ptr<Heartbeat>> hearts_;
  std::vector<std::unique_ptr<Watchdog>> dogs_;
};

TEST_F(WatchdogTest, HealthyRanksEndInPeace) {
  for (int i = 0; i < 20; ++i) {
    for (const auto& heart : hearts_) heart->progress();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  std::vector<std::thread> threads;
  for (const auto& dog : dogs_) threads.emplace_back([&dog] { dog->finish(); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& dog : dogs_) EXPECT_FALSE(dog->failure(Seconds(0)));
}

TEST_F(WatchdogTest, ASilentRankIsNamedByAll) {
  std::vector<std::unique_ptr<Heartbeat::Wait>> waits;
  for (const auto& heart : hearts_) waits.push_back(std::make_unique<Heartbeat::Wait>(*heart));
  hearts_[1]->step(17);
  std::this_thread::sleep_for(kSettled);
  dogs_[1].reset();
  expect_named(1, "no heartbeat", 1);
  EXPECT_EQ(dogs_[0]->failure(Seconds(0))->step, 17);
}

TEST_F(WatchdogTest, ARankThatIsStuckIsNamedNotThoseThatWaitForIt) {
  const Heartbeat::Wait first(*hearts_[0]), second(*hearts_[1]);
  expect_named(2, "no progress");
}

TEST_F(WatchdogTest, WithoutItsServerRankZeroIsGone) {
  const Heartbeat::Wait first(*hearts_[0]), second(*hearts_[1]), third(*hearts_[2]);
  for (const auto& heart : hearts_) heart->step(9);
  std::this_thread::sleep_for(kSettled);
  server_.reset();
  expect_named(0, "cannot be reached");
  EXPECT_EQ(dogs_[1]->failure(Seconds(0))->step, 9);
}

}  // namespace
}  // namespace plait::runtime
