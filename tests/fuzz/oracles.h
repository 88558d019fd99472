#pragma once

#include <cmath>
#include <fstream>
#include <string>

#include "base/error.h"
#include "cost/engine.h"
#include "fuzz/readers.h"
#include "io/format/test_folder.h"
#include "plan/check.h"

// What the readers under test promise; for the files beside this one.
namespace plait::fuzz {

inline void promise(bool kept, const char* what) {
  if (!kept) throw BrokenPromise(what);
}

// Reads what was written; a refusal of one's own text breaks the promise, too.
template <typename Read>
auto again(const Read& read) {
  try {
    return read();
  } catch (const InputError& error) {
    throw BrokenPromise(std::string("what was written is refused: ") + error.what());
  }
}

// A file of the bytes in a folder that lives as long as the process; without waiting for the disk.
inline std::string file_of(const std::string& name, const std::string& bytes) {
  static const samples::TestFolder folder;
  std::string path = folder.path(name);
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return path;
}

// A plan that is valid has a price.
inline void check_price(const Problem& problem, const Plan& plan) {
  constexpr int kMostUnits = 400;
  constexpr int kMostMicroBatches = 4096;
  if (problem.model.unit_count() > kMostUnits || plan.micro_batches > kMostMicroBatches) return;
  if (!check_plan(problem, plan).empty()) return;
  const Estimate cost = CostEngine(problem).simulate(plan);
  promise(std::isfinite(cost.step.value) && cost.step.value >= 0 &&
              std::isfinite(cost.peak_memory().value) && cost.peak_memory().value >= 0,
          "a valid plan has no finite price");
}

}  // namespace plait::fuzz
