#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "cost/engine.h"
#include "io/cluster/load_cluster.h"
#include "io/format/json_reader.h"
#include "io/plan/aceso_plan.h"
#include "io/profile/import_aceso.h"
#include "source_tree.h"

namespace plait {
namespace {

const std::string kFolder = source_dir() + "/../shared/data/aceso/";

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

// Lists of runs: [[value, how many], ..] of each stage.
std::vector<int> spread(const JsonValue& runs) {
  std::vector<int> values;
  for (const JsonValue& run : runs.items()) {
    const std::vector<JsonValue> pair = run.items();
    values.insert(values.end(), pair[1].integer(1, 100'000), pair[0].integer(0, 100'000));
  }
  return values;
}

// "large-gpt-1_3B" -> gpt, 1_3B; "scale-8" -> gpt of its own size
void expect_forward_times(const std::string& name, const std::string& family,
                          const std::vector<int>& layers) {
  const JsonValue root = read_json_file(kFolder + "vectors/" + name + ".json");
  const std::string database = name.starts_with("small") ? "miniset" : "eurosys";
  const std::string size = name.substr(name.rfind('-') + 1);
  const AcesoTable table = read_aceso_ops(
      find_profile_files(kFolder + "profiled-time-" + database + "/" + family + "_" + size));
  const std::vector<std::string> ops = aceso_op_list(family, layers);
  ASSERT_EQ(static_cast<int>(ops.size()), root.at("num_ops").integer(1, 100'000));
  int compared = 0;
  for (const JsonValue& vector : root.at("vectors").items()) {
    const int micro_batch = vector.at("micro_bs").integer(1, 100'000);
    const auto stages = vector.at("stages").items();
    std::size_t op = 0;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      const std::vector<int> tensor = spread(vector.at("tp").items()[s]);
      const std::vector<int> data = spread(vector.at("dp").items()[s]);
      const std::vector<int> algorithm = spread(vector.at("algo").items()[s]);
      const std::vector<int> recompute = spread(vector.at("recompute").items()[s]);
      double forward = 0;
      double backward = 0;
      double again = 0;
      for (std::size_t k = 0; k < tensor.size(); ++k, ++op) {
        const AcesoOp& row =
            table.points.at({micro_batch / data[k], tensor[k], algorithm[k]}).at(ops[op]);
        forward += row.forward.value;
        backward += row.backward.value;
        if (recompute[k] != 0) again += row.forward.value;
      }
      EXPECT_NEAR(forward, stages[s].at("fwd_us").number() * 1e-6, 1e-9);
      EXPECT_NEAR(backward, stages[s].at("bwd_us").number() * 1e-6, 1e-9);
      EXPECT_NEAR(again, stages[s].at("recomp_us").number() * 1e-6, 1e-9);
      ++compared;
    }
  }
  EXPECT_GT(compared, 0);
}

TEST(Aceso, OpTimesAddUpToWhatItsOwnModelSays) {
  if (!std::filesystem::exists(kFolder)) GTEST_SKIP() << "no Aceso database at " << kFolder;
  expect_forward_times("small-gpt-1_3B", "gpt", {24});
  expect_forward_times("large-gpt-1_3B", "gpt", {24});
  expect_forward_times("small-t5-770M", "t5", {24});
  expect_forward_times("large-t5-3B", "t5", {24});
  expect_forward_times("small-resnet-1B", "resnet", {3, 4, 6, 3});
  expect_forward_times("large-resnet-2B", "resnet", {3, 4, 6, 3});
}

}  // namespace
}  // namespace plait
