// A libFuzzer target for the reader that PLAIT_FUZZ_READER names when it runs:
//   cmake --preset fuzz && cmake --build --preset fuzz
//   PLAIT_FUZZ_READER=plan build/fuzz/plait_fuzz tests/fuzz/corpus/plan
// `./dev fuzz` runs it for all of them.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "fuzz/mutate.h"

namespace {

const plait::fuzz::Reader& reader() {
  static const plait::fuzz::Reader* const kReader = [] {
    const char* name = std::getenv("PLAIT_FUZZ_READER");
    const auto* found = plait::fuzz::reader_named(name != nullptr ? name : "");
    if (found == nullptr) {
      std::fprintf(stderr, "PLAIT_FUZZ_READER is to name a reader of tests/fuzz/readers.cpp\n");
      std::exit(2);
    }
    return found;
  }();
  return *kReader;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  try {
    plait::fuzz::accepts(reader(), std::string(data, data + size));
  } catch (const plait::fuzz::BrokenPromise& broken) {
    std::fprintf(stderr, "%s: %s\n", std::string(reader().name).c_str(), broken.what());
    std::abort();
  }
  return 0;
}

extern "C" std::size_t LLVMFuzzerMutate(unsigned char* data, std::size_t size, std::size_t most);

// Half of the time libFuzzer's own mutations of bytes, which know its coverage.
extern "C" std::size_t LLVMFuzzerCustomMutator(unsigned char* data, std::size_t size,
                                               std::size_t most, unsigned int seed) {
  std::mt19937 random(seed);
  if (random() % 2 == 0) return LLVMFuzzerMutate(data, size, most);
  const std::string made =
      plait::fuzz::mutated(std::string(data, data + size), reader().shape, most,
                           [&](std::size_t bound) { return random() % bound; });
  std::copy(made.begin(), made.end(), data);
  return made.size();
}
