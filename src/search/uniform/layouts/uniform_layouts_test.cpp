#include "search/uniform/layouts/uniform_layouts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cost/engine.h"
#include "plan/sample_problems.h"
#include "search/space/space.h"

namespace plait {
namespace {

struct Lists {
  Problem problem = samples::problem_of(samples::gpt(6, 1024, 16, 1024),
                                        samples::cluster_of(samples::a100(), 2, 4), job());
  CostEngine engine{problem};
  Space space{problem, {}};
  std::vector<NodeKind> kinds = node_kinds(problem, space.target());

  static Job job() {
    Job job;
    job.global_batch = 16;
    return job;
  }
  // Stopped when it has asked so often.
  UniformLayouts::Listed listed(int questions) {
    UniformLayouts layouts(space, engine, kinds, 1);
    const std::vector<NodeMix> mixes = node_mixes(kinds);
    return layouts.list(mixes, {0}, Seconds(HUGE_VAL), [&] { return questions-- <= 0; });
  }
};

TEST(UniformLayouts, AListThatIsStoppedHasTheFirstOfThemWithTheirBounds) {
  Lists lists;
  const UniformLayouts::Listed all = lists.listed(1'000'000);
  ASSERT_TRUE(all.are_all);
  ASSERT_GT(all.layouts.size(), 20u);
  EXPECT_TRUE(lists.listed(0).layouts.empty());
  std::size_t most = 0;
  for (int questions = 0;; questions = 2 * questions + 1) {
    const UniformLayouts::Listed some = lists.listed(questions);
    if (some.are_all) break;
    ASSERT_LT(some.layouts.size(), all.layouts.size());
    for (std::size_t i = 0; i < some.layouts.size(); ++i) {
      EXPECT_EQ(some.layouts[i].bound, all.layouts[i].bound);
      EXPECT_GT(some.layouts[i].bound, Seconds(0));
    }
    most = std::max(most, some.layouts.size());
  }
  EXPECT_GT(most, 0u);
}

}  // namespace
}  // namespace plait
