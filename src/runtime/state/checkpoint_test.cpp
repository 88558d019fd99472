#include "runtime/state/checkpoint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "io/format/json_reader.h"

namespace plait::runtime {
namespace {

class CheckpointTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(folder_); }
  std::string save(std::int64_t step, float value, int keep = 0) const {
    CheckpointWriter writer(folder_, step);
    const std::vector<float> values{value, 2, 3, 4, 5, 6};
    writer.add("3.up.weight", StateKind::value, {2, 3}, values);
    writer.add("3.up.weight", StateKind::first_moment, {2, 3}, values);
    writer.add("scale", StateKind::value, {1}, std::vector<float>{value});
    return writer.commit({step, 7, "tiny", "tokens.bin", 8 * step, "adam"}, keep);
  }
  const std::string folder_ =
      (std::filesystem::path(testing::TempDir()) /
       (std::string("checkpoint_") + testing::UnitTest::GetInstance()->current_test_info()->name()))
          .string();
};

TEST_F(CheckpointTest, ReadsBackWhatWasSaved) {
  save(12, 1);
  Checkpoint saved(*latest_checkpoint(folder_));
  EXPECT_EQ(saved.note().step, 12);
  EXPECT_EQ(saved.note().seed, 7U);
  EXPECT_EQ(saved.note().samples, 96);
  EXPECT_EQ(saved.note().tokens, "tokens.bin");
  const auto values = saved.read("3.up.weight", StateKind::first_moment, {2, 3});
  EXPECT_EQ(std::vector<float>(values.begin(), values.end()),
            (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_FALSE(saved.has("3.up.weight", StateKind::second_moment));
  EXPECT_FALSE(saved.has("other", StateKind::value));
}

TEST_F(CheckpointTest, ADirectoryIsOneRunsAtATime) {
  {
    const CheckpointClaim mine(folder_);
    save(1, 1);
    EXPECT_THROW(CheckpointClaim{folder_}, InputError);
  }
  EXPECT_NO_THROW(CheckpointClaim{folder_});
}

TEST_F(CheckpointTest, TheLatestIsTheOneWithMostSteps) {
  EXPECT_EQ(latest_checkpoint(folder_), std::nullopt);
  save(9, 1);
  save(100000000, 2);
  save(10, 3);
  EXPECT_EQ(Checkpoint(*latest_checkpoint(folder_)).note().step, 100000000);
}

TEST_F(CheckpointTest, OnlyTheLastOnesAreKept) {
  for (int step = 1; step <= 5; ++step) save(step, 1, 2);
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    EXPECT_GE(entry.path().filename().string(), "step-00000004");
    ++count;
  }
  EXPECT_EQ(count, 2);
}

TEST_F(CheckpointTest, AWriterThatDiesLeavesTheOneBefore) {
  save(1, 1);
  {
    CheckpointWriter writer(folder_, 2);
    writer.add("scale", StateKind::value, {1}, std::vector<float>{1});
  }
  // As after kill -9: half a checkpoint lies about, and is cleared away by the next writer.
  std::filesystem::create_directories(std::filesystem::path(folder_) / ".unfinished-step-00000003");
  EXPECT_EQ(Checkpoint(*latest_checkpoint(folder_)).note().step, 1);
  save(4, 1);
  EXPECT_FALSE(
      std::filesystem::exists(std::filesystem::path(folder_) / ".unfinished-step-00000003"));
}

TEST_F(CheckpointTest, TheSameStepAgainReplacesIt) {
  save(3, 1);
  save(3, 9);
  Checkpoint saved(*latest_checkpoint(folder_));
  EXPECT_EQ(saved.read("scale", StateKind::value, {1})[0], 9);
}

TEST_F(CheckpointTest, ValuesAreNumPyFiles) {
  const std::string path = save(1, 1);
  std::ifstream file(path + "/3.up.weight.npy", std::ios::binary);
  std::string head(128, '\0');
  file.read(head.data(), 128);
  EXPECT_EQ(head.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  EXPECT_EQ(head.substr(10, 57), "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, ");
  EXPECT_EQ(std::filesystem::file_size(path + "/3.up.weight.npy"), 128 + 6 * 4U);
}

TEST_F(CheckpointTest, AnotherModelIsRefusedByTheFirstNameThatDiffers) {
  Checkpoint saved(save(1, 1));
  EXPECT_NO_THROW(saved.check_names({"scale", "3.up.weight"}));
  EXPECT_THROW(saved.check_names({"scale"}), InputError);
  EXPECT_THROW(saved.check_names({"scale", "3.up.weight", "4.up.weight"}), InputError);
  EXPECT_THROW(saved.read("3.up.weight", StateKind::value, {3, 2}), InputError);
}

TEST_F(CheckpointTest, ADamagedFileIsRefused) {
  const std::string path = save(1, 1);
  write_text_file(path + "/scale.npy", "abc");
  Checkpoint saved(path);
  EXPECT_THROW(saved.read("scale", StateKind::value, {1}), InputError);
}

}  // namespace
}  // namespace plait::runtime
