#include "report/search_passes.h"

#include <gtest/gtest.h>

#include <cmath>

namespace plait {
namespace {

TEST(SearchPasses, ShowStepAndBoundWhereAPassChangedThem) {
  const Seconds none(HUGE_VAL);
  const std::vector<PassReport> passes{
      {"settings", Seconds(0.0012), 0, none, Seconds(1.05)},
      {"uniform pools", Seconds(0.0008), 12, Seconds(1.25), Seconds(1.05)},
      {"polish", Seconds(0.5), 1234, Seconds(1.25), Seconds(1.05)}};
  EXPECT_EQ(search_passes_table(passes, {}),
            "pass                time  plans    step   bound\n"
            "settings         1.20 ms      0          1.05 s\n"
            "uniform pools   800.0 us     12  1.25 s\n"
            "polish         500.00 ms  1,234\n");
}

}  // namespace
}  // namespace plait
