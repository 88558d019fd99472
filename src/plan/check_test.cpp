#include "plan/check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "plan/sample_plans.h"

namespace plait {

void PrintTo(const Violation& violation, std::ostream* out) {
  *out << violation.where << ": " << violation.what;
}

namespace {

using samples::sample_model;
using samples::sample_plan;
using samples::sample_problem;

struct Broken {
  const char* name;
  std::function<void(Problem&, Plan&)> change;
  std::vector<Violation> violations;
};

// Turns the sample plan into 2 stages x 2 chunks of 2 units each, in the order of its schedule.
void make_chunked(Plan& plan, Schedule schedule) {
  plan.schedule = schedule;
  for (int s = 0; s < 2; ++s) {
    const Span span = plan.stages[s].spans[0];
    plan.stages[s].spans = {span, span};
    for (int c = 0; c < 2; ++c) {
      const int first = 2 * chunk_position(schedule, 2, s, c);
      plan.stages[s].spans[c].units = {first, first + 2};
      plan.stages[s].spans[c].chunk = c;
    }
  }
}

std::vector<Broken> broken_units() {
  return {
      {"no stages",
       [](Problem&, Plan& p) { p.stages.clear(); },
       {{"stages", "must not be empty"}, {"stages", "units 0 to 7 are in no stage"}}},
      {"no spans",
       [](Problem&, Plan& p) { p.stages[1].spans.clear(); },
       {{"stages[1].spans", "must not be empty"}, {"stages", "units 4 to 7 are in no stage"}}},
      {"empty span",
       [](Problem&, Plan& p) {
         p.stages[0].spans[0].units = {4, 4};
       },
       {{"stages[0].spans[0].units", "must not be empty, is 4 to 4"}}},
      {"reversed span",
       [](Problem&, Plan& p) {
         p.stages[0].spans[0].units = {4, 0};
       },
       {{"stages[0].spans[0].units", "must not be empty, is 4 to 0"}}},
      {"negative unit",
       [](Problem&, Plan& p) {
         p.stages[0].spans[0].units = {-1, 4};
       },
       {{"stages[0].spans[0].units", "must be within the 8 units of the model, is -1 to 4"}}},
      {"unit past the end",
       [](Problem&, Plan& p) {
         p.stages[1].spans[0].units = {4, 9};
       },
       {{"stages[1].spans[0].units", "must be within the 8 units of the model, is 4 to 9"}}},
      {"one unit missing",
       [](Problem&, Plan& p) {
         p.stages[1].spans[0].units = {5, 8};
       },
       {{"stages", "unit 4 is in no stage"}}},
      {"unit twice",
       [](Problem&, Plan& p) {
         p.stages[1].spans[0].units = {3, 8};
       },
       {{"stages[1].spans[0].units", "unit 3 is already in stages[0].spans[0]"}}},
      {"stages swapped",
       [](Problem&, Plan& p) { std::swap(p.stages[0].spans, p.stages[1].spans); },
       {{"stages[0].spans[0].units",
         "must begin at unit 0 in the order of schedule 1f1b, begins at 4"}}},
      {"spans descend",
       [](Problem&, Plan& p) {
         p.stages[0].spans.push_back(p.stages[0].spans[0]);
         p.stages[0].spans[0].units = {2, 4};
         p.stages[0].spans[1].units = {0, 2};
       },
       {{"stages[0].spans[1].units", "must begin at or after unit 4, where the span before ends"},
        {"stages[0].spans[0].units",
         "must begin at unit 0 in the order of schedule 1f1b, begins at 2"}}},
  };
}

std::vector<Broken> broken_chunks() {
  return {
      {"two chunks in 1f1b",
       [](Problem&, Plan& p) {
         make_chunked(p, Schedule::interleaved);
         p.schedule = Schedule::one_f_one_b;
       },
       {{"stages[0].spans", "must be 1 chunk for schedule 1f1b, are 2"},
        {"stages[1].spans", "must be 1 chunk for schedule 1f1b, are 2"}}},
      {"one chunk in interleaved",
       [](Problem&, Plan& p) { p.schedule = Schedule::interleaved; },
       {{"stages[0].spans", "must be at least 2 chunks for schedule interleaved, are 1"},
        {"stages[1].spans", "must be at least 2 chunks for schedule interleaved, are 1"}}},
      {"stage 1 has three chunks, stage 0 two",
       [](Problem&, Plan& p) {
         make_chunked(p, Schedule::interleaved);
         Span extra = p.stages[1].spans[1];
         extra.units = {7, 8};
         extra.chunk = 2;
         p.stages[1].spans[1].units = {6, 7};
         p.stages[1].spans.push_back(extra);
       },
       {{"stages[1].spans", "must be 2 chunks as in stage 0 for schedule interleaved, are 3"}}},
      {"interleaved order in a V",
       [](Problem&, Plan& p) {
         make_chunked(p, Schedule::interleaved);
         p.schedule = Schedule::zb_v;
       },
       {{"stages[1].spans[1].units",
         "must begin at unit 4 in the order of schedule zb-v, begins at 6"}}},
      {"one chunk in a V",
       [](Problem&, Plan& p) { p.schedule = Schedule::zb_v; },
       {{"stages[0].spans", "must be 2 chunks for schedule zb-v, are 1"},
        {"stages[1].spans", "must be 2 chunks for schedule zb-v, are 1"}}},
      {"first chunk is not 0",
       [](Problem&, Plan& p) { p.stages[1].spans[0].chunk = 1; },
       {{"stages[1].spans[0].chunk", "must be 0 in the first span, is 1"}}},
      {"chunk left out",
       [](Problem&, Plan& p) {
         make_chunked(p, Schedule::zb_v);
         p.stages[1].spans[1].chunk = 2;
       },
       {{"stages[1].spans[1].chunk", "must be 0 or 1, is 2"}}},
      {"gap inside a chunk",
       [](Problem&, Plan& p) {
         make_chunked(p, Schedule::interleaved);
         p.stages[0].spans[1].chunk = 0;
       },
       {{"stages[0].spans[1].units",
         "must begin at unit 2, where the span before it in the same chunk ends"},
        {"stages[0].spans", "must be at least 2 chunks for schedule interleaved, are 1"}}},
      {"interleaved without a pipeline",
       [](Problem&, Plan& p) {
         p.schedule = Schedule::interleaved;
         p.stages.pop_back();
         p.stages[0].spans.push_back(p.stages[0].spans[0]);
         p.stages[0].spans[1].units = {4, 8};
         p.stages[0].spans[1].chunk = 1;
       },
       {{"stages", "must be at least 2 for schedule interleaved, are 1"}}},
      {"interleaved with 1 micro-batch on 2 stages",
       [](Problem&, Plan& p) {
         make_chunked(p, Schedule::interleaved);
         p.micro_batches = 1;
       },
       {{"micro_batches", "must be a multiple of the 2 stages for schedule interleaved, is 1"}}},
  };
}

std::vector<Broken> broken_degrees() {
  return {
      {"tensor 0",
       [](Problem&, Plan& p) { p.stages[0].spans[0].tensor = 0; },
       {{"stages[0].spans[0].tensor", "must be at least 1, is 0"}}},
      {"data -2",
       [](Problem&, Plan& p) { p.stages[0].spans[0].data = -2; },
       {{"stages[0].spans[0].data", "must be at least 1, is -2"}}},
      {"split -1",
       [](Problem&, Plan& p) { p.stages[0].spans[0].split = -1; },
       {{"stages[0].spans[0].split", "must be at least 0, is -1"}}},
      {"split 1 of a layer",
       [](Problem&, Plan& p) { p.stages[0].spans[0].split = 1; },
       {{"stages[0].spans[0].split",
         "must be below 1, the number of ways to cut embedding, is 1"}}},
      {"too few devices for the degrees",
       [](Problem&, Plan& p) { p.stages[1].spans[0].tensor = 4; },
       {{"stages[1].spans[0].tensor",
         "tensor 4 x data 2 x context 1 must be the 4 devices of the stage"}}},
      {"degrees whose product overflows",
       [](Problem&, Plan& p) {
         p.stages[1].spans[0].tensor = 1 << 30;
         p.stages[1].spans[0].data = 1 << 30;
       },
       {{"stages[1].spans[0].tensor",
         "tensor 1073741824 x data 1073741824 x context 1 must be the 4 devices of the stage"},
        {"stages[1].spans[0].tensor",
         "must divide the 1536 output features of decoder.qkv, is 1073741824"},
        {"stages[1].spans[0].data", "must divide the micro-batch of 4 samples, is 1073741824"}}},
      {"tensor that the heads do not allow",
       [](Problem& problem, Plan&) { problem.model.kinds[1].ops[1].count = 9; },
       {{"stages[0].spans[0].tensor", "must divide the 9 heads of decoder.attention, is 2"},
        {"stages[1].spans[0].tensor", "must divide the 9 heads of decoder.attention, is 2"}}},
      {"tensor that the input features do not allow",
       [](Problem& problem, Plan&) { problem.model.kinds[1].ops[4].inner = 2047; },
       {{"stages[0].spans[0].tensor", "must divide the 2047 input features of decoder.down, is 2"},
        {"stages[1].spans[0].tensor",
         "must divide the 2047 input features of decoder.down, is 2"}}},
      {"sequence parallel over an odd sequence",
       [](Problem& problem, Plan& p) {
         problem.model.sequence_length = 1023;
         p.sequence_parallel = true;
       },
       {{"stages[0].spans[0].tensor",
         "must divide the 1023 tokens of a sequence on each device "
         "for sequence_parallel, is 2"},
        {"stages[1].spans[0].tensor",
         "must divide the 1023 tokens of a sequence on each device "
         "for sequence_parallel, is 2"}}},
      {"context 0",
       [](Problem&, Plan& p) { p.context = 0; },
       {{"context", "must be at least 1, is 0"}}},
      {"context that does not divide the sequence",
       [](Problem& problem, Plan& p) {
         problem.model.sequence_length = 1023;
         p.context = 2;
         for (Stage& stage : p.stages) stage.spans[0].data = 1;
       },
       {{"context", "must divide the sequence length of 1023, is 2"}}},
      {"expert 0",
       [](Problem&, Plan& p) { p.expert = 0; },
       {{"expert", "must be at least 1, is 0"}}},
      {"experts in a dense model",
       [](Problem&, Plan& p) { p.expert = 2; },
       {{"expert", "must be 1 for a model without experts, is 2"}}},
      {"expert that does not divide the experts",
       [](Problem& problem, Plan& p) {
         problem.model = sample_model(6, 9);
         p.expert = 2;
       },
       {{"expert", "must divide the 9 experts of the model, is 2"}}},
      {"expert that does not divide data x context",
       [](Problem& problem, Plan& p) {
         problem.model = sample_model(6, 8);
         p.expert = 4;
       },
       {{"stages[0].spans[0].data", "data 2 x context 1 must be a multiple of expert 4"},
        {"stages[1].spans[0].data", "data 2 x context 1 must be a multiple of expert 4"}}},
  };
}

std::vector<Broken> broken_devices_and_batch() {
  return {
      {"no devices",
       [](Problem&, Plan& p) { p.stages[1].devices.clear(); },
       {{"stages[1].devices", "must not be empty"},
        {"stages[1].spans[0].tensor",
         "tensor 2 x data 2 x context 1 must be the 0 devices of the stage"}}},
      {"device past the end",
       [](Problem&, Plan& p) { p.stages[1].devices[0] = DeviceId{16}; },
       {{"stages[1].devices", "device 16 is not one of the 16 of the cluster"}}},
      {"negative device",
       [](Problem&, Plan& p) { p.stages[1].devices[3] = DeviceId{-1}; },
       {{"stages[1].devices", "device -1 is not one of the 16 of the cluster"}}},
      {"device in two stages",
       [](Problem&, Plan& p) { p.stages[1].devices[0] = DeviceId{3}; },
       {{"stages[1].devices", "device 3 is already used by stage 0"}}},
      {"device twice in a stage",
       [](Problem&, Plan& p) { p.stages[1].devices[1] = DeviceId{4}; },
       {{"stages[1].devices", "device 4 is already used by stage 1"}}},
      {"tensor group of two types",
       [](Problem&, Plan& p) { p.stages[1].devices[3] = DeviceId{8}; },
       {{"stages[1].spans[0].tensor",
         "a tensor group must have one device type: device 6 is Fast, device 8 is Slow"}}},
      {"no micro-batches",
       [](Problem&, Plan& p) { p.micro_batches = 0; },
       {{"micro_batches", "must be from 1 to the global batch of 16, is 0"}}},
      {"more micro-batches than samples",
       [](Problem&, Plan& p) { p.micro_batches = 17; },
       {{"micro_batches", "must be from 1 to the global batch of 16, is 17"}}},
      {"micro-batches that do not divide the batch",
       [](Problem&, Plan& p) { p.micro_batches = 3; },
       {{"micro_batches", "must divide the global batch of 16, is 3"}}},
      {"replicas without a whole sample",
       [](Problem&, Plan& p) { p.micro_batches = 16; },
       {{"stages[0].spans[0].data", "must divide the micro-batch of 1 samples, is 2"},
        {"stages[1].spans[0].data", "must divide the micro-batch of 1 samples, is 2"}}},
      {"too many shares",
       [](Problem&, Plan& p) {
         p.stages[0].shares = {2, 1, 1};
       },
       {{"stages[0].shares", "must be one for each of the 2 replicas, are 3"}}},
      {"a share of nothing",
       [](Problem&, Plan& p) {
         p.stages[0].shares = {4, 0};
       },
       {{"stages[0].shares[1]", "must be at least 1, is 0"}}},
      {"shares that do not add up",
       [](Problem&, Plan& p) {
         p.stages[0].shares = {3, 2};
       },
       {{"stages[0].shares", "must add up to the micro-batch of 4 samples, are 5"}}},
      {"shares over spans that differ in data",
       [](Problem&, Plan& p) {
         Span wide = p.stages[0].spans[0];
         p.stages[0].spans[0].units.end = 2;
         wide.units.begin = 2;
         wide.tensor = 1;
         wide.data = 4;
         p.stages[0].spans.push_back(wide);
         p.stages[0].shares = {3, 1};
       },
       {{"stages[0].shares", "only a stage whose spans all have the same data may have shares"}}},
      {"offload above 1",
       [](Problem&, Plan& p) { p.offload = 1.5; },
       {{"offload", "must be from 0 to 1, is 1.5"}}},
      {"offload is not a number",
       [](Problem&, Plan& p) { p.offload = std::numeric_limits<double>::quiet_NaN(); },
       {{"offload", "must be from 0 to 1, is nan"}}},
  };
}

TEST(CheckPlan, SaysExactlyWhatIsWrong) {
  for (const auto& table :
       {broken_units(), broken_chunks(), broken_degrees(), broken_devices_and_batch()}) {
    for (const Broken& broken : table) {
      Problem problem = sample_problem();
      Plan plan = sample_plan();
      broken.change(problem, plan);
      EXPECT_EQ(check_plan(problem, plan), broken.violations) << broken.name;
    }
  }
}

TEST(CheckPlan, AcceptsTheSamplePlan) {
  EXPECT_EQ(check_plan(sample_problem(), sample_plan()), std::vector<Violation>());
}

TEST(CheckPlan, AcceptsEveryShapeOfPlan) {
  samples::RandomPlans random(1);
  for (int i = 0; i < 5000; ++i) {
    const samples::Sample sample = random.next();
    ASSERT_EQ(check_plan(sample.problem, sample.plan), std::vector<Violation>()) << i;
  }
}

TEST(CheckPlan, ChunksOfTheLastStageOfAVTouch) {
  Plan plan = sample_plan();
  make_chunked(plan, Schedule::zb_v);
  // Units 0-1 go to stage 0, 2-5 to stage 1 as two chunks, 6-7 back to stage 0.
  EXPECT_EQ(plan.stages[1].spans[0].units.end, plan.stages[1].spans[1].units.begin);
  EXPECT_EQ(check_plan(sample_problem(), plan), std::vector<Violation>());
}

TEST(CheckPlan, ReplicasOfDifferentTypesMayShareAStage) {
  Problem problem = sample_problem();
  Plan plan = sample_plan();
  plan.stages[1].devices = {DeviceId{4}, DeviceId{5}, DeviceId{8}, DeviceId{9}};
  plan.stages[1].shares = {3, 1};
  EXPECT_EQ(check_plan(problem, plan), std::vector<Violation>());
}

}  // namespace
}  // namespace plait
