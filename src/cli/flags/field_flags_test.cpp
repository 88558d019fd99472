#include "cli/flags/field_flags.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cli/flags/plan_arguments.h"

namespace plait {
namespace {

TEST(FieldFlags, FieldsBecomeFlags) {
  EXPECT_EQ(in_flags("`stages`: has 2 stages, but `pipeline` is 3"),
            "--stages: has 2 stages, but --pp is 3");
  EXPECT_EQ(in_flags("without `no_sequence_parallel`"), "without --no-sp");
}

TEST(FieldFlags, OtherQuotesStay) {
  EXPECT_EQ(in_flags("`plait instances` lists the names"), "`plait instances` lists the names");
  EXPECT_EQ(in_flags("a ` alone"), "a ` alone");
  EXPECT_EQ(in_flags(""), "");
  // The second quote of what is not a field may begin a field.
  EXPECT_EQ(in_flags("`other`tensor`"), "`other--tp");
}

TEST(FieldFlags, EveryDimensionHasAFlag) {
  for (int d = 0; d <= static_cast<int>(Dimension::global_batch); ++d)
    EXPECT_NE(flag_of(name_of(static_cast<Dimension>(d))), "") << d;
  EXPECT_EQ(flag_of("nothing"), "");
}

// A flag that a message names must be there to be given.
TEST(FieldFlags, FlagsOfPinsAreFlagsOfPlan) {
  PlanArguments arguments;
  std::vector<std::string> known;
  for (const FlagGroup& group : plan_flags(arguments))
    for (const Flag& flag : group.flags) known.push_back(flag.name);
  for (int d = 0; d <= static_cast<int>(Dimension::global_batch); ++d) {
    const std::string_view flag = flag_of(name_of(static_cast<Dimension>(d)));
    EXPECT_NE(std::ranges::find(known, flag), known.end()) << flag;
  }
}

}  // namespace
}  // namespace plait
