// Files come from other people's disks: whatever their bytes are, a reader takes them or refuses
// them with a message. What it takes keeps the promises of tests/fuzz/readers.h. A crash ends the
// program.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <random>

#include "fuzz/mutate.h"
#include "source_tree.h"

namespace plait::fuzz {
namespace {

namespace fs = std::filesystem;

std::vector<std::pair<std::string, std::string>> corpus_of(std::string_view reader) {
  std::vector<std::pair<std::string, std::string>> files;
  const fs::path folder = fs::path(source_dir()) / "tests/fuzz/corpus" / reader;
  std::error_code fault;
  for (const auto& entry : fs::directory_iterator(folder, fault)) {
    std::ifstream in(entry.path(), std::ios::binary);
    files.emplace_back(entry.path().filename().string(),
                       std::string(std::istreambuf_iterator<char>(in), {}));
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

// GoogleTest names a failing case by it.
void PrintTo(const Reader& reader, std::ostream* out) { *out << reader.name; }

namespace {

class Readers : public testing::TestWithParam<Reader> {};

// Names of regressions say what was wrong with them; those that begin with "good" are accepted.
TEST_P(Readers, TakeOrRefuseTheirCorpus) {
  const auto files = corpus_of(GetParam().name);
  int good = 0;
  for (const auto& [name, bytes] : files) {
    SCOPED_TRACE(name);
    try {
      const bool accepted = accepts(GetParam(), bytes);
      EXPECT_TRUE(accepted || !name.starts_with("good"));
      EXPECT_FALSE(accepted && name.starts_with("bad"));
      good += accepted ? 1 : 0;
    } catch (const BrokenPromise& broken) {
      ADD_FAILURE() << name << ": " << broken.what();
    }
  }
  EXPECT_GE(good, 1) << "the corpus has nothing that is accepted";
}

// PLAIT_FUZZ_SEED draws other changes; `./dev fuzz` draws without end.
TEST_P(Readers, TakeOrRefuseChangesOfTheirCorpus) {
  constexpr int kChanges = 150;
  constexpr std::size_t kMost = 1 << 16;
  const char* wanted = std::getenv("PLAIT_FUZZ_SEED");
  const unsigned seed = wanted != nullptr ? static_cast<unsigned>(std::stoul(wanted)) : 20261116U;
  std::mt19937 random(seed);
  for (const auto& [name, bytes] : corpus_of(GetParam().name)) {
    if (bytes.size() > kMost) continue;
    for (int i = 0; i < kChanges; ++i) {
      const std::string changed = mutated(bytes, GetParam().shape, kMost,
                                          [&](std::size_t most) { return random() % most; });
      try {
        accepts(GetParam(), changed);
      } catch (const BrokenPromise& broken) {
        FAIL() << "PLAIT_FUZZ_SEED=" << seed << ": " << name << ", change " << i << ": "
               << broken.what() << "\n"
               << changed;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Readers, testing::ValuesIn(readers().begin(), readers().end()),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace plait::fuzz
