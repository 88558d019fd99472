#include "search/space/effort.h"

#include <gtest/gtest.h>

namespace plait {
namespace {

TEST(Effort, NamesAreThoseOfTheEnumerators) {
  ASSERT_EQ(effort_names().size(), 4u);
  for (const Effort effort : {Effort::quick, Effort::normal, Effort::thorough, Effort::prove})
    EXPECT_EQ(effort_named(name_of(effort)), effort);
  EXPECT_EQ(effort_named("Prove"), Effort::prove);
  EXPECT_FALSE(effort_named("prov"));
  EXPECT_FALSE(effort_named(""));
}

}  // namespace
}  // namespace plait
