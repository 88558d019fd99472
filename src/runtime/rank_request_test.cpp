#include "runtime/rank_request.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace plait::runtime {
namespace {

// Every field differs from its default, so that one that is not written or not read shows.
TEST(RankRequest, ReadsBackWhatWasWritten) {
  RankRequest request{.plan = "a plan;\n.json", .device = "cpu", .json = true};
  TrainOptions& o = request.options;
  o.steps = 7;
  o.learning_rate = 0.1;
  o.beta1 = 0.2;
  o.beta2 = 0.3;
  o.epsilon = 1e-9;
  o.momentum = 0.4;
  o.weight_decay = 0.5;
  o.clip = 0;
  o.bucket = (std::int64_t{1} << 53) + 1;
  o.seed = 18446744073709551615ULL;
  o.exact = true;
  o.tokens = "t.bin";
  o.threads = 3;
  o.trace = "trace.json";
  o.checkpoint = "run";
  o.checkpoint_every = 5;
  o.keep_checkpoints = 0;
  const std::string text = rank_request_json(request);
  const JsonValue json = parse_json("request.json", text);
  ASSERT_TRUE(is_rank_request(json));
  const RankRequest read = rank_request_from(json);
  EXPECT_EQ(rank_request_json(read), text);
  EXPECT_EQ(read.plan, request.plan);
  EXPECT_EQ(read.options.seed, o.seed);
  EXPECT_EQ(read.options.bucket, o.bucket);
  EXPECT_EQ(read.options.learning_rate, 0.1);
  EXPECT_NE(rank_request_json(RankRequest()), text);
}

TEST(RankRequest, OtherFilesAreNotOne) {
  EXPECT_FALSE(is_rank_request(parse_json("plan.json", R"({"plait_plan": 1})")));
  EXPECT_FALSE(is_rank_request(parse_json("plan.json", "[]")));
  EXPECT_THROW(rank_request_from(parse_json("x", R"({"plait_rank_request": 1})")), InputError);
}

}  // namespace
}  // namespace plait::runtime
