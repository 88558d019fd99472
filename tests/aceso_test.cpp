#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "cost/engine.h"
#include "io/aceso_plan.h"
#include "io/load_cluster.h"

namespace plait {
namespace {

const std::string kFolder = PLAIT_SOURCE_DIR "/../shared/data/aceso/";

struct MeasuredRun {
  std::string config;
  std::string database;
  std::string cluster;
  double seconds;    // measured, both in the name of the file
  double mebibytes;  // most reserved on any device
  double time_bar;
  double memory_bar;
};

// The bars are on the runs of the small experiment; the others are watched, so that no constant is
// bent towards the three.
const std::vector<MeasuredRun>& runs() {
  static const std::vector<MeasuredRun> all{
      {"small_gpt_1_3B__actual_59011.61ms_10692MB.json", "profiled-time-miniset", "1xV100-16GB:4",
       59.01161, 10692, 0.03, 0.08},
      {"small_t5_770M__actual_33823.79ms_10470MB.json", "profiled-time-miniset", "1xV100-16GB:4",
       33.82379, 10470, 0.03, 0.08},
      {"small_resnet_1B__actual_18662.83ms_14060MB.json", "profiled-time-miniset", "1xV100-16GB:4",
       18.66283, 14060, 0.03, 0.08},
      {"large_gpt_1_3B__actual_100280ms_22082MB.json", "profiled-time-eurosys", "1xV100-32GB:8",
       100.28, 22082, 0.08, 0.12},
      {"large_gpt_350M__actual_190580ms_14820MB.json", "profiled-time-eurosys", "1xV100-32GB:8",
       190.58, 14820, 0.08, 0.12},
      {"large_resnet_500M__actual_71280ms_16516MB.json", "profiled-time-eurosys", "1xV100-32GB:8",
       71.28, 16516, 0.08, 0.12}};
  return all;
}

TEST(Aceso, PublishedRunsArePredictedFromTheDatabase) {
  if (!std::filesystem::exists(kFolder)) GTEST_SKIP() << "no Aceso database at " << kFolder;
  for (const MeasuredRun& run : runs()) {
    const Cluster cluster = load_cluster(run.cluster).cluster;
    const AcesoPlan read = read_aceso_plan(kFolder + "published_configs/" + run.config,
                                           kFolder + run.database, cluster);
    const CostEngine engine(read.problem);
    const Estimate estimate = engine.simulate(read.plan);
    const double time = estimate.step.value / run.seconds - 1;
    const double memory = estimate.peak_memory().value / 0x1p20 / run.mebibytes - 1;
    fmt::print("{}: {:.2f} s ({:+.1f} %), {:.0f} MB ({:+.1f} %)\n", run.config, estimate.step.value,
               100 * time, estimate.peak_memory().value / 0x1p20, 100 * memory);
    EXPECT_LT(std::abs(time), run.time_bar) << run.config;
    EXPECT_LT(std::abs(memory), run.memory_bar) << run.config;
    for (const StageCost& stage : estimate.stages) {
      EXPECT_EQ(stage.source, Source::measured);
      EXPECT_EQ(stage.memory_source, Source::measured);
    }
  }
}

}  // namespace
}  // namespace plait
