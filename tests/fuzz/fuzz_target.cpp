// A libFuzzer target for one reader, named by PLAIT_FUZZ_READER when it is compiled:
//   cmake --preset fuzz && cmake --build --preset fuzz && build/fuzz/fuzz_plan
//   tests/fuzz/corpus/plan
// `./dev fuzz` runs all of them.

#include <cstdio>
#include <cstdlib>
#include <random>

#include "fuzz/mutate.h"

namespace {

const plait::fuzz::Reader& reader() {
  static const plait::fuzz::Reader* const kReader = plait::fuzz::reader_named(PLAIT_FUZZ_READER);
  if (kReader == nullptr) std::abort();
  return *kReader;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  try {
    plait::fuzz::accepts(reader(), std::string(data, data + size));
  } catch (const plait::fuzz::BrokenPromise& broken) {
    std::fprintf(stderr, "%s: %s\n", PLAIT_FUZZ_READER, broken.what());
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
