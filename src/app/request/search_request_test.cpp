#include "app/request/search_request.h"

#include <gtest/gtest.h>

#include "app/plan/sample_requests.h"
#include "app/request/request_error.h"

namespace plait {
namespace {

using samples::complaint;
using samples::small_request;

TEST(LoadProblem, ReadsModelClusterAndJob) {
  SearchRequest request = small_request();
  request.source.sequence = 256;
  const LoadedProblem loaded = load_problem(request.source);
  EXPECT_EQ(loaded.problem.model.name, "gpt2");
  EXPECT_EQ(loaded.problem.model.sequence_length, 256);
  EXPECT_EQ(loaded.problem.cluster.device_count(), 4);
  EXPECT_EQ(loaded.problem.job.global_batch, 8);
  EXPECT_TRUE(loaded.warnings.empty());
}

TEST(LoadProblem, WarnsOfAPrecisionThatADeviceDoesNotHave) {
  SearchRequest request = small_request();
  request.source.cluster = "T4:4";
  request.source.precision = Precision::bf16;
  const LoadedProblem loaded = load_problem(request.source);
  ASSERT_FALSE(loaded.warnings.empty());
  EXPECT_TRUE(loaded.warnings.back().ends_with("`precision` fp16 runs on it"));
}

TEST(LoadSearch, DistributedDataParallelKeepsEverythingOnEveryReplica) {
  SearchRequest request = small_request();
  request.source.framework = "DDP";
  const LoadedSearch loaded = load_search(request);
  EXPECT_EQ(loaded.options.pins.zero, ZeroStage::off);
  EXPECT_EQ(loaded.warnings.back(),
            "replicas keep everything (`zero` 0); `framework` fsdp cuts states");
  request.search.pins.zero = ZeroStage::gradients;
  EXPECT_EQ(load_search(request).options.pins.zero, ZeroStage::gradients);
}

TEST(LoadSearch, AFormatThatTheProgramLacksIsNotAdvised) {
  SearchRequest request = small_request();
  request.source.cluster = "V100-32GB:8";
  request.source.framework = "plait";
  for (const std::string& warning : load_search(request).warnings)
    EXPECT_EQ(warning.find("fp16"), std::string::npos) << warning;
}

TEST(LoadSearch, KernelsOfAProgramThatAreNotPredictedAreSaid) {
  SearchRequest request = small_request();
  request.source.framework = "unsloth";
  EXPECT_TRUE(load_search(request).warnings.back().starts_with("Unsloth's own kernels"));
  request.source.framework = "axolotl";
  EXPECT_TRUE(load_search(request).warnings.empty());
}

TEST(LoadSearch, ProgramsThatDoMoreThanATrainingStepAreRefusedWithTheReason) {
  SearchRequest request = small_request();
  for (const char* name : {"verl", "openrlhf", "VLLM", "zero3", "zero-3"}) {
    request.source.framework = name;
    try {
      load_search(request);
      ADD_FAILURE() << name;
    } catch (const InputError& error) {
      EXPECT_EQ(std::string(error.what()).find("must be one of"), std::string::npos);
    }
  }
}

TEST(LoadSearch, AFormatThatDevicesLackNamesOneThatTheyHave) {
  SearchRequest request = small_request();
  request.source.cluster = "H100:4";
  request.source.precision = Precision::fp4;
  EXPECT_EQ(complaint([&] { load_search(request); }),
            "`precision`: H100 does not compute in fp4; `precision` fp8 runs on it (`runs_on` any "
            "predicts it all the same)");
  request.source.cluster = "B200:4";
  EXPECT_EQ(load_search(request).problem.job.precision, Precision::fp4);
  request.source.cluster = "V100:4";
  request.source.precision = Precision::bf16;
  EXPECT_EQ(complaint([&] { load_search(request); }),
            "`precision`: V100-16GB does not compute in bf16; `precision` fp16 runs on it "
            "(`runs_on` any predicts it all the same)");
}

TEST(LoadProblem, TakesWhatAllDevicesHaveWhereNothingIsSaid) {
  SearchRequest request = small_request();
  request.source.cluster = "T4:4+A100-40GB:4";
  const LoadedProblem loaded = load_problem(request.source);
  EXPECT_EQ(loaded.problem.job.precision, Precision::fp16);
  EXPECT_EQ(loaded.problem.job.attention, AttentionKernel::plain);
  EXPECT_EQ(loaded.warnings[0],
            "T4 lacks bf16 and flash attention: fp16 and plain attention with it");
  request.source.runs_on = "any";
  EXPECT_EQ(load_problem(request.source).problem.job.precision, Precision::bf16);
}

TEST(LoadSearch, RefusesAFormatThatNoDeviceHas) {
  SearchRequest request = small_request();
  request.source.cluster = "T4:4";
  request.source.precision = Precision::bf16;
  EXPECT_THROW(load_search(request), RequestError);
  request.source.runs_on = "any";
  EXPECT_NO_THROW(load_search(request));
}

TEST(LoadSearch, AProgramIsThatOfTheFrameworkOrTheOneAskedFor) {
  SearchRequest request = small_request();
  EXPECT_EQ(load_search(request).options.target.name, "megatron");
  request.source.framework = "fsdp-compile";
  EXPECT_EQ(load_search(request).options.target.name, "torchtitan");
  request.source.runs_on = "plait";
  EXPECT_EQ(load_search(request).options.target.name, "plait");
  request.source.runs_on = "megatrom";
  EXPECT_THROW(load_search(request), RequestError);
}

TEST(LoadSearch, APinnedNumberOfStagesMeansMegatronsEvenSplit) {
  SearchRequest request = small_request();
  request.search.pins.pipeline = 4;
  EXPECT_TRUE(load_search(request).options.pins.even_layers);
  request.even_stages = false;
  EXPECT_FALSE(load_search(request).options.pins.even_layers);
  request.even_stages.reset();
  request.source.runs_on = "any";
  EXPECT_FALSE(load_search(request).options.pins.even_layers);
}

TEST(LoadProblem, OpsAreMoreUnitsThanLayers) {
  SearchRequest request = small_request();
  const int layers = load_problem(request.source).problem.model.unit_count();
  request.source.granularity = Granularity::op;
  EXPECT_EQ(layers, 14);  // 12 layers, embedding, head
  EXPECT_GT(load_problem(request.source).problem.model.unit_count(), 2 * layers);
}

TEST(ResolvePins, StagesMayCountLayers) {
  SearchRequest request = small_request();
  request.search.pins.stages = {6, 6};
  const Model model = load_problem(request.source).problem.model;
  // The embedding goes with the first stage, the head with the last.
  const ResolvedPins layers = resolve_pins(request, model);
  EXPECT_EQ(layers.pins.stages, (std::vector<int>{7, 7}));
  EXPECT_NE(layers.note, "");
  request.search.pins.stages = {6, 8};
  const ResolvedPins units = resolve_pins(request, model);
  EXPECT_EQ(units.pins.stages, (std::vector<int>{6, 8}));
  EXPECT_EQ(units.note, "");
}

TEST(ResolvePins, MegatronsLayersPerChunkAreChunks) {
  SearchRequest request = small_request();
  request.layers_per_chunk = 3;
  const Model model = load_problem(request.source).problem.model;
  EXPECT_THROW(resolve_pins(request, model), RequestError);  // how many stages?
  request.search.pins.pipeline = 2;
  // 12 layers on 2 stages are 6 each: 2 chunks of 3.
  const ResolvedPins resolved = resolve_pins(request, model);
  EXPECT_EQ(resolved.pins.chunks, 2);
  EXPECT_EQ(resolved.pins.schedule, Schedule::interleaved);
  request.layers_per_chunk = 5;
  EXPECT_THROW(resolve_pins(request, model), RequestError);
}

TEST(LoadSearch, RefusesPinsThatNoPlanCanHave) {
  SearchRequest request = small_request();
  request.search.pins.tensor = 5;
  EXPECT_EQ(complaint([&] { load_search(request); }),
            "`tensor`: 5 needs 5 devices, the cluster has 4");
  request.search.pins.tensor = 4;
  EXPECT_EQ(load_search(request).options.pins.tensor, 4);
}

TEST(PlannerNamed, SuggestsTheNearestName) {
  EXPECT_EQ(planner_named("amp").name, "amp");
  EXPECT_EQ(
      complaint([] { planner_named("autp"); }),
      "`planner`: must be one of auto, amp, fasop, metis, aceso, exhaustive, is 'autp' (did you "
      "mean 'auto'?)");
}

}  // namespace
}  // namespace plait
