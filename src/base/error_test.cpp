#include "base/error.h"

#include <gtest/gtest.h>

namespace plait {
namespace {

TEST(Check, NamesTheConditionAndTheFileOfTheTreeAlone) {
  const int two = 2;
  // "(src/": no path of the machine that built the program comes before it.
  EXPECT_DEATH(PLAIT_CHECK(two == 3),
               "internal error: two == 3 does not hold \\(src/base/error_test.cpp:[0-9]+\\)");
}

}  // namespace
}  // namespace plait
