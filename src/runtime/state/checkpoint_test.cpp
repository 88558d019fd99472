#include "runtime/state/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "runtime/state/checksum.h"

namespace plait::runtime {
namespace {

class CheckpointTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(folder_); }
  std::string save(std::int64_t step, float value, int keep = 0) const {
    CheckpointWriter writer(folder_, step);
    const std::vector<float> values{value, 2, 3, 4, 5, 6};
    writer.add("3.up.weight", StateKind::value, {2, 3}, std::vector<float>{value, 2, 3, 4, 5, 7});
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

// What is said of a checkpoint of step 1 after `damage` has been done to its directory.
class DamageTest : public CheckpointTest {
 protected:
  void refused(const std::string& what, const std::function<void(const std::string& path)>& damage,
               const std::string& names) {
    std::filesystem::remove_all(folder_);
    damage(save(1, 1));
    EXPECT_NE(said().find(names), std::string::npos) << what << ": " << said();
  }
  std::string said() const {
    try {
      Checkpoint saved(*latest_checkpoint(folder_));
      saved.check_files();
      for (const StateKind kind : {StateKind::value, StateKind::first_moment})
        saved.read("3.up.weight", kind, {2, 3});
      saved.read("scale", StateKind::value, {1});
    } catch (const InputError& error) {
      return error.what();
    }
    return "nothing";
  }
  static std::string content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void rewrite(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  // Replaced in the text; the checksum of the index is made anew, so only the lie is left.
  static void lie(const std::string& path, const std::string& from, const std::string& to) {
    std::string text = content(path + "/checkpoint.json");
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const std::size_t digits = text.find("\"checksum\": \"") + 13;
    text.replace(digits, 16, "0000000000000000");
    text.replace(digits, 16, checksum_text(checksum_of(text)));
    rewrite(path + "/checkpoint.json", text);
  }
};

TEST_F(DamageTest, EveryFlippedBitOfEveryFileIsNoticed) {
  const std::string path = save(1, 1);
  EXPECT_EQ(said(), "nothing");
  for (const char* name :
       {"checkpoint.json", "scale.npy", "3.up.weight.npy", "3.up.weight.first_moment.npy"}) {
    const std::string file = path + "/" + name, sound = content(file);
    for (std::size_t bit = 0; bit < 8 * sound.size(); ++bit) {
      std::string bytes = sound;
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
      rewrite(file, bytes);
      EXPECT_NE(said().find(name), std::string::npos) << name << " bit " << bit << ": " << said();
    }
    rewrite(file, sound);
  }
}

TEST_F(DamageTest, FilesThatAreCutZeroedSwappedOrNotFilesAreNamed) {
  const std::string npy = "/3.up.weight.npy", other = "/3.up.weight.first_moment.npy";
  const std::string index = "/checkpoint.json";
  namespace fs = std::filesystem;
  refused(
      "empty", [&](const auto& path) { rewrite(path + npy, ""); }, npy);
  refused(
      "text", [&](const auto& path) { rewrite(path + npy, "abc"); }, npy);
  refused(
      "cut by a byte",
      [&](const auto& path) { fs::resize_file(path + npy, fs::file_size(path + npy) - 1); }, npy);
  refused(
      "longer by a byte",
      [&](const auto& path) { fs::resize_file(path + npy, fs::file_size(path + npy) + 1); }, npy);
  refused(
      "zeroed",
      [&](const auto& path) { rewrite(path + npy, std::string(content(path + npy).size(), '\0')); },
      npy);
  refused(
      "zeroed values",
      [&](const auto& path) {
        rewrite(path + npy, content(path + npy).substr(0, 128) + std::string(24, '\0'));
      },
      npy);
  refused(
      "missing", [&](const auto& path) { fs::remove(path + npy); }, npy);
  refused(
      "extra", [&](const auto& path) { rewrite(path + "/4.npy", "x"); }, "/4.npy");
  refused(
      "a directory",
      [&](const auto& path) {
        fs::remove(path + npy);
        fs::create_directory(path + npy);
      },
      npy);
  refused(
      "a pipe",
      [&](const auto& path) {
        fs::remove(path + npy);
        mkfifo((path + npy).c_str(), 0666);
      },
      npy);
  refused(
      "links in a circle",
      [&](const auto& path) {
        fs::remove(path + npy);
        fs::create_symlink(fs::path(path + npy).filename(), path + npy);
      },
      npy);
  refused(
      "an endless device",
      [&](const auto& path) {
        fs::remove(path + npy);
        fs::create_symlink("/dev/zero", path + npy);
      },
      npy);
  refused(
      "index missing", [&](const auto& path) { fs::remove(path + index); }, index);
  refused(
      "index empty", [&](const auto& path) { rewrite(path + index, ""); }, index);
  refused(
      "index half",
      [&](const auto& path) { fs::resize_file(path + index, fs::file_size(path + index) / 2); },
      index);
  refused(
      "index zeroed",
      [&](const auto& path) {
        rewrite(path + index, std::string(content(path + index).size(), '\0'));
      },
      index);
  refused(
      "index a pipe",
      [&](const auto& path) {
        fs::remove(path + index);
        mkfifo((path + index).c_str(), 0666);
      },
      index);
  refused(
      "index of 65 MiB",
      [&](const auto& path) { fs::resize_file(path + index, std::uintmax_t{65} << 20); }, index);
  refused(
      "a file instead of a directory",
      [&](const auto& path) {
        fs::remove_all(path);
        rewrite(path, "x");
      },
      "step-00000001");
}

// Two files of one shape changed places: each is sound by itself.
TEST_F(DamageTest, SwappedFilesAreNoticed) {
  refused(
      "swapped",
      [](const std::string& path) {
        const std::string a = path + "/3.up.weight.npy", b = path + "/3.up.weight.first_moment.npy";
        const std::string bytes = content(a);
        rewrite(a, content(b));
        rewrite(b, bytes);
      },
      "3.up.weight.npy: is damaged");
}

TEST_F(DamageTest, LiesOfTheIndexAreNoticed) {
  refused(
      "another directory",
      [&](const auto& path) { std::filesystem::rename(path, folder_ + "/step-00000002"); },
      "is of step 1, but lies in step-00000002");
  refused(
      "another step", [](const auto& path) { lie(path, "\"step\": 1", "\"step\": 2"); },
      "is of step 2");
  refused(
      "huge shape",
      [](const auto& path) { lie(path, "[2, 3]", "[9000000000000000, 9000000000000000]"); },
      "is not the shape");
  refused(
      "no dimension", [](const auto& path) { lie(path, "[2, 3]", "[2, 0]"); }, "is not the shape");
  refused(
      "outside", [](const auto& path) { lie(path, "\"scale\"", "\"../scale\""); },
      "is not the name of a parameter");
  refused(
      "older",
      [](const auto& path) { lie(path, "\"plait_checkpoint\": 2", "\"plait_checkpoint\": 1"); },
      "plait_checkpoint");
  refused(
      "without a checksum",
      [](const auto& path) {
        rewrite(path + "/checkpoint.json", "{\"plait_checkpoint\": 1, \"step\": 1}");
      },
      "without checksums");
}

TEST_F(CheckpointTest, ADirectoryThatCannotBeReadIsNotAnEmptyOne) {
  std::filesystem::create_directories(folder_);
  const std::string loop = folder_ + "/loop";
  std::filesystem::create_symlink("loop", loop);
  EXPECT_THROW(latest_checkpoint(loop), InputError);
  EXPECT_EQ(latest_checkpoint(folder_ + "/none"), std::nullopt);
}

}  // namespace
}  // namespace plait::runtime
