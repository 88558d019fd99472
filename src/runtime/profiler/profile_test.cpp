#include "runtime/profiler/profile.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/error.h"
#include "io/format/json_reader.h"
#include "io/profile/profile_json.h"
#include "runtime/lower/tiny_models.h"
#include "source_tree.h"

namespace plait::runtime {
namespace {

std::string scratch(const std::string& name) {
  return (std::filesystem::temp_directory_path() / (std::to_string(getpid()) + name)).string();
}

// Takes a second for every sample, and counts.
class FakeMeter : public Meter {
 public:
  FakeMeter() { machine_.device_type = "fake"; }
  const Machine& machine() const override { return machine_; }
  Measurement unit(const UnitPlace& place) override {
    ++calls;
    Measurement result;
    if (place.micro_batch > 4) {
      result.out_of_memory = true;
      return result;
    }
    result.forward = Timing{Seconds(place.micro_batch), 0.01, 5};
    result.backward = Timing{Seconds(2.0 * place.micro_batch), 0.02, 5};
    return result;
  }
  Measurement op(const OpKey&) override {
    ++calls;
    return {.forward = Timing{Seconds(1), 0, 3}};
  }
  int calls = 0;
  Machine machine_;
};

TEST(Timing, IsTheMedianAndItsConfidenceInterval) {
  // 100 values 0.01 .. 1: the interval reaches from the 41st to the 61st.
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i * 0.01);
  const Timing timing = timing_of(values);
  EXPECT_DOUBLE_EQ(timing.median.value, 0.505);
  EXPECT_NEAR(timing.spread, (0.61 - 0.41) / 2 / 0.505, 1e-9);
  EXPECT_EQ(timing.repeats, 100);
}

TEST(Timing, OneSlowRepeatInTenIsFlagged) {
  std::vector<double> values(20, 1.0);
  EXPECT_FALSE(has_outliers(values));
  values[3] = values[7] = 2;
  EXPECT_TRUE(has_outliers(values));
}

TEST(Timing, AClockThatSlowsDownIsFlagged) {
  std::vector<double> values(20, 1.0);
  std::fill(values.begin() + 10, values.end(), 1.04);
  EXPECT_NEAR(drift_of(values), 0.04, 1e-12);
  std::vector<std::string> flags;
  add_flags(values, flags);
  add_flags(values, flags);
  EXPECT_EQ(flags, std::vector<std::string>{"slowed down by 4 %"});
}

TEST(ProfilePoints, EachUnitAndOpIsThereOnceForEachDegree) {
  PointRequest request;
  request.models = {build_transformer(samples::tiny_gpt())};
  request.tensors = {1, 2};
  request.micro_batches = {1, 2};
  std::vector<std::string> notes;
  const auto points = points_of(request, notes);
  const auto units = std::ranges::count_if(points, [](const auto& p) { return !!p.unit; });
  EXPECT_EQ(units, 3 * 2 * 2);  // embedding, decoder, head
  EXPECT_TRUE(notes.empty());
  request.tensors = {3};  // 4 heads
  points_of(request, notes);
  ASSERT_FALSE(notes.empty());
  EXPECT_NE(notes[0].find("cannot be cut over 3 devices"), std::string::npos) << notes[0];
}

TEST(ProfilePoints, TheFarthestComeFirst) {
  PointRequest request;
  request.models = {build_transformer(samples::tiny_gpt())};
  request.micro_batches = {1, 2, 4, 8, 16, 32, 64};
  request.ops = false;
  std::vector<std::string> notes;
  auto points = points_of(request, notes);
  order_by_information(points);
  std::vector<int> decoder;
  for (const auto& point : points)
    if (point.unit->model->unit(point.unit->unit).name == "decoder")
      decoder.push_back(point.unit->micro_batch);
  // The largest, 2^6, then the one that is farthest from it for its weight: of sqrt(2^i) (6 - i)
  // the largest is 8.5 at i = 3.
  EXPECT_EQ(decoder[0], 64);
  EXPECT_EQ(decoder[1], 8);
}

TEST(ProfilePoints, OpsBetweenExpertsAreNoUnitsOfTheirOwn) {
  PointRequest request;
  request.models = {at_op_granularity(build_transformer(samples::tiny_mixture()))};
  std::vector<std::string> notes;
  std::set<std::string> units;
  bool products = false;  // of the experts, as ops
  for (const ProfilePoint& point : points_of(request, notes))
    if (point.unit)
      units.insert(point.unit->model->unit(point.unit->unit).ops[0].name);
    else
      products = products || (point.op.kind == OpKind::matmul && point.op.count == 4);
  EXPECT_TRUE(units.contains("router") && units.contains("attention.qkv"));
  for (const char* inside : {"router.top_k", "experts.up", "experts.activation", "experts.down"})
    EXPECT_FALSE(units.contains(inside)) << inside;
  EXPECT_TRUE(products);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_TRUE(notes[0].starts_with("ops between the experts"));
}

TEST(PointCache, KeepsWhatWasMeasuredWhenTheRunIsKilled) {
  const std::string path = scratch("points.jsonl");
  {
    PointCache cache(path);
    cache.append("aa", "first", {.forward = Timing{Seconds(1), 0.5, 3}, .flags = {"outliers"}});
    cache.append("bb", "second", {.out_of_memory = true});
  }
  std::ofstream(path, std::ios::app) << R"({"point": "cc", "what": "half a li)";
  PointCache again(path);
  EXPECT_EQ(again.size(), 2u);
  EXPECT_EQ(again.find("aa")->forward->median, Seconds(1));
  EXPECT_EQ(again.find("aa")->flags, std::vector<std::string>{"outliers"});
  EXPECT_TRUE(again.find("bb")->out_of_memory);
  again.append("cc", "third", {.saved = Bytes(7)});
  EXPECT_EQ(PointCache(path).size(), 3u);
  EXPECT_EQ(PointCache(path).find("cc")->saved, Bytes(7));
  std::filesystem::remove(path);
}

TEST(MeasurePoints, WhatIsKnownIsNotMeasuredAgain) {
  PointRequest request;
  request.models = {build_transformer(samples::tiny_gpt())};
  request.micro_batches = {1, 8};
  request.ops = false;
  std::vector<std::string> notes;
  const auto points = points_of(request, notes);
  FakeMeter meter;
  const std::string path = scratch("again.jsonl");
  {
    PointCache cache(path);
    const auto outcome = measure_points(points, meter, {.cache = cache});
    EXPECT_EQ(outcome.measured, 6);
    const Profile profile = profile_of(points, outcome, meter.machine());
    EXPECT_EQ(profile.compute.size(), 6u);
    const auto did_not_fit = std::ranges::count_if(
        profile.compute, [](const auto& point) { return point.second.out_of_memory; });
    EXPECT_EQ(did_not_fit, 3);  // micro-batch 8
    EXPECT_EQ(restore_profile(parse_json("p", dump_profile(profile))), profile);
  }
  PointCache cache(path);
  const auto outcome = measure_points(points, meter, {.cache = cache});
  EXPECT_EQ(outcome.from_cache, 6);
  EXPECT_EQ(meter.calls, 6);
  meter.machine_.versions["driver"] = "new";
  EXPECT_EQ(measure_points(points, meter, {.cache = cache}).from_cache, 0);
  std::filesystem::remove(path);
}

TEST(MeasurePoints, RoundsAreMeasuredOneAfterTheOtherAndResumed) {
  PointRequest request;
  request.models = {build_transformer(samples::tiny_gpt())};
  request.ops = false;
  std::vector<std::string> notes;
  const auto points = points_of(request, notes);  // embedding, decoder, head
  FakeMeter meter;
  const std::string path = scratch("rounds.jsonl");
  PointCache cache(path);
  measure_points(points, meter, {.cache = cache, .rounds = 1});
  EXPECT_EQ(meter.calls, 3);
  const auto outcome = measure_points(points, meter, {.cache = cache, .rounds = 3});
  EXPECT_EQ(meter.calls, 9);
  EXPECT_EQ(outcome.measured, 3);
  EXPECT_EQ(measure_points(points, meter, {.cache = cache, .rounds = 3}).from_cache, 3);
  EXPECT_EQ(meter.calls, 9);
  std::filesystem::remove(path);
}

TEST(MeasurePoints, RoundsThatDifferWidenTheSpread) {
  const auto round = [](double seconds) {
    return Measurement{.forward = Timing{Seconds(seconds), 0.01, 10}};
  };
  const Measurement all = combined({round(1.0), round(1.2), round(1.1)});
  EXPECT_EQ(all.forward->median, Seconds(1.1));
  EXPECT_NEAR(all.forward->spread, 0.1 / 1.1, 1e-12);
  EXPECT_EQ(all.forward->repeats, 30);
  EXPECT_TRUE(combined({round(1.0), {.out_of_memory = true}}).out_of_memory);
}

TEST(ProfileFiles, MergingTakesTheLaterAndDiffSaysByHowMuch) {
  Profile a, b;
  const OpKey key{.device_type = "H200", .rows = 8, .inner = 8, .columns = 8};
  a.ops[key] = {.forward = Seconds(1e-3)};
  b.ops[key] = {.forward = Seconds(1.1e-3)};
  OpKey other = key;
  other.rows = 16;
  b.ops[other] = {.forward = Seconds(2e-3)};
  const ProfileComparison comparison = compare_profiles(a, b);
  ASSERT_EQ(comparison.both.size(), 1u);
  EXPECT_NEAR(comparison.largest(), 0.1, 1e-12);
  EXPECT_EQ(comparison.only_b, 1);
  EXPECT_EQ(merged(a, b).ops.size(), 2u);
  EXPECT_EQ(merged(a, b).ops.at(key).forward, Seconds(1.1e-3));
}

TEST(OpLists, ASizeThatIsAListStandsForEachOfItsValues) {
  const std::string path = scratch("ops.json");
  std::ofstream(path) << R"({"plait_ops": 1, "ops": [{"op": "matmul", "dtype": "bf16",
    "rows": [8, 16, 32], "inner": 64, "columns": [8, 16]}]})";
  EXPECT_EQ(points_of_list(path).size(), 6u);
  std::ofstream(path) << R"({"plait_ops": 1, "ops": [{"op": "matmul", "dtype": "bf16",
    "rows": 8}]})";
  EXPECT_THROW(points_of_list(path), InputError);
  std::filesystem::remove(path);
}

TEST(OpLists, TheBuildingBlocksAreOne) {
  const auto points = points_of_list(source_dir() + "/data/profiles/building_blocks.json");
  EXPECT_GT(points.size(), 300u);
}

TEST(AlphaBeta, FitsALineByRelativeError) {
  // 10 us and 10 GB/s exactly.
  std::vector<CollectivePoint> curve;
  for (const double size : {1e3, 1e5, 1e7})
    curve.push_back({.size = Bytes(size), .time = Seconds(10e-6 + size / 10e9)});
  const Link fit = alpha_beta_fit(curve);
  EXPECT_NEAR(fit.latency.value, 10e-6, 1e-12);
  EXPECT_NEAR(fit.bandwidth.value, 10e9, 1e3);
}

}  // namespace
}  // namespace plait::runtime
