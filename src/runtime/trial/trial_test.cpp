#include "runtime/trial/trial.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "io/format/json_reader.h"
#include "runtime/trial/plan_fields.h"
#include "runtime/trial/trial_rows.h"

namespace plait::runtime {
namespace {

constexpr const char* kStep = "echo \"elapsed time per iteration (ms): 100.0 |\"; ";

TrialOptions quick(const std::string& command) {
  TrialOptions options;
  options.command = command;
  options.warm_up = 1;
  options.steps = 2;
  options.timeout = Seconds(5);
  options.grace = Seconds(0.2);
  return options;
}

TEST(TrialTest, StopsTheCommandWhenThereAreEnoughSteps) {
  const TrialResult result =
      run_trial(quick(std::string("while true; do ") + kStep + " sleep 0.02; done"));
  EXPECT_EQ(result.end, TrialEnd::measured);
  EXPECT_DOUBLE_EQ(result.step->value, 0.1);
  EXPECT_EQ(result.steps, 2);
  EXPECT_LT(result.elapsed.value, 3);
}

TEST(TrialTest, StepsBeyondThoseThatWereAskedForDoNotCount) {
  // The first warms up, two count, and what is printed while the command ends does not.
  const TrialResult result = run_trial(
      quick("for t in 9 1 3 20 20 20; do echo \"elapsed time per iteration (ms): ${t}000\"; done"));
  EXPECT_EQ(result.steps, 2);
  EXPECT_DOUBLE_EQ(result.step->value, 2);
}

TEST(TrialTest, ACommandThatEndsWellMayShowFewerSteps) {
  const TrialResult result = run_trial(quick(std::string(kStep) + kStep));
  EXPECT_EQ(result.end, TrialEnd::measured);
  EXPECT_EQ(result.steps, 1);
}

TEST(TrialTest, AFailureIsToldWithItsLastError) {
  const TrialResult result =
      run_trial(quick("echo 'ValueError: tp must divide heads' >&2; exit 4"));
  EXPECT_EQ(result.end, TrialEnd::failed);
  EXPECT_EQ(result.reason, "exited with status 4: ValueError: tp must divide heads");
}

TEST(TrialTest, ALogWithoutStepsIsAFailure) {
  EXPECT_EQ(run_trial(quick("true")).reason, "no step time is in its log");
  TrialOptions options = quick(kStep);
  options.warm_up = 3;
  EXPECT_EQ(run_trial(options).reason, "its log has 1 step times, and the first 3 are warm-up");
}

TEST(TrialTest, MemoryThatRanOutIsRecognised) {
  const TrialResult result =
      run_trial(quick("echo 'torch.cuda.OutOfMemoryError: CUDA out of memory. Tried' >&2; exit 1"));
  EXPECT_EQ(result.end, TrialEnd::out_of_memory);
}

TEST(TrialTest, WhatHangsIsKilledWithAllThatItStartedWhereverItWent) {
  TrialOptions options = quick(
      "trap '' TERM; sleep 60 & echo $! > $PIDS; "
      "setsid sh -c 'echo $$ >> $PIDS; sleep 60' & wait");
  const std::string pids =
      (std::filesystem::path(testing::TempDir()) / (std::to_string(getpid()) + "_trial_pids.txt"))
          .string();
  options.environment = {{"PIDS", pids}};
  options.timeout = Seconds(0.7);
  const TrialResult result = run_trial(options);
  EXPECT_EQ(result.end, TrialEnd::timed_out);
  std::ifstream file(pids);
  int count = 0;
  for (int pid = 0; file >> pid; ++count) {
    std::ifstream status("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    EXPECT_TRUE(!std::getline(status, text) || text.find(") Z ") != std::string::npos) << text;
  }
  EXPECT_EQ(count, 2);
}

TEST(TrialTest, SilenceIsAHang) {
  TrialOptions options = quick("sleep 30");
  options.silence = Seconds(0.3);
  const TrialResult result = run_trial(options);
  EXPECT_EQ(result.end, TrialEnd::timed_out);
  EXPECT_LT(result.elapsed.value, 3);
}

TEST(PlanFieldsTest, NamesAreReplacedAndTheShellsAreNot) {
  const PlanFields fields{{"tp", "2"}, {"plan", "a b.json"}};
  EXPECT_EQ(with_fields("run ${tp} --tp {tp} '{plan}' {{tp}} {} {a b}", fields),
            "run ${tp} --tp 2 'a b.json' {tp} {} {a b}");
  EXPECT_THROW(with_fields("{pt}", fields), InputError);
  EXPECT_EQ(variable_of("layers_per_stage"), "PLAIT_LAYERS_PER_STAGE");
}

std::string field_fault(const std::string& command, const std::string& value) {
  try {
    return with_fields(command, {{"model", value}});
  } catch (const InputError& error) {
    return "refused";
  }
}

TEST(PlanFieldsTest, AValueIsOneWordOfTheShellWhateverIsInIt) {
  EXPECT_EQ(field_fault("run {model} x", "gpt2-xl"), "run gpt2-xl x");
  EXPECT_EQ(field_fault("run {model}", "x;touch PWNED;#"), "run 'x;touch PWNED;#'");
  EXPECT_EQ(field_fault("run --name={model}", "it's $(id)"), "run --name='it'\\''s $(id)'");
  EXPECT_EQ(field_fault("run {model}", ""), "run ''");
  // Where the shell, or another one, would read it again.
  for (const char* command :
       {"run '{model}'", "run \"{model}\"", "sh -c 'run {model}'", "run \\{model}", "x # {model}",
        "run $(echo {model})", "run `echo {model}`", "cat <<EOF\n{model}\nEOF", "run ${X:-{model}}",
        "x=\"$(run \"{model}\")\"", "run $'{model}'"}) {
    EXPECT_EQ(field_fault(command, "x;touch PWNED;#"), "refused") << command;
    EXPECT_NE(field_fault(command, "gpt2"), "refused") << command;
  }
  EXPECT_EQ(field_fault("run {model}", "x\ntouch PWNED"), "refused");
  EXPECT_EQ(field_fault("run 'a' \"b\" {model}", "a b"), "run 'a' \"b\" 'a b'");
}

// The shell itself is the judge: the command prints its words, one to a line.
TEST(PlanFieldsTest, TheShellSeesTheValueAndRunsNothingOfIt) {
  for (const char* value : {"x;touch PWNED;#", "$(touch PWNED)", "`touch PWNED`", "a'b\"c\\d", "*",
                            "~", "-n", "a && b || c", "\xff\x80", "{plan}", "!1", "#"}) {
    const std::string command = with_fields("printf '%s' {model}", {{"model", value}});
    std::FILE* pipe = popen(command.c_str(), "r");
    std::string printed(100, '\0');
    printed.resize(std::fread(printed.data(), 1, printed.size(), pipe));
    EXPECT_EQ(pclose(pipe), 0) << command;
    EXPECT_EQ(printed, value) << command;
  }
  EXPECT_FALSE(std::filesystem::exists("PWNED"));
}

TEST(TrialRowsTest, RowsComeBackAndATornLineDoesNotCount) {
  const std::string path =
      (std::filesystem::path(testing::TempDir()) / (std::to_string(getpid()) + "_rows.csv"))
          .string();
  std::filesystem::remove(path);
  TrialRow good{"1", "pp1 tp1, \"x\"", Seconds(1.1), Bytes(0x1p30), {}};
  good.result.end = TrialEnd::measured;
  good.result.step = Seconds(1);
  good.result.memory = Bytes(0x1p31);
  TrialRow bad{"2", "pp2", Seconds(2), Bytes(0x1p30), {}};
  bad.result.reason = "exited with status 1:\nwhy";
  TrialRows rows(path);
  rows.append(good, Problem());
  rows.append(bad, Problem());
  std::ofstream(path, std::ios::app) << "3,measured,1";
  const TrialRows again(path);
  ASSERT_EQ(again.rows().size(), 2U);
  EXPECT_EQ(again.find("1")->plan, good.plan);
  EXPECT_NEAR(*again.find("1")->error(), 0.1, 1e-12);
  EXPECT_NEAR(*again.find("1")->memory_error(), -0.5, 1e-12);
  EXPECT_EQ(again.find("2")->result.reason, "exited with status 1: why");
  EXPECT_EQ(again.find("3"), nullptr);
  EXPECT_EQ(read_text_file(path).back(), '\n');
}

TEST(TrialRowsTest, AFileOfAnotherKindIsRefusedAndKeepsItsLastLine) {
  const std::string path =
      (std::filesystem::path(testing::TempDir()) / (std::to_string(getpid()) + "_notes.txt"))
          .string();
  for (const std::string notes : {"a line that has no end", "x,y\n1,2\n3,4"}) {
    std::ofstream(path, std::ios::trunc) << notes;
    EXPECT_THROW(TrialRows{path}, InputError);
    EXPECT_EQ(read_text_file(path), notes);
  }
  // What a table is after a crash in its first line.
  std::ofstream(path, std::ios::trunc) << "id,outc";
  EXPECT_TRUE(TrialRows(path).rows().empty());
  EXPECT_EQ(read_text_file(path), "");
}

}  // namespace
}  // namespace plait::runtime
