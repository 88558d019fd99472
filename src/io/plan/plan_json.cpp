#include "io/plan/plan_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "base/error.h"
#include "cluster/cluster_builder.h"
#include "cost/known_times.h"
#include "io/format/json_keys.h"
#include "io/format/json_writer.h"
#include "io/format/text_file.h"
#include "io/plan/problem_json.h"
#include "io/profile/profile_json.h"
#include "plan/check.h"
#include "plan/describe.h"
#include "plan/names.h"

namespace plait {
namespace {

constexpr int kPlanVersion = 1;

std::string dump_span(const Span& span) {
  const auto& [units, tensor, data, split, recompute, chunk] = span;
  JsonObject json;
  json.json("units", fmt::format("[{}, {}]", units.begin, units.end));
  json.number("tensor", tensor).number("data", data);
  if (split != 0) json.number("split", split);
  json.text("recompute", name_of(recompute));
  if (chunk != 0) json.number("chunk", chunk);
  return json.str();
}

UnitRange restore_range(const JsonValue& json) {
  const std::vector<JsonValue> ends = json.items();
  if (ends.size() != 2)
    throw InputError(json.where(), "must be [first, end], end being the unit after the last");
  return {.begin = ends[0].integer(0, kMaxInt), .end = ends[1].integer(0, kMaxInt)};
}

Span restore_span(const JsonValue& json) {
  json.allow_only({"units", "tensor", "tensor_model_parallel_size", "data", "data_parallel_size",
                   "split", "recompute", "recompute_granularity", "chunk"});
  Span span;
  span.units = restore_range(json.at("units"));
  span.tensor = at_one_of(json, {"tensor", "tensor_model_parallel_size"}).integer(1, kMaxInt);
  span.data = at_one_of(json, {"data", "data_parallel_size"}).integer(1, kMaxInt);
  span.split = json.integer_or("split", 0, kMaxInt, 0);
  if (const auto value = find_one_of(json, {"recompute", "recompute_granularity"}))
    span.recompute = static_cast<Recompute>(value->choice(recompute_names()));
  span.chunk = json.integer_or("chunk", 0, kMaxDevices, 0);
  return span;
}

std::string dump_stage(const Stage& stage) {
  const auto& [stage_spans, stage_devices, shares] = stage;
  std::vector<std::string> spans;
  for (const Span& span : stage_spans) spans.push_back(dump_span(span));
  std::vector<int> devices;
  for (const DeviceId device : stage_devices) devices.push_back(index(device));
  JsonObject json;
  json.json("spans", json_list(spans));
  json.json("devices", fmt::format("[{}]", fmt::join(devices, ", ")));
  if (!shares.empty()) json.json("shares", fmt::format("[{}]", fmt::join(shares, ", ")));
  return json.str();
}

Stage restore_stage(const JsonValue& json) {
  json.allow_only({"spans", "devices", "shares"});
  Stage stage;
  for (const JsonValue& span : json.at("spans").items()) stage.spans.push_back(restore_span(span));
  for (const JsonValue& device : json.at("devices").items())
    stage.devices.push_back(DeviceId{device.integer(0, kMaxDevices - 1)});
  if (const auto shares = json.find("shares"))
    for (const JsonValue& share : shares->items())
      stage.shares.push_back(share.integer(1, kMaxInt));
  return stage;
}

std::string dump_estimate(const Estimate& estimate) {
  JsonObject json;
  const auto add = [&](std::string_view key, double value) {
    if (std::isfinite(value)) json.number(key, value);
  };
  add("step_s", estimate.step.value);
  add("pipeline_s", estimate.pipeline.value);
  add("bubble_s", estimate.bubble.value);
  add("peak_memory_GiB", estimate.peak_memory().value / 0x1p30);
  return json.boolean("fits", estimate.fits).str();
}

// "stages[2].spans[0].tensor" as a JSON pointer: "/stages/2/spans/0/tensor".
std::string pointer(const std::string& where) {
  std::string out = "/";
  for (const char c : where) {
    if (c == ']') continue;
    out += c == '.' || c == '[' ? '/' : c;
  }
  return out;
}

}  // namespace

std::string plan_to_json(const Plan& plan) {
  const auto& [schedule, micro_batches, context, expert, zero, sequence_parallel, offload,
               plan_stages] = plan;
  std::vector<std::string> stages;
  for (const Stage& stage : plan_stages) stages.push_back(dump_stage(stage));
  return JsonObject()
      .text("schedule", name_of(schedule))
      .number("micro_batches", micro_batches)
      .number("context", context)
      .number("expert", expert)
      .number("zero", static_cast<int>(zero))
      .boolean("sequence_parallel", sequence_parallel)
      .number("offload", offload)
      .json("stages", json_list(stages))
      .str();
}

Plan plan_from_json(const JsonValue& json) {
  json.allow_only({"schedule", "micro_batches", "num_microbatches", "context",
                   "context_parallel_size", "expert", "expert_model_parallel_size", "zero",
                   "sequence_parallel", "offload", "optimizer_offload_fraction", "stages"});
  Plan plan;
  plan.schedule = static_cast<Schedule>(json.at("schedule").choice(schedule_names()));
  plan.micro_batches = at_one_of(json, {"micro_batches", "num_microbatches"}).integer(1, kMaxInt);
  if (const auto value = find_one_of(json, {"context", "context_parallel_size"}))
    plan.context = value->integer(1, kMaxInt);
  if (const auto value = find_one_of(json, {"expert", "expert_model_parallel_size"}))
    plan.expert = value->integer(1, kMaxInt);
  plan.zero = static_cast<ZeroStage>(json.integer_or("zero", 0, 3, 0));
  plan.sequence_parallel = json.boolean_or("sequence_parallel", false);
  if (const auto value = find_one_of(json, {"offload", "optimizer_offload_fraction"}))
    plan.offload = value->number();
  for (const JsonValue& stage : json.at("stages").items())
    plan.stages.push_back(restore_stage(stage));
  return plan;
}

namespace {

// Refuses to write what would not be read. Few bytes hold few values.
std::string readable(std::string text) {
  constexpr std::size_t kSurelyRead = 4'000'000;
  if (text.size() > kMaxFileBytes)
    throw InputError("the plan",
                     "would be a file of more than 64 MiB, which is not read again; nodes "
                     "that are alike and numbered without a gap take less");
  if (text.size() > kSurelyRead) parse_json("the plan as a file", text);
  return text;
}

}  // namespace

std::string plan_file_to_json(const Problem& problem, const Plan& plan,
                              const std::optional<Estimate>& predicted,
                              const std::string& made_by) {
  JsonObject file;
  file.number("plait_plan", kPlanVersion);
  if (!made_by.empty()) file.text("made_by", made_by);
  file.text("describe", describe(plan));
  if (predicted) file.json("predicted", dump_estimate(*predicted));
  file.json("plan", plan_to_json(plan)).json("job", dump_job(problem.job));
  file.json("model", dump_model(problem.model)).json("cluster", dump_cluster(problem.cluster));
  if (!problem.profile.empty()) file.json("profile", dump_profile(problem.profile));
  return readable(lay_out_json(file.str()));
}

PlanFile plan_file_from_json(const JsonValue& root) {
  if (!root.find("plait_plan"))
    throw InputError(root.where(), "'plait_plan' is missing: not a plan saved by plait");
  const int version = root.at("plait_plan").integer(1, kMaxInt);
  if (version != kPlanVersion)
    throw InputError(root.at("plait_plan").where(),
                     fmt::format("version {} is from a newer plait, this one reads version {}",
                                 version, kPlanVersion));
  root.allow_only({"plait_plan", "made_by", "describe", "predicted", "plan", "job", "model",
                   "cluster", "profile"});
  root.text_or("describe", "");
  if (const auto predicted = root.find("predicted"))
    predicted->allow_only({"step_s", "pipeline_s", "bubble_s", "peak_memory_GiB", "fits"});
  PlanFile file;
  file.made_by = root.text_or("made_by", "");
  file.plan = plan_from_json(root.at("plan"));
  file.problem.job = restore_job(root.at("job"));
  file.problem.model = restore_model(root.at("model"));
  file.problem.cluster = restore_cluster(root.at("cluster"));
  if (const auto profile = root.find("profile")) file.problem.profile = restore_profile(*profile);
  return file;
}

PlanFile read_plan_file(const std::string& path) {
  if (path.ends_with(".sh"))
    throw InputError(path,
                     "is a script, not a plan: 'plait plan' takes it as the model and saves one");
  const JsonValue root = read_json_document(path, "plan");
  PlanFile file = plan_file_from_json(root);
  const std::vector<Violation> violations = check_plan(file.problem, file.plan);
  if (violations.empty()) {
    refuse_unknown_times(file.problem, file.plan);
    return file;
  }
  const std::string more = violations.size() == 1 ? ""
                                                  : fmt::format(" (and {} more: see 'plait check')",
                                                                violations.size() - 1);
  throw InputError(root.at("plan").where() + pointer(violations[0].where),
                   violations[0].what + more);
}

}  // namespace plait
