#include "io/format/json_reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "base/sample_complaint.h"

namespace plait {
namespace {

using samples::complaint;

TEST(JsonReader, NamesFileAndPointer) {
  const JsonValue root = parse_json("c.json", R"({"nodes": [{"gpus": 8}, {"gpus": -1}]})");
  EXPECT_EQ(complaint([&] { root.at("nodes").items()[1].at("gpus").integer(1, 64); }),
            "c.json#/nodes/1/gpus: must be a whole number from 1 to 64, is -1");
}

TEST(JsonReader, SuggestsTheNearestKey) {
  const JsonValue root = parse_json("c.json", R"({"memmory_GiB": 8})");
  EXPECT_EQ(complaint([&] {
              root.allow_only({"name", "memory_GiB"});
            }),
            "c.json#: unknown key 'memmory_GiB' (did you mean 'memory_GiB'?)");
}

TEST(JsonReader, SuggestsTheKeyWithItsUnit) {
  EXPECT_EQ(nearest_word("bandwidth", {"latency_us", "bandwidth_GBps"}), "bandwidth_GBps");
  EXPECT_EQ(nearest_word("net", {"network"}), "");
  EXPECT_EQ(nearest_word("p4d", {"T4", "p4d.24xlarge"}), "p4d.24xlarge");
}

TEST(JsonReader, RefusesDuplicateKeysAndTruncatedText) {
  EXPECT_EQ(complaint([] { parse_json("a", R"({"x": 1, "x": 2})"); }), "a: key 'x' appears twice");
  EXPECT_NE(complaint([] { parse_json("a", "{\n\"x\": "); }).find("line 2"), std::string::npos);
}

TEST(JsonReader, RefusesDeepNestingWithoutOverflowingTheStack) {
  EXPECT_NE(complaint([] { parse_json("a", std::string(1 << 20, '[')); }), "");
}

TEST(JsonReader, ReadsALongListOfObjectsInLinearTime) {
  // 200,000 objects took a minute when each was compared with all before it.
  std::string text = "[{\"a\": 1}";
  for (int i = 1; i < 200'000; ++i) text += ", {\"a\": 1}";
  EXPECT_EQ(parse_json("a", text + "]").items().size(), 200'000u);
}

TEST(JsonReader, RefusesAnObjectWithTooManyKeys) {
  std::string text = "{\"0\": 1";
  for (int i = 1; i <= 20'000; ++i) text += ", \"" + std::to_string(i) + "\": 1";
  EXPECT_EQ(complaint([&] { parse_json("a", text + "}"); }),
            "a: an object has more than 20000 keys");
}

TEST(JsonReader, RefusesNumbersThatAreNotFinite) {
  EXPECT_NE(complaint([] { parse_json("a", R"({"x": 1e999})").at("x").number(); }), "");
  EXPECT_NE(complaint([] { parse_json("a", R"({"x": NaN})"); }), "");
}

TEST(JsonReader, RefusesQuantitiesWhoseProductsOverflow) {
  const auto list = parse_json("a", "[1e300, 1e-300]").items();
  EXPECT_EQ(complaint([&] { list[0].positive(); }), "a#/0: must be from 1e-30 to 1e+30, is 1e+300");
  EXPECT_EQ(complaint([&] { list[0].at_least(0); }), "a#/0: must be at most 1e+30, is 1e+300");
  EXPECT_EQ(complaint([&] { list[1].at_least(0); }),
            "a#/1: must be 0 or at least 1e-30, is 1e-300");
  EXPECT_EQ(list[0].number(), 1e300);
}

TEST(JsonReader, TwoLettersThatAreBothWrongSuggestNothing) {
  EXPECT_EQ(nearest_word("X9", {"T4"}), "");
  EXPECT_EQ(nearest_word("L5", {"T4", "L4"}), "L4");
}

class TextFile : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

 private:
  std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("text_file_" + std::to_string(getpid()));
};

TEST_F(TextFile, IsReadWithoutItsByteOrderMark) {
  write_text_file(path("marked"), "\xEF\xBB\xBFhost slots=8\n");
  EXPECT_EQ(read_text_file(path("marked")), "host slots=8\n");
}

TEST_F(TextFile, IsReplacedBehindItsLink) {
  write_text_file(path("file"), "old");
  std::filesystem::create_symlink("file", path("link"));
  write_text_file(path("link"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(path("link")));
  EXPECT_EQ(read_text_file(path("file")), "new");
}

// A planner run by root with -o /dev/stdout must not turn the device into a file.
TEST_F(TextFile, IsNotMadeOfWhatIsNoFile) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  const int reader = open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  write_text_file(path("pipe"), "plan");
  char text[8] = {};
  EXPECT_EQ(read(reader, text, sizeof text), 4);
  close(reader);
  EXPECT_TRUE(std::filesystem::is_fifo(path("pipe")));
}

TEST_F(TextFile, OfAPipeThatNobodyWritesToIsEmpty) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(read_text_file(path("pipe")), "");
}

TEST_F(TextFile, OfAPipeComesAsItsWriterSendsIt) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const int pipe = open(path("pipe").c_str(), O_WRONLY);
    ASSERT_EQ(write(pipe, "one ", 4), 4);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ASSERT_EQ(write(pipe, "two", 3), 3);
    close(pipe);
  });
  EXPECT_EQ(read_text_file(path("pipe")), "one two");
  writer.join();
}

TEST_F(TextFile, IsNotWrittenToAPipeThatNobodyReads) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(complaint([&] { write_text_file(path("pipe"), "plan"); }),
            path("pipe") + ": cannot be written: nobody reads from this pipe");
}

}  // namespace
}  // namespace plait
