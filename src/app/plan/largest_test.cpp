#include "app/plan/largest.h"

#include <gtest/gtest.h>

#include "app/plan/sample_requests.h"

namespace plait {
namespace {

using samples::complaint;

LargestRequest request_of(LargestOf of) {
  LargestRequest request;
  static_cast<PlanRequest&>(request) = samples::small_plan_request();
  request.source.model = "gpt2-xl";
  request.of = of;
  if (of == LargestOf::batch)
    request.source.job.global_batch = 0;
  else
    request.source.job.global_batch = 4;
  return request;
}

// Whether the plain search agrees.
bool plan_fits(const LargestRequest& request, int size) {
  PlanRequest plan = request;
  if (request.of == LargestOf::sequence) {
    plan.source.sequence = size;
  } else {
    plan.source.job.global_batch = size;
    plan.search.pins.micro_batches = 1;
  }
  return answer(plan, {}).found();
}

TEST(Largest, SequenceFitsAndTheNextDoesNot) {
  const LargestRequest request = request_of(LargestOf::sequence);
  const LargestAnswer found = answer(request, {});
  ASSERT_TRUE(found.found());
  EXPECT_EQ(found.value % 1024, 0);
  EXPECT_EQ(found.next, found.value + 1024);
  EXPECT_EQ(found.plan.problem.model.sequence_length, found.value);
  EXPECT_TRUE(plan_fits(request, found.value));
  EXPECT_FALSE(plan_fits(request, found.next));
  EXPECT_NE(found.next_lacks.find("too much"), std::string::npos) << found.next_lacks;
}

// Where all devices are replicas, a step has few micro-batches, whatever the batch is.
TEST(Largest, SequenceOfReplicasAloneIsFound) {
  LargestRequest request = request_of(LargestOf::sequence);
  request.source.framework = "fsdp";
  request.source.cluster = "32xT4";
  request.source.job.global_batch = 64;
  const LargestAnswer found = answer(request, {});
  ASSERT_TRUE(found.found());
  EXPECT_GE(found.value, 1024);
  EXPECT_TRUE(plan_fits(request, found.value));
  EXPECT_FALSE(plan_fits(request, found.next));
}

TEST(Largest, BatchIsOneThatIsComputedAtOnce) {
  const LargestRequest request = request_of(LargestOf::batch);
  const LargestAnswer found = answer(request, {});
  ASSERT_TRUE(found.found());
  EXPECT_EQ(found.value % 4, 0);  // devices
  for (const RankedPlan& ranked : found.plan.result.plans) EXPECT_EQ(ranked.plan.micro_batches, 1);
  EXPECT_TRUE(plan_fits(request, found.value));
  EXPECT_FALSE(plan_fits(request, found.next));
}

TEST(Largest, BatchHasAsManyMicroBatchesAsAreAskedFor) {
  LargestRequest request = request_of(LargestOf::batch);
  request.search.pins.micro_batches = 3;
  const LargestAnswer found = answer(request, {});
  ASSERT_TRUE(found.found());
  EXPECT_EQ(found.value % 3, 0);
  for (const RankedPlan& ranked : found.plan.result.plans) EXPECT_EQ(ranked.plan.micro_batches, 3);
}

TEST(Largest, WithoutTimeSaysThatLargerOnesMayFit) {
  LargestRequest request = request_of(LargestOf::sequence);
  request.search.time_limit = Seconds(0);
  const LargestAnswer hurried = answer(request, {});
  EXPECT_TRUE(hurried.cut_short);
  EXPECT_FALSE(hurried.found() && hurried.next > 0 && hurried.next_lacks.empty());
  if (hurried.found())
    EXPECT_NE(as_text(hurried, {}).find("were not all tried"), std::string::npos);
  else
    EXPECT_NE(reason(hurried), "");
}

TEST(Largest, IsRefusedWhereTheSizeIsGiven) {
  LargestRequest request = request_of(LargestOf::sequence);
  request.source.sequence = 2048;
  EXPECT_EQ(complaint([&] { answer(request, {}); }),
            "`max_seq`: asks for the largest; `sequence` is given as well");
}

TEST(Largest, NothingFitsWhereTheWeightsDoNot) {
  LargestRequest request = request_of(LargestOf::sequence);
  request.source.model = "llama-2-70b";
  const LargestAnswer none = answer(request, {});
  EXPECT_EQ(none.value, 0);
  EXPECT_NE(reason(none), "");
}

}  // namespace
}  // namespace plait
