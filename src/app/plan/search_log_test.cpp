#include "app/plan/search_log.h"

#include <gtest/gtest.h>

#include <cmath>

namespace plait {
namespace {

TEST(SearchLog, PassesStandBetweenThePlansThatWereFoundMeanwhile) {
  std::vector<SearchEvent> log{{.elapsed = Seconds(0.5), .best = Seconds(2), .what = "pp1"},
                               {.elapsed = Seconds(1.5), .best = Seconds(1), .what = "pp2, tp2"}};
  SearchResult result;
  result.passes = {{"labels", Seconds(1), 10, Seconds(2), Seconds(0)}};
  result.evaluations = 12;
  result.lower_bound = Seconds(0.9);
  add_passes(result, Seconds(2), log);
  EXPECT_EQ(search_log_csv(log),
            "seconds,evaluations,step_s,lower_bound_s,what\n"
            "0.500000,,2,,pp1\n"
            "1.000000,10,2,,pass labels\n"
            "1.500000,,1,,\"pp2, tp2\"\n"
            "2.000000,12,,0.9,end\n");
}

}  // namespace
}  // namespace plait
