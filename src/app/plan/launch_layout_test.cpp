#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "app/plan/plan.h"
#include "app/plan/sample_requests.h"
#include "app/saved/configured.h"
#include "io/format/text_file.h"

namespace plait {
namespace {

// A script of Megatron-LM's flags, gone at the end of the test.
class LaunchLayout : public ::testing::Test {
 protected:
  ~LaunchLayout() override { std::filesystem::remove(path_); }

  PlanRequest script(const std::string& more) {
    write_text_file(path_,
                    "torchrun pretrain_gpt.py --num-layers 12 --hidden-size 768 "
                    "--num-attention-heads 12 --seq-length 1024 --max-position-embeddings 1024 "
                    "--vocab-size 50257 --micro-batch-size 2 --global-batch-size 16 --bf16 "
                    "--use-flash-attn --tensor-model-parallel-size 2 --sequence-parallel " +
                        more);
    PlanRequest request = samples::small_plan_request();
    request.source.model = path_;
    request.source.job.global_batch = 0;
    return request;
  }

  // What `estimate --from megatron` says.
  Seconds priced() {
    ConfiguredEstimateRequest request;
    request.configured.from = "megatron";
    request.configured.path = path_;
    request.configured.source.cluster = samples::small_plan_request().source.cluster;
    return answer(request, Session()).estimate.simulated.step;
  }

  std::string path_ = (std::filesystem::temp_directory_path() /
                       ("plait_launch_layout_" + std::to_string(getpid()) + ".sh"))
                          .string();
};

TEST_F(LaunchLayout, APlanOfAScriptIsPricedAsTheScriptRuns) {
  const std::string overlap = "--overlap-grad-reduce --tp-comm-overlap";
  const PlanAnswer bare = answer(script(""), {});
  ASSERT_TRUE(bare.found());
  const Seconds step = bare.result.plans.front().cost.step;
  EXPECT_NEAR(step / priced(), 1, 1e-9);
  const PlanAnswer told = answer(script(overlap), {});
  ASSERT_TRUE(told.found());
  const Seconds overlapped = told.result.plans.front().cost.step;
  EXPECT_NEAR(overlapped / priced(), 1, 1e-9);
  EXPECT_LT(overlapped, 0.99 * step);
  ASSERT_FALSE(bare.remarks.empty());
  EXPECT_TRUE(bare.remarks.front().starts_with(
      "With the flags overlap-grad-reduce and tp-comm-overlap, which the launch script lacks"))
      << bare.remarks.front();
  for (const std::string& remark : told.remarks)
    EXPECT_EQ(remark.find("lacks"), std::string::npos) << remark;
}

TEST_F(LaunchLayout, AnOpenLayoutHasTheFlags) {
  PlanRequest open = script("");
  open.source.free_layout = true;
  PlanRequest told = script("--overlap-grad-reduce --tp-comm-overlap");
  told.source.free_layout = true;
  EXPECT_EQ(answer(open, {}).problem.job.framework, answer(told, {}).problem.job.framework);
}

}  // namespace
}  // namespace plait
