#include "io/plan/problem_json.h"

#include <gtest/gtest.h>

#include "base/sample_complaint.h"
#include "io/profile/profile_json.h"
#include "model/resnet.h"
#include "plan/sample_frameworks.h"
#include "plan/sample_plans.h"
#include "plan/sample_problems.h"

namespace plait {
namespace {

using samples::sample_cluster;
using samples::sample_model;

using samples::complaint;

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

Profile sample_profile() {
  Profile profile;
  profile.compute[{.unit = "decoder", .device_type = "Fast", .tensor = 2, .micro_batch = 4}] = {
      .forward = Seconds(0.1),
      .backward = Seconds(1.0 / 3),
      .saved_activations = Bytes(1e9),
      .workspace = Bytes(0)};
  profile.compute[{.unit = "decoder", .device_type = "Fast", .sequence = 512}] = {
      .forward = Seconds(1e-7), .backward = Seconds(2e-7), .communication_inside = true};
  profile.collectives[{.collective = "all_reduce", .device_type = "Fast", .nodes = 2}] = {
      {.size = Bytes(1024), .time = Seconds(1e-5)}, {.size = Bytes(0x1p30), .time = Seconds(0.02)}};
  return profile;
}

TEST(ProblemJson, ModelsReadBackAsTheyWere) {
  Model model = sample_model(48, 8);
  model.dropout = true;
  Op& op = model.kinds[1].ops[0];
  op.forward = Flops(1.0 / 3);
  op.kv_count = 2;
  op.matrices = 3;
  op.gated = true;
  op.moved = 0.1;
  op.saved = 3;
  op.saved_mask = Bytes(7);
  op.saved_is_sharded = true;
  op.forward_reduce = 5e29;
  op.backward_reduce = 0x1p60;
  op.boundary = 9;
  model.ties.push_back({.first = 1, .second = 2, .parameters = 3, .first_op = 2, .second_op = 1});
  for (const Model& each : {model, at_op_granularity(model), sample_model(1)})
    EXPECT_EQ(restore_model(parse_json("m", dump_model(each))), each);
}

TEST(ProblemJson, ArchitecturesReadBackAsTheyWere) {
  TransformerConfig config = samples::gpt(3, 64, 4, 32);
  config.positions = Positions::alibi;
  config.not_modelled = {"a \"clamped\" gate"};
  const Model model = build_transformer(config);
  for (const Model& each : {model, at_op_granularity(model), build_wide_resnet({})})
    EXPECT_EQ(restore_model(parse_json("m", dump_model(each))), each);
}

TEST(ProblemJson, CutsThatAnOpSaysItselfReadBack) {
  Model model = sample_model(1);
  model.kinds[1].ops[0].cuts = {
      {Split::column, TensorLayout::whole, TensorLayout::by_feature, TensorLayout::whole},
      {Split::row, TensorLayout::by_feature, TensorLayout::partial_sums, TensorLayout::by_feature}};
  const std::string good = dump_model(model);
  EXPECT_EQ(restore_model(parse_json("m", good)), model);
  EXPECT_EQ(complaint([&] {
              restore_model(parse_json(
                  "m", replaced(good, "\"input\": \"whole\"", "\"input\": \"partial-sums\"")));
            }),
            "m#/kinds/1/ops/0/cuts/0/input: no op takes partial sums; must be whole, by-feature or "
            "by-position");
}

TEST(ProblemJson, FilesFromBeforeArchitecturesWereSavedAreRead) {
  const Model model = build_transformer(samples::gpt(3, 64, 4, 32));
  const std::string text = dump_model(model);
  const std::size_t begin = text.find("\"architecture\"");
  const std::size_t end = text.find("\"units\"");
  const Model old = restore_model(parse_json("m", text.substr(0, begin) + text.substr(end)));
  EXPECT_TRUE(std::holds_alternative<NotRecorded>(old.architecture));
  EXPECT_EQ(old.kinds, model.kinds);
  // Written again, it is still not known.
  EXPECT_EQ(restore_model(parse_json("m", dump_model(old))), old);
}

TEST(ProblemJson, ArchitecturesOfOtherUnitsAreRefused) {
  const std::string text = dump_model(build_transformer(samples::gpt(3, 64, 4, 32)));
  EXPECT_EQ(complaint([&] {
              restore_model(parse_json("m", replaced(text, "\"layers\": 3", "\"layers\": 4")));
            }),
            "m#/architecture: the model has 5 units, where its architecture has 6");
}

TEST(ProblemJson, RepeatedLayersAreWrittenOnce) {
  EXPECT_NE(dump_model(sample_model(48)).find(R"("units": [0, {"repeat": 48, "kinds": [1]}, 2])"),
            std::string::npos);
  // A decoder is 5 ops, kinds 1 to 5; the embedding is kind 0, the head kind 6.
  EXPECT_NE(dump_model(at_op_granularity(sample_model(48)))
                .find(R"("units": [0, {"repeat": 48, "kinds": [1, 2, 3, 4, 5]}, 6])"),
            std::string::npos);
}

TEST(ProblemJson, AnyOrderOfLayersReadsBack) {
  samples::RandomPlans random(4);
  for (int i = 0; i < 500; ++i) {
    Model model = sample_model(1 + random.below(40));
    for (int& unit : model.units) unit = random.below(2 + i % 2);
    EXPECT_EQ(restore_model(parse_json("m", dump_model(model))).units, model.units);
  }
}

TEST(ProblemJson, ClustersReadBackAsTheyWere) {
  Cluster cluster = sample_cluster(5, 2);
  cluster.device_types[1].peak.fill(FlopsPerSecond(1e14 / 3));
  cluster.device_types[1].efficiency.matmul = 0.61;
  cluster.nodes[3].name = "caf\xc3\xa9 \"3\"";
  EXPECT_EQ(restore_cluster(parse_json("c", dump_cluster(cluster))), cluster);
}

TEST(ProblemJson, ManyNodesThatAreAlikeAreOneEntry) {
  // 300,000 nodes of 10 values each would be more than a reader takes.
  Cluster cluster = sample_cluster(1, 1);
  Node node = cluster.nodes[0];
  Device device = cluster.devices[0];
  cluster.nodes.clear();
  cluster.devices.clear();
  const auto add = [&](const std::string& name) {
    node.name = name;
    cluster.nodes.push_back(node);
    device.node = static_cast<int>(cluster.nodes.size()) - 1;
    cluster.devices.insert(cluster.devices.end(), 3, device);
  };
  for (int i = 0; i < 300'000; ++i) add("rack7-" + std::to_string(i + 98));
  add("rack7-300099");                                                 // a gap in the numbers
  for (int i = 0; i < 300; ++i) add("h0" + std::to_string(1000 + i));  // zeros before a number
  const std::string written = dump_cluster(cluster);
  EXPECT_NE(written.find(R"("count": 300000)"), std::string::npos);
  EXPECT_NE(written.find(R"({"type": 0, "node": 0, "nodes": 300301, "count": 3})"),
            std::string::npos)
      << written.substr(written.find("\"devices\""));
  EXPECT_EQ(restore_cluster(parse_json("c", written)), cluster);
}

TEST(ProblemJson, ProfilesAndJobsReadBackAsTheyWere) {
  EXPECT_EQ(restore_profile(parse_json("p", dump_profile(sample_profile()))), sample_profile());
  EXPECT_EQ(restore_profile(parse_json("p", "{}")), Profile());
  const Job job{.global_batch = 512,
                .precision = Precision::pure_bf16,
                .optimizer = Optimizer::momentum,
                .attention = AttentionKernel::plain,
                .framework = samples::framework("jax"),
                .adapters = true,
                .adapter_rank = 16,
                .four_bit_weights = true,
                .reserve = 0.1,
                .reserved = Bytes(1e9),
                .memory_limit = Bytes(12e9)};
  EXPECT_EQ(restore_job(parse_json("j", dump_job(job))), job);
}

TEST(ProblemJson, JobsUnderstandMegatronsWord) {
  Job job{.global_batch = 8};
  job.framework = samples::framework("megatron");
  EXPECT_EQ(restore_job(parse_json("j", R"({"global_batch_size": 8})")), job);
  EXPECT_EQ(complaint([] {
              restore_job(parse_json("j", R"({"global_batch_size": 8, "global_batch": 8})"));
            }),
            "j#: 'global_batch' and 'global_batch_size' mean the same: keep one");
}

TEST(ProblemJson, SaysWhatIsWrongWithAModel) {
  const std::string good = dump_model(sample_model(6));
  const auto broken = [&](const std::string& from, const std::string& to) {
    return complaint([&] { restore_model(parse_json("m", replaced(good, from, to))); });
  };
  EXPECT_EQ(broken("\"causal\"", "\"casual\""),
            "m#: unknown key 'casual' (did you mean 'causal'?)");
  EXPECT_EQ(broken("\"repeat\": 6", "\"repeat\": 1000000000"),
            "m#/units/1/repeat: must be a whole number from 1 to 200100, is 1000000000");
  EXPECT_EQ(broken("[1]}, 2]", "[1, 1]}, 3]"),
            "m#/units/2: must be a whole number from 0 to 2, is 3");
  EXPECT_EQ(broken("\"repeat\": 6, \"kinds\": [1]", "\"repeat\": 120000, \"kinds\": [1, 1]"),
            "m#/units/1: makes more than 200100 units");
  EXPECT_EQ(broken("\"second\": 7", "\"second\": 8"),
            "m#/ties/0/second: must be a whole number from 0 to 7, is 8");
  EXPECT_EQ(broken("\"split\": \"column\"", "\"split\": \"colum\""),
            "m#/kinds/1/ops/0/split: unknown value 'colum', must be one of replicated, column, "
            "row, heads, vocabulary, experts, shard (did you mean 'column'?)");
  EXPECT_EQ(broken("\"rows\": 1024", "\"rows\": -1"),
            "m#/kinds/0/ops/0/rows: must be at least 0, is -1");
  EXPECT_EQ(broken("\"sequence_length\": 1024", "\"sequence_length\": 0"),
            "m#/sequence_length: must be a whole number from 1 to 1000000000, is 0");
}

TEST(ProblemJson, SaysWhatIsWrongWithACluster) {
  const std::string good = dump_cluster(sample_cluster(3, 1));
  const auto broken = [&](const std::string& from, const std::string& to) {
    return complaint([&] { restore_cluster(parse_json("c", replaced(good, from, to))); });
  };
  EXPECT_EQ(broken("\"type\": 1", "\"type\": 2"),
            "c#/devices/1/type: must be a whole number from 0 to 1, is 2");
  EXPECT_EQ(broken("\"node\": 2", "\"node\": 0"),
            "c#/devices/2/node: the devices of a node must follow each other");
  EXPECT_EQ(broken("\"count\": 8", "\"count\": 999990"),
            "c#/devices/2: makes more than 1000000 devices");
  EXPECT_EQ(broken("\"zone\": 1", "\"zone\": 2"),
            "c#/nodes/1/zone: must be a whole number from 0 to 1, is 2");
  EXPECT_EQ(broken("\"bf16\"", "\"bf17\""),
            "c#/device_types/0/peak_flops_per_s: unknown key 'bf17' (did you mean 'bf16'?)");
  EXPECT_EQ(broken("\"batched\": 0.454", "\"batched\": 1.6"),
            "c#/device_types/0/efficiency/batched: must be at most 1");
  EXPECT_EQ(broken("\"memory_B\": 85899345920", "\"memory_B\": 0"),
            "c#/device_types/0/memory_B: must be positive, is 0");
}

TEST(ProblemJson, SaysWhatIsWrongWithManyNodes) {
  const std::string good = dump_cluster(sample_cluster(3, 1));
  const auto broken = [&](const std::string& from, const std::string& to) {
    return complaint([&] { restore_cluster(parse_json("c", replaced(good, from, to))); });
  };
  EXPECT_EQ(broken("\"zone\": 1", "\"zone\": 1, \"count\": 1000000"),
            "c#/nodes/1: makes more than 1000000 nodes");
  EXPECT_EQ(broken("\"name\": \"node1\"", "\"count\": 2, \"name\": \"node\""),
            "c#/nodes/1/name: must end in a number where there is a 'count'");
  EXPECT_EQ(broken("\"node\": 2", "\"node\": 2, \"nodes\": 2"),
            "c#/devices/2/nodes: must be a whole number from 1 to 1, is 2");
  EXPECT_EQ(broken("\"node\": 0, \"count\": 8", "\"node\": 0, \"nodes\": 3, \"count\": 500000"),
            "c#/devices/0: makes more than 1000000 devices");
}

TEST(ProblemJson, SaysWhatIsWrongWithAProfileOrAJob) {
  const std::string good = dump_profile(sample_profile());
  const auto broken = [&](const std::string& from, const std::string& to) {
    return complaint([&] { restore_profile(parse_json("p", replaced(good, from, to))); });
  };
  EXPECT_EQ(broken("\"size_B\": 1024", "\"size_B\": 1e10"),
            "p#/collectives/0/points/1/size_B: sizes must ascend");
  EXPECT_EQ(broken("\"tensor\": 2, \"micro_batch\": 4",
                   "\"tensor\": 1, \"micro_batch\": 1, \"sequence\": 512"),
            "p#/compute/1: the same point is there twice");
  EXPECT_EQ(complaint([] { restore_job(parse_json("j", "{}")); }), "j#: 'global_batch' is missing");
  EXPECT_EQ(complaint([] { restore_job(parse_json("j", R"({"global_batch": 8, "reserve": 1})")); }),
            "j#/reserve: must be below 1");
}

TEST(ProblemJson, WhatWouldTakeForeverIsRefused) {
  const std::string cluster = dump_cluster(sample_cluster(2, 1));
  const auto cluster_with = [&](const std::string& from, const std::string& to) {
    return complaint([&] { restore_cluster(parse_json("p", replaced(cluster, from, to))); });
  };
  const auto number_at = [&](const std::string& key) {
    const std::size_t begin = cluster.find("\"" + key + "\": ");
    return cluster.substr(begin, cluster.find_first_of(",}", begin) - begin);
  };
  EXPECT_EQ(cluster_with(number_at("bandwidth_Bps"), "\"bandwidth_Bps\": 0"),
            "p#/device_types/0/intra/bandwidth_Bps: must be positive, is 0");
  EXPECT_EQ(cluster_with(number_at("attention_backward"), "\"attention_backward\": 0"),
            "p#/device_types/0/efficiency/attention_backward: must be positive, is 0");
  const std::size_t peaks = cluster.find("\"peak_flops_per_s\": {");
  EXPECT_EQ(cluster_with(cluster.substr(peaks, cluster.find('}', peaks) + 1 - peaks),
                         "\"peak_flops_per_s\": {}"),
            "p#/device_types/0/peak_flops_per_s: needs a positive peak for one dtype");
}

}  // namespace
}  // namespace plait
