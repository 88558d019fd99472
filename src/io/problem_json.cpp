#include "io/problem_json.h"

#include "base/error.h"
#include "io/json_keys.h"
#include "io/json_writer.h"
#include "plan/names.h"

namespace plait {
namespace {

constexpr int kMaxInt = 1'000'000'000;

std::string dump_compute(const ComputeKey& key, const ComputeSample& sample) {
  const auto& [unit, device_type, tensor, micro_batch, sequence] = key;
  const auto& [forward, backward, saved_activations, workspace] = sample;
  return JsonObject()
      .text("unit", unit)
      .text("device_type", device_type)
      .number("tensor", tensor)
      .number("micro_batch", micro_batch)
      .number("sequence", sequence)
      .number("forward_s", forward.value)
      .number("backward_s", backward.value)
      .number("saved_activations_B", saved_activations.value)
      .number("workspace_B", workspace.value)
      .str();
}

void restore_compute(const JsonValue& json, Profile& profile) {
  json.allow_only({"unit", "device_type", "tensor", "micro_batch", "sequence", "forward_s",
                   "backward_s", "saved_activations_B", "workspace_B"});
  ComputeKey key;
  key.unit = json.at("unit").text();
  key.device_type = json.at("device_type").text();
  key.tensor = json.at("tensor").integer(1, kMaxInt);
  key.micro_batch = json.at("micro_batch").integer(1, kMaxInt);
  key.sequence = json.integer_or("sequence", 0, kMaxInt, 0);
  ComputeSample sample;
  sample.forward = Seconds(json.at("forward_s").at_least(0));
  sample.backward = Seconds(json.at("backward_s").at_least(0));
  sample.saved_activations = Bytes(json.at("saved_activations_B").at_least(0));
  sample.workspace = Bytes(json.at("workspace_B").at_least(0));
  if (!profile.compute.emplace(key, sample).second)
    throw InputError(json.where(), "the same point is there twice");
}

std::string dump_collective(const CollectiveKey& key, const std::vector<CollectivePoint>& curve) {
  const auto& [collective, device_type, nodes, devices_per_node] = key;
  std::vector<std::string> points;
  for (const auto& [size, time] : curve)
    points.push_back(JsonObject().number("size_B", size.value).number("time_s", time.value).str());
  return JsonObject()
      .text("collective", collective)
      .text("device_type", device_type)
      .number("nodes", nodes)
      .number("devices_per_node", devices_per_node)
      .json("points", json_list(points))
      .str();
}

void restore_collective(const JsonValue& json, Profile& profile) {
  json.allow_only({"collective", "device_type", "nodes", "devices_per_node", "points"});
  CollectiveKey key;
  key.collective = json.at("collective").text();
  key.device_type = json.at("device_type").text();
  key.nodes = json.at("nodes").integer(1, kMaxInt);
  key.devices_per_node = json.at("devices_per_node").integer(1, kMaxInt);
  std::vector<CollectivePoint> points;
  for (const JsonValue& point : json.at("points").items()) {
    point.allow_only({"size_B", "time_s"});
    const Bytes size(point.at("size_B").at_least(0));
    if (!points.empty() && size <= points.back().size)
      throw InputError(point.at("size_B").where(), "sizes must ascend");
    points.push_back({.size = size, .time = Seconds(point.at("time_s").at_least(0))});
  }
  if (!profile.collectives.emplace(key, std::move(points)).second)
    throw InputError(json.where(), "the same collective is there twice");
}

}  // namespace

std::string dump_profile(const Profile& profile) {
  const auto& [compute_points, collective_curves] = profile;
  std::vector<std::string> compute;
  for (const auto& [key, sample] : compute_points) compute.push_back(dump_compute(key, sample));
  std::vector<std::string> collectives;
  for (const auto& [key, curve] : collective_curves)
    collectives.push_back(dump_collective(key, curve));
  return JsonObject()
      .json("compute", json_list(compute))
      .json("collectives", json_list(collectives))
      .str();
}

Profile restore_profile(const JsonValue& json) {
  json.allow_only({"compute", "collectives"});
  Profile profile;
  if (const auto points = json.find("compute"))
    for (const JsonValue& point : points->items()) restore_compute(point, profile);
  if (const auto curves = json.find("collectives"))
    for (const JsonValue& curve : curves->items()) restore_collective(curve, profile);
  return profile;
}

std::string dump_job(const Job& job) {
  const auto& [global_batch, precision, optimizer, attention, framework, overlap, adapters,
               gradient_bytes, vocabulary_multiple, reserve] = job;
  return JsonObject()
      .number("global_batch", global_batch)
      .text("precision", name_of(precision))
      .text("optimizer", name_of(optimizer))
      .text("attention", name_of(attention))
      .text("framework", name_of(framework))
      .boolean("overlap", overlap)
      .boolean("adapters", adapters)
      .number("gradient_bytes", gradient_bytes)
      .number("vocabulary_multiple", vocabulary_multiple)
      .number("reserve", reserve)
      .str();
}

Job restore_job(const JsonValue& json) {
  json.allow_only({"global_batch", "global_batch_size", "precision", "optimizer", "attention",
                   "framework", "overlap", "adapters", "gradient_bytes", "vocabulary_multiple",
                   "reserve"});
  Job job;
  job.global_batch = at_one_of(json, {"global_batch", "global_batch_size"}).integer(1, kMaxInt);
  if (const auto value = json.find("precision"))
    job.precision = static_cast<Precision>(value->choice(precision_names()));
  if (const auto value = json.find("optimizer"))
    job.optimizer = static_cast<Optimizer>(value->choice(optimizer_names()));
  if (const auto value = json.find("attention"))
    job.attention = static_cast<AttentionKernel>(value->choice(attention_names()));
  if (const auto value = json.find("framework"))
    job.framework = static_cast<Framework>(value->choice(framework_names()));
  job.overlap = json.boolean_or("overlap", true);
  job.adapters = json.boolean_or("adapters", false);
  job.gradient_bytes = json.integer_or("gradient_bytes", 0, 8, 0);
  job.vocabulary_multiple = json.integer_or("vocabulary_multiple", 0, kMaxInt, 0);
  if (const auto value = json.find("reserve")) {
    job.reserve = value->at_least(0);
    if (job.reserve >= 1) throw InputError(value->where(), "must be below 1");
  }
  return job;
}

}  // namespace plait
