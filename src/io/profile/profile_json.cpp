#include "io/profile/profile_json.h"

#include "base/error.h"
#include "io/format/json_writer.h"
#include "io/profile/optional_fields.h"
#include "plan/names.h"

namespace plait {
namespace {

constexpr int kProfileVersion = 1;

// `Sample` is a ComputeSample, const or not.
template <typename Sample>
void visit_compute(Sample& sample, const auto& visit) {
  auto& [forward, backward, both, forward_launch, backward_launch, communication_inside,
         synchronised, saved_activations, input, workspace, memory, optimizer, reserved, spread,
         flags, out_of_memory] = sample;
  visit("out_of_memory", out_of_memory);
  visit("forward_s", forward);
  visit("backward_s", backward);
  visit("both_s", both);
  visit("forward_launch_s", forward_launch);
  visit("backward_launch_s", backward_launch);
  visit("communication_inside", communication_inside);
  visit("synchronised", synchronised);
  visit("saved_activations_B", saved_activations);
  visit("input_B", input);
  visit("workspace_B", workspace);
  visit("memory_B", memory);
  visit("optimizer_s", optimizer);
  visit("reserved_B", reserved);
  visit("spread", spread);
  visit("flags", flags);
}

// The same of an OpSample.
template <typename Sample>
void visit_op(Sample& sample, const auto& visit) {
  auto& [forward, backward, weight_gradient, spread, flags, out_of_memory] = sample;
  visit("out_of_memory", out_of_memory);
  visit("forward_s", forward);
  visit("backward_s", backward);
  visit("weight_gradient_s", weight_gradient);
  visit("spread", spread);
  visit("flags", flags);
}

std::string dump_compute(const ComputeKey& key, const ComputeSample& sample) {
  const auto& [unit, device_type, tensor, micro_batch, sequence, split, shape] = key;
  JsonObject object;
  object.text("unit", unit).text("device_type", device_type);
  object.number("tensor", tensor).number("micro_batch", micro_batch);
  if (sequence != 0) object.number("sequence", sequence);
  if (split != 0) object.number("split", split);
  if (!shape.empty()) object.text("shape", shape);
  visit_compute(sample, FieldWriter{object});
  return object.str();
}

void restore_compute(const JsonValue& json, Profile& profile) {
  json.allow_only({"unit",
                   "device_type",
                   "tensor",
                   "micro_batch",
                   "sequence",
                   "split",
                   "forward_s",
                   "backward_s",
                   "both_s",
                   "communication_inside",
                   "synchronised",
                   "saved_activations_B",
                   "input_B",
                   "workspace_B",
                   "memory_B",
                   "optimizer_s",
                   "reserved_B",
                   "spread",
                   "flags",
                   "shape",
                   "out_of_memory",
                   "forward_launch_s",
                   "backward_launch_s"});
  ComputeKey key;
  key.unit = json.at("unit").text();
  key.device_type = json.at("device_type").text();
  key.tensor = json.integer_or("tensor", 1, kMaxInt, 1);
  key.micro_batch = json.integer_or("micro_batch", 1, kMaxInt, 1);
  key.sequence = json.integer_or("sequence", 0, kMaxInt, 0);
  key.split = json.integer_or("split", 0, kMaxInt, 0);
  key.shape = json.text_or("shape", "");
  ComputeSample sample;
  visit_compute(sample, FieldReader{json});
  if (sample.out_of_memory && (sample.both || sample.forward))
    throw InputError(json.where(), "did not fit into memory, so it can have no times");
  if (sample.both && (sample.forward || sample.backward))
    throw InputError(json.where(), "give both_s, or forward_s and backward_s, not all of them");
  if (sample.backward && !sample.forward)
    throw InputError(json.where(), "backward_s needs forward_s beside it");
  if (!profile.compute.emplace(key, sample).second)
    throw InputError(json.where(), "the same point is there twice");
}

JsonObject op_members(const OpKey& key) {
  const auto& [kind, function, dtype, device_type, rows, inner, columns, count, kv_count, causal,
               window, stride] = key;
  JsonObject object;
  object.text("op", name_of(kind));
  if (function != Function::other) object.text("function", name_of(function));
  object.text("dtype", name_of(dtype));
  if (!device_type.empty()) object.text("device_type", device_type);
  object.number("rows", rows);
  if (inner != 0) object.number("inner", inner);
  if (columns != 0) object.number("columns", columns);
  if (count != 1) object.number("count", count);
  if (kv_count != 0) object.number("kv_count", kv_count);
  if (causal) object.boolean("causal", true);
  if (window != 0) object.number("window", window);
  if (stride != 0) object.number("stride", stride);
  return object;
}

std::string dump_op(const OpKey& key, const OpSample& sample) {
  JsonObject object = op_members(key);
  visit_op(sample, FieldWriter{object});
  return object.str();
}

void restore_op(const JsonValue& json, Profile& profile) {
  json.allow_only({"op", "function", "dtype", "device_type", "rows", "inner", "columns", "count",
                   "kv_count", "causal", "window", "stride", "out_of_memory", "forward_s",
                   "backward_s", "weight_gradient_s", "spread", "flags"});
  const OpKey key = restore_op_key(json, json.at("device_type").text());
  OpSample sample;
  visit_op(sample, FieldReader{json});
  if (!profile.ops.emplace(key, sample).second)
    throw InputError(json.where(), "the same op is there twice");
}

// Latency and bandwidth that explain the curve best, for people to read.
std::string dump_fit(const std::vector<CollectivePoint>& curve) {
  const Link link = alpha_beta_fit(curve);
  return JsonObject()
      .number("latency_s", link.latency.value)
      .number("bandwidth_Bps", link.bandwidth.value)
      .str();
}

std::string dump_collective(const CollectiveKey& key, const std::vector<CollectivePoint>& curve) {
  const auto& [collective, device_type, nodes, devices_per_node] = key;
  std::vector<std::string> points;
  for (const auto& [size, time] : curve)
    points.push_back(JsonObject().number("size_B", size.value).number("time_s", time.value).str());
  JsonObject object;
  object.text("collective", collective).text("device_type", device_type);
  object.number("nodes", nodes).number("devices_per_node", devices_per_node);
  if (curve.size() > 1) object.json("fit", dump_fit(curve));
  return object.json("points", json_list(points)).str();
}

void restore_collective(const JsonValue& json, Profile& profile) {
  json.allow_only({"collective", "device_type", "nodes", "devices_per_node", "fit", "points"});
  static const std::vector<std::string_view> known{"all_reduce", "all_gather", "reduce_scatter",
                                                   "all_to_all", "send"};
  CollectiveKey key;
  key.collective = known[json.at("collective").choice(known)];
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

std::string dump_extra(const StepExtra& extra) {
  const auto& [name, device_type, time] = extra;
  return JsonObject()
      .text("name", name)
      .text("device_type", device_type)
      .number("time_s", time.value)
      .str();
}

StepExtra restore_extra(const JsonValue& json) {
  json.allow_only({"name", "device_type", "time_s"});
  return {.name = json.at("name").text(),
          .device_type = json.at("device_type").text(),
          .time = Seconds(json.at("time_s").at_least(0))};
}

std::string dump_provenance(const Provenance& provenance) {
  const auto& [source, command, versions, notes] = provenance;
  JsonObject object;
  object.text("source", source).text("command", command);
  JsonObject of;
  for (const auto& [program, version] : versions) of.text(program, version);
  std::vector<std::string> sentences;
  for (const std::string& note : notes) sentences.push_back(json_text(note));
  return object.json("versions", of.str()).json("notes", json_list(sentences)).str();
}

Provenance restore_provenance(const JsonValue& json) {
  json.allow_only({"source", "command", "versions", "notes"});
  Provenance provenance;
  provenance.source = json.text_or("source", "");
  provenance.command = json.text_or("command", "");
  if (const auto versions = json.find("versions"))
    for (const auto& [program, version] : versions->members())
      provenance.versions.emplace(program, version.text());
  if (const auto notes = json.find("notes"))
    for (const JsonValue& note : notes->items()) provenance.notes.push_back(note.text());
  return provenance;
}

JsonObject as_object(const Profile& profile) {
  const auto& [compute_points, collective_curves, step_extras, provenance, op_points] = profile;
  std::vector<std::string> compute;
  for (const auto& [key, sample] : compute_points) compute.push_back(dump_compute(key, sample));
  std::vector<std::string> collectives;
  for (const auto& [key, curve] : collective_curves)
    collectives.push_back(dump_collective(key, curve));
  std::vector<std::string> extras;
  for (const StepExtra& extra : step_extras) extras.push_back(dump_extra(extra));
  JsonObject object;
  if (provenance != Provenance()) object.json("provenance", dump_provenance(provenance));
  object.json("compute", json_list(compute)).json("collectives", json_list(collectives));
  if (!extras.empty()) object.json("extras", json_list(extras));
  std::vector<std::string> ops;
  for (const auto& [key, sample] : op_points) ops.push_back(dump_op(key, sample));
  if (!ops.empty()) object.json("ops", json_list(ops));
  return object;
}

}  // namespace

std::string op_list_json(const std::vector<OpKey>& ops) {
  std::vector<std::string> listed;
  for (OpKey key : ops) {
    key.device_type.clear();  // that the list is measured on
    listed.push_back(op_members(key).str());
  }
  return lay_out_json(JsonObject().number("plait_ops", 1).json("ops", json_list(listed)).str());
}

OpKey restore_op_key(const JsonValue& json, const std::string& device_type) {
  constexpr double kMost = 1e15;
  const auto size = [&](std::string_view key, double fallback) {
    const auto value = json.find(key);
    const double number = value ? value->at_least(0) : fallback;
    if (number > kMost) throw InputError(value->where(), "is absurdly large");
    return number;
  };
  OpKey key;
  key.kind = static_cast<OpKind>(json.at("op").choice(op_kind_names()));
  if (const auto function = json.find("function"))
    key.function = static_cast<Function>(function->choice(function_names()));
  key.dtype = static_cast<DType>(json.at("dtype").choice(dtype_names()));
  key.device_type = device_type;
  key.rows = json.at("rows").positive();
  size("rows", 0);
  key.inner = size("inner", 0);
  key.columns = size("columns", 0);
  key.count = size("count", 1);
  key.kv_count = size("kv_count", 0);
  key.causal = json.boolean_or("causal", false);
  key.window = json.integer_or("window", 0, kMaxInt, 0);
  key.stride = json.integer_or("stride", 0, kMaxInt, 0);
  return key;
}

Link alpha_beta_fit(const std::vector<CollectivePoint>& curve) {
  // Least squares of (a + b size - time) / time: each point counts alike, whatever its size.
  double s = 0, sx = 0, sxx = 0, sy = 0, sxy = 0;
  for (const auto& [size, time] : curve) {
    if (time.value <= 0) continue;
    const double weight = 1 / (time.value * time.value);
    s += weight;
    sx += weight * size.value;
    sxx += weight * size.value * size.value;
    sy += weight * time.value;
    sxy += weight * size.value * time.value;
  }
  const double determinant = s * sxx - sx * sx;
  double slope = determinant > 0 ? (s * sxy - sx * sy) / determinant : 0;
  double base = s > 0 ? (sy - slope * sx) / s : 0;
  if (base < 0) {
    base = 0;
    slope = sxx > 0 ? sxy / sxx : 0;
  }
  return {.bandwidth = BytesPerSecond(slope > 0 ? 1 / slope : 0), .latency = Seconds(base)};
}

std::string dump_profile(const Profile& profile) { return as_object(profile).str(); }

Profile restore_profile(const JsonValue& json) {
  json.allow_only({"plait_profile", "provenance", "compute", "collectives", "extras", "ops"});
  Profile profile;
  if (const auto points = json.find("compute"))
    for (const JsonValue& point : points->items()) restore_compute(point, profile);
  if (const auto curves = json.find("collectives"))
    for (const JsonValue& curve : curves->items()) restore_collective(curve, profile);
  if (const auto extras = json.find("extras"))
    for (const JsonValue& extra : extras->items()) profile.extras.push_back(restore_extra(extra));
  if (const auto ops = json.find("ops"))
    for (const JsonValue& op : ops->items()) restore_op(op, profile);
  if (const auto provenance = json.find("provenance"))
    profile.provenance = restore_provenance(*provenance);
  return profile;
}

Profile read_profile_file(const std::string& path) {
  return is_json_text(path) ? parse_profile("profile", path)
                            : parse_profile(path, read_text_file(path));
}

Profile parse_profile(const std::string& name, std::string_view text) {
  const JsonValue root = parse_json(name, text);
  if (!root.is_object() || !root.find("plait_profile"))
    throw InputError(name, R"(is not a profile: 'plait_profile': 1 is missing)");
  root.at("plait_profile").integer(kProfileVersion, kProfileVersion);
  return restore_profile(root);
}

std::string profile_file_to_json(const Profile& profile) {
  const std::string members = dump_profile(profile).substr(1);
  return lay_out_json("{\"plait_profile\": " + std::to_string(kProfileVersion) + ", " + members);
}

}  // namespace plait
