#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "cli/flags/plan_arguments.h"

namespace plait {
namespace {

const Verb kVerb{"plan", "", "", nullptr};

// The request that words of the command line make.
PlanArguments parsed(std::vector<std::string> words, bool required = false) {
  PlanArguments arguments;
  Command command;
  command.groups = plan_flags(arguments);
  if (!required)
    for (FlagGroup& group : command.groups)
      for (Flag& flag : group.flags) flag.required = false;
  EXPECT_FALSE(parse_flags(kVerb, command, std::move(words)));
  return arguments;
}

std::string complaint(std::vector<std::string> words) {
  try {
    parsed(std::move(words), true);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(PlanFlags, AFlagIsNoValue) {
  EXPECT_TRUE(complaint({"--model", "gpt2", "--qlora", "--seq", "2k"})
                  .starts_with("--qlora: needs a value: "));
}

TEST(PlanFlags, WordsWithoutAFlagAreToldWhereTheyBelong) {
  EXPECT_EQ(complaint({"llama-3-70b", "64xH100"}),
            "llama-3-70b: is one word too many: what it is stands before it, as in --model "
            "llama-2-7b --cluster 8xH100; plait plan --help lists what there is");
  EXPECT_NE(complaint({"a.json", "b.json"}).find("saved plans are read by plait estimate"),
            std::string::npos);
  EXPECT_NE(complaint({"-m", "gpt2"}).find("flags are spelled out"), std::string::npos);
  EXPECT_NE(complaint({"--energy"}).find("energy is not predicted"), std::string::npos);
  EXPECT_NE(complaint({"--packing"}).find("every sequence is planned as full"), std::string::npos);
  EXPECT_NE(complaint({"--step-time"}).find("what you run"), std::string::npos);
  EXPECT_NE(complaint({"--power-limit"}).find("usual clocks"), std::string::npos);
}

TEST(PlanFlags, FormatsHaveTheNamesOfOtherPrograms) {
  const auto precision = [](const char* word) {
    return parsed({"--model", "gpt2", "--cluster", "B200:8", "--global-batch", "8", "--precision",
                   word})
        .request.source.precision;
  };
  EXPECT_EQ(precision("mxfp8"), Precision::fp8_row);
  EXPECT_EQ(precision("NVFP4"), Precision::fp4);
  EXPECT_EQ(precision("bf16-mixed"), Precision::bf16);
}

TEST(PlanFlags, WhatToTrainBecomesTheSource) {
  const PlanArguments a =
      parsed({"--model", "gpt2", "--cluster", "T4:4", "--global-batch", "8", "--seq", "512",
              "--precision", "fp16", "--granularity", "op", "--catalogue", "a.json", "--catalogue",
              "b.json", "--no-overlap"});
  const ProblemSource& source = a.request.source;
  EXPECT_EQ(source.model, "gpt2");
  EXPECT_EQ(source.cluster, "T4:4");
  EXPECT_EQ(source.sequence, 512);
  EXPECT_EQ(source.granularity, Granularity::op);
  EXPECT_EQ(source.catalogue, (std::vector<std::string>{"a.json", "b.json"}));
  EXPECT_EQ(source.job.global_batch, 8);
  EXPECT_EQ(source.precision, Precision::fp16);
  EXPECT_FALSE(source.job.overlap);
}

TEST(PlanFlags, PinsAreFreeUnlessGiven) {
  const Pins free = parsed({}).request.search.pins;
  EXPECT_FALSE(free.tensor || free.pipeline || free.data || free.zero || free.sequence_parallel);
  const Pins pins = parsed({"--tp",
                            "4",
                            "--pp",
                            "2",
                            "--dp",
                            "3",
                            "--cp",
                            "5",
                            "--ep",
                            "6",
                            "--micro-batch",
                            "7",
                            "--micro-batches",
                            "8",
                            "--zero",
                            "1",
                            "--schedule",
                            "zb-h1",
                            "--recompute",
                            "full",
                            "--no-sp",
                            "--stages",
                            "6, 8"})
                        .request.search.pins;
  EXPECT_EQ(pins.tensor, 4);
  EXPECT_EQ(pins.pipeline, 2);
  EXPECT_EQ(pins.data, 3);
  EXPECT_EQ(pins.context, 5);
  EXPECT_EQ(pins.expert, 6);
  EXPECT_EQ(pins.micro_batch, 7);
  EXPECT_EQ(pins.micro_batches, 8);
  EXPECT_EQ(pins.zero, ZeroStage::optimizer);
  EXPECT_EQ(pins.schedule, Schedule::zb_h1);
  EXPECT_EQ(pins.recompute, Recompute::full);
  EXPECT_EQ(pins.sequence_parallel, false);
  EXPECT_EQ(pins.stages, (std::vector<int>{6, 8}));
}

TEST(PlanFlags, MegatronsNamesMeanTheSame) {
  const PlanArguments a =
      parsed({"--tensor_model_parallel_size", "4", "--num-layers-per-virtual-pipeline-stage=2",
              "--use-distributed-optimizer", "--fp16"});
  EXPECT_EQ(a.request.search.pins.tensor, 4);
  EXPECT_EQ(a.request.layers_per_chunk, 2);
  EXPECT_EQ(a.request.search.pins.zero, ZeroStage::optimizer);
  EXPECT_EQ(a.request.source.precision, Precision::fp16);
}

TEST(PlanFlags, AmountsHaveUnits) {
  const Objective o = parsed({"--tokens", "1.5T", "--deadline", "36h", "--budget", "$20kUSD",
                              "--objective", "cost-time"})
                          .request.objective;
  EXPECT_EQ(o.tokens, 1.5e12);
  EXPECT_EQ(o.deadline, Seconds(36 * 3600));
  EXPECT_EQ(o.budget, Usd(20'000));
  EXPECT_EQ(o.metric, Metric::cost_time);
  EXPECT_EQ(parsed({"--time-limit", "500ms"}).request.search.time_limit, Seconds(0.5));
}

TEST(PlanFlags, EffortHasANameAndAGap) {
  const SearchOptions usual = parsed({}).request.search;
  EXPECT_FALSE(usual.effort);
  EXPECT_FALSE(usual.target_gap);
  const SearchOptions asked = parsed({"--effort", "Thorough", "--target-gap", "2%"}).request.search;
  EXPECT_EQ(asked.effort, Effort::thorough);
  EXPECT_EQ(asked.target_gap, 0.02);
}

TEST(PlanFlags, WhatIsPrintedIsNoPartOfTheSearch) {
  const PlanArguments a = parsed({"--json", "-o", "plan.json", "--format", "amp", "--cost-model",
                                  "plait", "--planner", "amp", "--top", "3"});
  EXPECT_TRUE(a.json);
  EXPECT_EQ(a.output, "plan.json");
  EXPECT_EQ(a.request.format, "amp");
  EXPECT_EQ(a.request.cost_model, "plait");
  EXPECT_EQ(a.request.planner, "amp");
  EXPECT_EQ(a.request.search.keep, 3);
}

TEST(PlanFlags, WrongWordsNameTheFlag) {
  EXPECT_TRUE(complaint({}).starts_with("--model: is missing"));
  EXPECT_EQ(complaint({"--tp", "four"}), "--tp: must be a whole number, is 'four'");
  EXPECT_EQ(complaint({"--tp", "0"}), "--tp: must be from 1 to 1000000, is '0'");
  EXPECT_EQ(complaint({"--tp", "1", "--tp", "2"}), "--tp: is given twice");
  EXPECT_EQ(complaint({"--json=yes"}), "--json: takes no value");
  EXPECT_TRUE(complaint({"--format", "ampp"}).ends_with("is 'ampp' (did you mean 'amp'?)"));
  EXPECT_EQ(complaint({"--tpp", "2"}),
            "--tpp: is not a flag of plait plan (did you mean '--top'?); plait plan --help lists "
            "what there is");
}

TEST(PlanFlags, BatchesMayBeSaidInTokens) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--global-batch", "4M", "tokens"},
        {"--global-batch", "4Mtokens"},
        {"--global-batch", "4M tokens"},
        {"--global-batch", "4", "million", "tokens"},
        {"--global-batch", "4M-tokens"},
        {"--global-batch", "4 million tokens"},
        {"--global-batch=4M", "tokens"},
        {"--global-batch=4", "M", "tokens"}}) {
    const PlanArguments a = parsed(words);
    ASSERT_TRUE(a.request.source.batch_tokens);
    EXPECT_EQ(a.request.source.batch_tokens->decimal, 4e6);
    EXPECT_EQ(a.request.source.batch_tokens->binary, 4 * 0x1p20);
  }
  EXPECT_TRUE(complaint({"--global-batch", "4X tokens"}).starts_with("--global-batch: must be"));
  EXPECT_EQ(complaint({"--global-batch", "4M"}),
            "--global-batch: are '4M' tokens or samples? 4Mtokens are tokens; samples are a whole "
            "number, such as 512");
  EXPECT_EQ(parsed({"--global-batch", "512", "samples"}).request.source.job.global_batch, 512);
}

TEST(PlanFlags, AmountsMayBeSaidInWords) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--tokens", "2T"},
                                                {"--tokens", "2", "T"},
                                                {"--tokens", "2", "trillion", "tokens"},
                                                {"--tokens", "2e12"}})
    EXPECT_EQ(parsed(words).request.objective.tokens, 2e12);
  EXPECT_EQ(parsed({"--seq", "128k", "tokens"}).request.source.sequence, 128 * 1024);
  EXPECT_EQ(parsed({"--seq", "4096tokens"}).request.source.sequence, 4096);
  EXPECT_EQ(parsed({"--budget", "1.5", "million"}).request.objective.budget, Usd(1.5e6));
  EXPECT_TRUE(complaint({"--tokens", "2", "apples"}).find("one word too many") !=
              std::string::npos);
  EXPECT_TRUE(complaint({"--days", "30"}).find("--deadline 30d says") != std::string::npos);
}

TEST(PlanFlags, NamesOfOtherProgramsAreUnderstood) {
  const PlanArguments a = parsed({"--optimizer", "adamw_bnb_8bit", "--dtype", "bfloat16",
                                  "--gradient-accumulation-steps", "4", "--micro-batch-size", "2",
                                  "--gradient-checkpointing", "--seq-length", "8k"});
  EXPECT_EQ(a.request.source.job.optimizer, Optimizer::adam8bit);
  EXPECT_EQ(a.request.source.job.precision, Precision::bf16);
  EXPECT_EQ(a.request.search.pins.micro_batches, 4);
  EXPECT_EQ(a.request.search.pins.micro_batch, 2);
  EXPECT_EQ(a.request.search.pins.recompute, Recompute::full);
  EXPECT_EQ(a.request.source.sequence, 8192);
  EXPECT_EQ(parsed({"--optimizer", "AdamW"}).request.source.job.optimizer, Optimizer::adam);
}

TEST(PlanFlags, WishesBecomeFields) {
  const PlanArguments a =
      parsed({"--memory-limit", "12000MB", "--reserve", "4GiB", "--price", "H100=2.5,T4=$0.4/h",
              "--goodput", "90%", "--lora", "16", "--freeze", "8", "--offload", "optimizer",
              "--deadline", "10", "days"});
  const ProblemSource& source = a.request.source;
  EXPECT_EQ(source.memory.limit, Bytes(12e9));
  EXPECT_EQ(source.memory.reserved, Bytes(4 * 0x1p30));
  ASSERT_EQ(source.prices.size(), 2u);
  EXPECT_NEAR(source.prices[1].price.value * kSecondsPerHour, 0.4, 1e-12);
  EXPECT_EQ(a.request.objective.goodput, 0.9);
  EXPECT_EQ(a.request.objective.deadline, Seconds(10 * 24 * 3600));
  EXPECT_TRUE(source.job.adapters);
  EXPECT_EQ(source.job.adapter_rank, 16);
  EXPECT_EQ(source.frozen_layers, 8);
  EXPECT_EQ(a.request.search.pins.offload, 1);
}

TEST(PlanFlags, QloraIsLoraBesideWeightsOfFourBits) {
  const Job job = parsed({"--qlora", "16"}).request.source.job;
  EXPECT_TRUE(job.adapters && job.four_bit_weights);
  EXPECT_EQ(job.adapter_rank, 16);
  EXPECT_EQ(complaint({"--qlora", "16", "--lora", "8"}),
            "--qlora: says the same as --lora, which is also given");
}

TEST(PlanFlags, WhatPlaitSaysInAnotherWayIsNamed) {
  EXPECT_TRUE(complaint({"--nnodes", "4"}).find("says that there are 4 nodes of 8") !=
              std::string::npos);
  EXPECT_TRUE(complaint({"--load-in-4bit"}).find("--qlora 16 trains") != std::string::npos);
  EXPECT_TRUE(complaint({"--epochs", "3"}).find("--tokens 3B says") != std::string::npos);
  EXPECT_EQ(complaint({"--optimizer", "muon"}),
            "--optimizer: 'muon' is not predicted: momentum has its states, without the products "
            "that make updates orthogonal");
  // Its training would be another one.
  EXPECT_TRUE(complaint({"--optimizer", "lion"}).find("momentum has its states") !=
              std::string::npos);
  EXPECT_TRUE(complaint({"--vram", "80"}).find("--memory-limit 70GiB says") != std::string::npos);
  EXPECT_TRUE(complaint({"--rank", "16"}).find("--lora 16 trains") != std::string::npos);
  EXPECT_TRUE(complaint({"--kv-cache"}).find("not inference") != std::string::npos);
}

TEST(PlanFlags, HelpIsAskedForAnywhere) {
  PlanArguments arguments;
  Command command;
  command.groups = plan_flags(arguments);
  EXPECT_TRUE(parse_flags(kVerb, command, {"--tp", "2", "-h"}));
}

TEST(PlanFlags, VerbsTakeSomeOfThem) {
  PlanArguments arguments;
  const auto names = [](const std::vector<FlagGroup>& groups) {
    std::vector<std::string> all;
    for (const FlagGroup& group : groups) {
      EXPECT_FALSE(group.flags.empty()) << group.title;
      for (const Flag& flag : group.flags) all.push_back(flag.name);
    }
    return all;
  };
  EXPECT_EQ(names(only_flags(plan_flags(arguments), {"--json", "--tp"})),
            (std::vector<std::string>{"--tp", "--json"}));
  const std::vector<std::string> all = names(plan_flags(arguments));
  const std::vector<std::string> rest = names(without_flags(plan_flags(arguments), {"--tp"}));
  EXPECT_EQ(rest.size(), all.size() - 1);
  EXPECT_EQ(std::ranges::find(rest, "--tp"), rest.end());
}

}  // namespace
}  // namespace plait
