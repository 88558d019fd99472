#include "io/model/megatron_script.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "io/format/test_folder.h"
#include "io/format/text_file.h"
#include "io/model/megatron_flags.h"
#include "io/model/megatron_launch.h"

namespace plait {
namespace {

const std::string kSizes =
    "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --micro-batch-size 2 ";

std::string line(const std::string& text) { return read_megatron_script("run.sh", text).text; }

TEST(MegatronScript, IsTheLineOfTheTraining) {
  EXPECT_EQ(line("pip install x --upgrade\necho --hidden-size 1\nTP=2\nA=(--num-layers 4)\n"
                 "torchrun --nnodes 1 pretrain_gpt.py ${A[@]} --tensor-model-parallel-size $TP\n"),
            "'torchrun' '--nnodes' '1' 'pretrain_gpt.py' '--num-layers' '4' "
            "'--tensor-model-parallel-size' '2' ");
}

TEST(MegatronScript, WhatStartsNothingStaysAsItIs) {
  for (const char* text :
       {"MODEL_ARGS=\"--num-layers 4\"\n", "torchrun 'open --num-layers 4\n", ""})
    EXPECT_EQ(line(text), text);
  EXPECT_EQ(line("--num-layers 4\n--hidden-size=8\n"), "'--num-layers' '4' '--hidden-size=8' ");
}

TEST(MegatronScript, RefusesTrainingsThatDiffer) {
  try {
    line("for n in 1 2; do\n train.py --num-layers $n\ndone\n");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(
        error.what(),
        "run.sh: starts trainings that differ, in lines 2 and 2: leave the one that is meant");
  }
  EXPECT_NE(line("for n in 1 2; do\n train.py --num-layers 4\ndone\n"), "");
}

TEST(MegatronScript, ReadsFilesBesideIt) {
  const samples::TestFolder folder;
  write_text_file(folder.path("sizes.sh"), "SIZES='--num-layers 4'\n");
  const MegatronScript script = read_megatron_script(
      folder.path("run.sh"), "source sizes.sh\nsource no.sh\npretrain_gpt.py $SIZES\n");
  EXPECT_EQ(script.text, "'pretrain_gpt.py' '--num-layers' '4' ");
  EXPECT_EQ(script.warnings.size(), 1U);
}

// Stages of ZeRO by their names in --data-parallel-sharding-strategy.
TEST(MegatronScript, KnowsHowReplicasAreCut) {
  const auto zero = [](const std::string& flags) {
    return *read_megatron_launch("run.sh", kSizes + flags)->pins.zero;
  };
  EXPECT_EQ(zero(""), ZeroStage::off);
  EXPECT_EQ(zero("--use-distributed-optimizer"), ZeroStage::optimizer);
  EXPECT_EQ(zero("--use-distributed-optimizer --use-torch-fsdp2"), ZeroStage::parameters);
  EXPECT_EQ(zero("--use-megatron-fsdp"), ZeroStage::off);
  EXPECT_EQ(zero("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads"),
            ZeroStage::gradients);
  EXPECT_EQ(zero("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params"),
            ZeroStage::parameters);
}

// DeepSpeed's engine is another program, which cuts replicas by stages of its own.
TEST(MegatronScript, DeepSpeedsEngineIsKnownByItsFlags) {
  const auto launch = read_megatron_launch(
      "run.sh", kSizes + "--deepspeed --deepspeed_config c.json --zero-stage 2");
  EXPECT_EQ(launch->framework, "megatron-deepspeed");
  EXPECT_EQ(launch->pins.zero, ZeroStage::gradients);
  EXPECT_TRUE(launch->warnings.empty());
  EXPECT_EQ(read_megatron_launch("run.sh", kSizes)->framework, "");
  EXPECT_EQ(read_megatron_launch("run.sh", kSizes + "--zero-stage 2")->warnings,
            std::vector<std::string>{"--zero-stage without --deepspeed is not priced"});
}

TEST(MegatronScript, SaysWhatIsNotPriced) {
  const auto launch = read_megatron_launch(
      "run.sh", kSizes +
                    "--recompute-granularity selective --recompute-modules core_attn mlp moe "
                    "--rampup-batch-size 16 16 1000");
  EXPECT_EQ(launch->pins.recompute, Recompute::selective);
  EXPECT_EQ(launch->warnings,
            (std::vector<std::string>{"the recompute of mlp, moe is not priced",
                                      "the batch that grows (--rampup-batch-size) is not priced"}));
  const auto others =
      read_megatron_launch("run.sh", kSizes + "--recompute-activations --recompute-modules mlp");
  EXPECT_EQ(others->pins.recompute, Recompute::none);
}

TEST(MegatronScript, OneExpertIsNone) {
  const auto experts = [](const std::string& flags) {
    return read_megatron_flags("run.sh", kSizes + flags, std::nullopt).config.moe.experts;
  };
  EXPECT_EQ(experts("--num-experts 1"), 0);
  EXPECT_EQ(experts("--num-experts 1 --moe-router-topk 1"), 1);
}

}  // namespace
}  // namespace plait
