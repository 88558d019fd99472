#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "cost/comm/series.h"
#include "cost/framework/framework.h"
#include "cost/op/op_time.h"
#include "io/format/json_reader.h"
#include "io/format/json_writer.h"
#include "io/format/unit_factors.h"
#include "io/profile/write_profiles.h"
#include "model/fingerprint.h"

namespace plait {
namespace {

const ComputeSample* sample_of(const Profile& profile, const Model& model, const LayerKind& kind,
                               const WholePoint& point) {
  const std::string own = fingerprint(model, kind);
  for (const auto& [key, sample] : profile.compute) {
    const bool same = key.unit == kind.name && key.device_type == point.device_type &&
                      key.tensor == point.tensor && key.micro_batch == point.micro_batch &&
                      (key.shape.empty() || key.shape == own) &&
                      (key.sequence == 0 || key.sequence == model.sequence_length);
    if (same && !sample.out_of_memory && (sample.both || (sample.forward && sample.backward)))
      return &sample;
  }
  return nullptr;
}

Seconds pass_time_of(const ComputeSample& sample) {
  return sample.both ? *sample.both : *sample.forward + *sample.backward;
}

// What the tensor group's reductions of a unit take, where they were measured.
Seconds reductions(const Profile& profile, const Job& job, const LayerKind& kind,
                   const WholePoint& point) {
  const auto curve = profile.collectives.find({.collective = "all_reduce",
                                               .device_type = point.device_type,
                                               .nodes = 1,
                                               .devices_per_node = point.tensor});
  if (point.tensor == 1 || curve == profile.collectives.end() || curve->second.empty()) return {};
  std::vector<Point> points;
  for (const CollectivePoint& p : curve->second) points.push_back({p.size.value, p.time.value});
  const Series series(points);
  Seconds sum;
  for (const Op& op : kind.ops)
    for (const double elements : {op.forward_reduce, op.backward_reduce})
      if (elements > 0)
        sum += Seconds(series.at(elements * point.micro_batch * activation_bytes(job.precision)));
  return sum;
}

std::string list_of(const std::vector<double>& values) {
  std::vector<std::string> items;
  for (const double value : values) items.push_back(json_number(value));
  return json_list(items);
}

std::string file_of(const Profile& profile, const Model& model, const Job& job,
                    const WholePoint& point) {
  const StateBytes state = state_bytes(job);
  std::vector<double> times, memory, parameters;
  double sum = 0, optimizer = 0, all_memory = 0;
  for (int u = 0; u < model.unit_count(); ++u) {
    const LayerKind& kind = model.unit(u);
    const ComputeSample& sample = *point.units[u];
    Seconds time = pass_time_of(sample);
    if (!sample.communication_inside) time += reductions(profile, job, kind, point);
    times.push_back(time.value / kMillisecond);
    sum += times.back();
    optimizer += sample.optimizer.value_or(Seconds(0)).value / kMillisecond;
    double on_device = 0;
    for (const Op& op : kind.ops)
      on_device += parameters_per_device(op, {.samples = 1, .tensor = point.tensor});
    const double states = on_device * (state.weight + state.gradient + state.optimizer);
    memory.push_back((states + sample.saved_activations.value_or(Bytes(0)).value) / kMebibyte);
    all_memory += memory.back();
    parameters.push_back(kind.parameters());
  }
  const std::string described =
      JsonObject()
          .text("model_name", model.name)
          .number("num_layers", model.unit_count())
          .json("parameters", JsonObject()
                                  .number("total_parameters_bytes", model.parameters())
                                  .json("parameters_per_layer_bytes", list_of(parameters))
                                  .str())
          .str();
  const std::string execution = JsonObject()
                                    .number("total_time_ms", sum + optimizer)
                                    .number("forward_backward_time_ms", sum)
                                    .number("batch_generator_time_ms", 0)
                                    .number("layernorm_grads_all_reduce_time_ms", 0)
                                    .number("embedding_grads_all_reduce_time_ms", 0)
                                    .number("optimizer_time_ms", optimizer)
                                    .json("layer_compute_total_ms", list_of(times))
                                    .str();
  const std::string held = JsonObject()
                               .number("total_memory", all_memory)
                               .json("layer_memory_total_mb", list_of(memory))
                               .str();
  return lay_out_json(JsonObject()
                          .json("model", described)
                          .json("execution_time", execution)
                          .json("execution_memory", held)
                          .str());
}

}  // namespace

std::vector<WholePoint> whole_points(const Profile& profile, const Model& model) {
  std::set<std::tuple<std::string, int, int>> places;
  for (const auto& [key, sample] : profile.compute)
    places.insert({key.device_type, key.tensor, key.micro_batch});
  std::vector<WholePoint> points;
  for (const auto& [device_type, tensor, micro_batch] : places) {
    WholePoint point{device_type, tensor, micro_batch, {}};
    std::vector<const ComputeSample*> kinds;
    for (const LayerKind& kind : model.kinds)
      kinds.push_back(sample_of(profile, model, kind, point));
    if (std::ranges::find(kinds, nullptr) != kinds.end()) continue;
    for (const int kind : model.units) point.units.push_back(kinds[kind]);
    points.push_back(std::move(point));
  }
  if (points.empty())
    throw InputError(model.name, "at no tensor degree and micro-batch all its units were measured");
  return points;
}

TextFiles metis_files(const Profile& profile, const Model& model, const Job& job) {
  TextFiles files;
  for (const WholePoint& point : whole_points(profile, model))
    files[fmt::format("DeviceType.{}_tp{}_bs{}.json", point.device_type, point.tensor,
                      point.micro_batch)] = file_of(profile, model, job, point);
  return files;
}

void write_files(const TextFiles& files, const std::string& directory) {
  std::error_code fault;
  std::filesystem::create_directories(directory, fault);
  if (fault) throw InputError(directory, "cannot be made: " + fault.message());
  const std::filesystem::path folder(directory);
  for (const auto& [name, text] : files) write_text_file((folder / name).string(), text);
}

}  // namespace plait
