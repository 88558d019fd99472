#include "runtime/launch/launcher.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <map>
#include <thread>

#include "base/error.h"
#include "runtime/launch/child_process.h"

namespace plait::runtime {
namespace {

struct Watched {
  LaunchOutcome outcome;
  std::multimap<int, std::string> out, err;
  double seconds = 0;
};

Watched run_shell(const std::string& script, int ranks, LaunchOptions options = {}) {
  Watched run;
  options.command = {"sh", "-c", script};
  options.ranks = ranks;
  options.on_line = [&run](int rank, bool error_stream, const std::string& line) {
    (error_stream ? run.err : run.out).emplace(rank, line);
  };
  const auto begin = std::chrono::steady_clock::now();
  run.outcome = launch(options);
  run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return run;
}

LaunchOptions hasty() {
  LaunchOptions options;
  options.silence = Seconds(0.6);
  options.stall = {.first_step = 0.8, .base = 0.8, .steps = 0};
  options.grace = Seconds(0.3);
  return options;
}

// Ended, though perhaps still a zombie that init has not seen to.
bool is_gone(int process) {
  for (int tries = 0; tries < 100; ++tries, usleep(20000)) {
    std::ifstream file("/proc/" + std::to_string(process) + "/stat");
    std::string text;
    if (!std::getline(file, text) || text.find(") Z ") != std::string::npos) return true;
  }
  return false;
}

std::string failure_of(const Watched& run) {
  return run.outcome.failure ? in_words(*run.outcome.failure) : "none";
}

TEST(LauncherTest, RanksFindTorchrunsVariablesAndTheirLinesComeBackByRank) {
  const Watched run = run_shell(
      "echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $MASTER_ADDR; "
      "test $MASTER_PORT -gt 0 && echo trouble >&2",
      2);
  EXPECT_TRUE(run.outcome.good()) << failure_of(run);
  EXPECT_EQ(run.out,
            (std::multimap<int, std::string>{{0, "0/2 0/2 127.0.0.1"}, {1, "1/2 1/2 127.0.0.1"}}));
  EXPECT_EQ(run.err, (std::multimap<int, std::string>{{0, "trouble"}, {1, "trouble"}}));
}

TEST(LauncherTest, ThreadsOfEachRankAreSet) {
  LaunchOptions options;
  options.threads = {1, 4};
  const Watched run = run_shell("echo $OMP_NUM_THREADS", 2, options);
  EXPECT_EQ(run.out, (std::multimap<int, std::string>{{0, "1"}, {1, "4"}}));
  options.threads = {1, 4, 4};
  EXPECT_THROW(run_shell("true", 2, options), InputError);
}

TEST(LauncherTest, ARankThatFailsIsNamedAndTheOthersAreStopped) {
  const Watched run = run_shell("if [ $RANK = 1 ]; then exit 3; fi; sleep 30", 3);
  EXPECT_EQ(failure_of(run), "rank 1 exited with status 3, before its first step");
  EXPECT_LT(run.seconds, 5);
}

TEST(LauncherTest, TheKilledRankIsNamedNotItsVictims) {
  // Rank 0 fails first, as one that lost its peer.
  const Watched run = run_shell(
      "echo 7 1 working >&$PLAIT_HEARTBEAT_FD; "
      "if [ $RANK = 0 ]; then exit 75; fi; if [ $RANK = 1 ]; then sleep 0.2; kill -9 $$; fi; "
      "sleep 30",
      3);
  EXPECT_EQ(failure_of(run),
            "rank 1 was killed by SIGKILL (kill -9, or the kernel was out of memory), in step 7");
}

TEST(LauncherTest, AStoppedRankIsSilent) {
  const Watched run = run_shell(
      "if [ $RANK = 1 ]; then echo 4 1 working >&$PLAIT_HEARTBEAT_FD; kill -STOP $$; fi; "
      "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo 4 $i working >&$PLAIT_HEARTBEAT_FD; "
      "sleep 0.2; done",
      2, hasty());
  ASSERT_TRUE(run.outcome.failure);
  EXPECT_EQ(run.outcome.failure->rank, 1);
  EXPECT_EQ(run.outcome.failure->step, 4);
  EXPECT_NE(run.outcome.failure->reason.find("no heartbeat"), std::string::npos);
}

TEST(LauncherTest, ARankThatIsStoppedBeforeItsFirstBeatIsNamed) {
  // It may take 20 s to its first beat, but not when it does not run.
  LaunchOptions options = hasty();
  options.first_beat = Seconds(20);
  const Watched run = run_shell("if [ $RANK = 1 ]; then kill -STOP $$; fi; sleep 5", 2, options);
  EXPECT_EQ(failure_of(run).substr(0, 24), "rank 1 has been stopped ") << failure_of(run);
  EXPECT_LT(run.seconds, 4);
  // A pause that is shorter than the 0.6 s of a silence is none.
  EXPECT_TRUE(run_shell("(sleep 0.3; kill -CONT $$) & kill -STOP $$; sleep 0.5", 2, options)
                  .outcome.good());
}

TEST(LauncherTest, ARankThatIsStuckIsNamedNotThoseThatWaitForIt) {
  const Watched run = run_shell(
      "what=waiting; if [ $RANK = 2 ]; then what=working; fi; "
      "while true; do echo 5 9 $what >&$PLAIT_HEARTBEAT_FD; sleep 0.2; done",
      3, hasty());
  ASSERT_TRUE(run.outcome.failure);
  EXPECT_EQ(run.outcome.failure->rank, 2);
  EXPECT_NE(run.outcome.failure->reason.find("has made no progress"), std::string::npos);
}

TEST(LauncherTest, ALongStepIsNoHang) {
  // 1.2 s in which rank 0 moves and rank 1 waits for it, longer than the 0.8 s of a stall.
  const Watched run = run_shell(
      "for i in 1 2 3 4 5 6; do if [ $RANK = 0 ]; then echo 1 $i working; else echo 1 1 waiting; "
      "fi >&$PLAIT_HEARTBEAT_FD; sleep 0.2; done",
      2, hasty());
  EXPECT_TRUE(run.outcome.good()) << failure_of(run);
}

TEST(LauncherTest, ALauncherThatCouldNotPrintBlamesNobody) {
  // Its progress stands still for 2.6 s, of which the launcher was away for 2.5 s.
  LaunchOptions options = hasty();
  options.command = {"sh", "-c",
                     "echo 1 1 working >&3; echo hello; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13; do "
                     "sleep 0.2; echo 1 1 working >&3; done; echo 2 2 working >&3"};
  options.stall = {.first_step = 1.5, .base = 1.5, .steps = 0};
  options.on_line = [](int, bool, const std::string&) { usleep(2'500'000); };
  EXPECT_TRUE(launch(options).good());
}

TEST(LauncherTest, RanksThatAllWaitAreADeadlock) {
  const Watched run = run_shell(
      "while true; do echo 2 3 waiting >&$PLAIT_HEARTBEAT_FD; sleep 0.2; done", 2, hasty());
  ASSERT_TRUE(run.outcome.failure);
  EXPECT_NE(run.outcome.failure->reason.find("as all ranks have"), std::string::npos);
}

TEST(LauncherTest, StopLeavesNothingBehindEvenOfRanksThatIgnoreIt) {
  std::stop_source stop;
  LaunchOptions options = hasty();
  options.stop = stop.get_token();
  options.on_beat = [&](int, const Beat&) { stop.request_stop(); };
  std::vector<int> processes;
  options.command = {"sh", "-c",
                     "trap '' TERM; sleep 30 & echo $$ $!; echo 1 1 working "
                     ">&$PLAIT_HEARTBEAT_FD; while true; do sleep 0.1; done"};
  options.ranks = 2;
  options.on_line = [&](int, bool, const std::string& line) {
    processes.push_back(std::stoi(line));
    processes.push_back(std::stoi(line.substr(line.find(' '))));
  };
  const LaunchOutcome outcome = launch(options);
  EXPECT_TRUE(outcome.interrupted);
  EXPECT_FALSE(outcome.failure);
  EXPECT_GE(processes.size(), 2U);
  for (const int process : processes) EXPECT_TRUE(is_gone(process)) << process;
}

TEST(LauncherTest, ACommandThatIsNotThereIsWrongInput) {
  LaunchOptions options;
  options.command = {"/no/such/program"};
  EXPECT_THROW(launch(options), InputError);
}

TEST(HeartbeatTest, BeatsReadBack) {
  const Beat beat{12, 345, Activity::waiting};
  EXPECT_EQ(beat_line(beat), "12 345 waiting\n");
  EXPECT_EQ(parse_beat_line("12 345 waiting"), beat);
  for (const char* wrong : {"", "12", "12 345", "12 345 dead", "x 345 waiting", "1 2 3 working"})
    EXPECT_EQ(parse_beat_line(wrong), std::nullopt) << wrong;
}

TEST(HeartbeatTest, ARecordTellsAHangFromALongStep) {
  BeatRecord record;
  record.hear({4, 1, Activity::working});
  EXPECT_FALSE(record.finished_a_step());
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  record.hear({4, 1, Activity::working});
  EXPECT_LT(record.silent(), 0.09);
  EXPECT_GE(record.still(), 0.1);
  record.hear({6, 9, Activity::working});  // two steps in 0.1 s
  EXPECT_LT(record.still(), 0.09);
  EXPECT_NEAR(record.longest_step(), 0.05, 0.02);
  const StallLimits limits;
  EXPECT_EQ(limits.limit(false, 0), 300);
  EXPECT_EQ(limits.limit(true, 2), 16);  // 10 + 3 * 2
}

TEST(HeartbeatTest, WaitsNestAndCountAsProgress) {
  Heartbeat heart(-1);
  heart.step(3);
  EXPECT_EQ(heart.last(), (Beat{3, 1, Activity::working}));
  {
    Heartbeat::Wait outer(heart);
    { Heartbeat::Wait inner(heart); }
    EXPECT_EQ(heart.last().activity, Activity::waiting);
  }
  EXPECT_EQ(heart.last(), (Beat{3, 5, Activity::working}));
}

TEST(HeartbeatTest, AThreadRepeatsTheLastBeat) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  {
    Heartbeat heart(ends[1]);
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
  }
  close(ends[1]);
  LineReader reader(ends[0]);
  EXPECT_EQ(reader.read_lines(), (std::vector<std::string>{"0 0 working", "0 0 working"}));
  close(ends[0]);
}

}  // namespace
}  // namespace plait::runtime
