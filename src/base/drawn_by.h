#pragma once

#include <cstdlib>
#include <string>

namespace plait {

// For tests that draw their problems: PLAIT_TEST_SEED draws others than the usual ones, which are
// those of 0.
inline int drawn_by() {
  const char* wanted = std::getenv("PLAIT_TEST_SEED");
  return wanted == nullptr ? 0 : std::stoi(wanted) % 1000;
}

}  // namespace plait
