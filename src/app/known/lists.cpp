#include "app/known/lists.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "io/cluster/device_json.h"
#include "io/format/json_writer.h"
#include "io/model/zoo.h"
#include "plan/names.h"
#include "report/quantities.h"
#include "report/summary.h"

namespace plait {
namespace {

// One value a line, so that two listings compare line by line.
std::string json_lines(const std::vector<std::string>& items) {
  return fmt::format("[{}\n]\n",
                     items.empty() ? "" : fmt::format("\n  {}", fmt::join(items, ",\n  ")));
}

std::string dollars_an_hour(UsdPerSecond price) {
  return price > UsdPerSecond(0) ? fmt::format("{:.2f}", in_usd_per_hour(price)) : "";
}

JsonObject& price_member(JsonObject& object, std::string_view key, UsdPerSecond price) {
  // Lists have at most four decimals; an hour is 3600 seconds only to the last bit.
  constexpr double kDecimals = 1e6;
  return price > UsdPerSecond(0)
             ? object.number(key, std::round(in_usd_per_hour(price) * kDecimals) / kDecimals)
             : object.json(key, "null");
}

std::string texts(const std::vector<std::string>& list) {
  std::vector<std::string> items;
  for (const std::string& text : list) items.push_back(json_text(text));
  return json_list(items);
}

std::string device_item(const DeviceEntry& entry) {
  const DeviceType& type = entry.type;
  JsonObject peak;
  for (int i = 0; i < kDTypes; ++i)
    if (type.supports(static_cast<DType>(i)))
      peak.number(name_of(static_cast<DType>(i)), type.peak[i].value / 1e12);
  JsonObject item;
  item.text("name", type.name)
      .json("aliases", texts(entry.aliases))
      .number("memory_GiB", type.memory.value / 0x1p30)
      .number("memory_bandwidth_GBps", type.memory_bandwidth.value / 1e9)
      .json("peak_TFLOPs", peak.str())
      .text("link_kind", entry.link_kind)
      .number("link_GBps", type.intra.bandwidth.value / 1e9)
      .number("per_node", type.per_node);
  return price_member(item, "price_usd_per_hour", type.price)
      .text("price_of", entry.usual_instance)
      .text("constants", type.basis)
      .text("constants_in_clusters", entry.in_clusters ? entry.basis_in_clusters : type.basis)
      .text("source", entry.source)
      .str();
}

double gigabits(const Instance& instance) { return instance.network.bandwidth.value * 8e-9; }

}  // namespace

std::vector<KnownModel> known_models() {
  std::vector<KnownModel> models;
  for (const ZooEntry& entry : zoo_entries()) {
    const Model model = zoo_model(entry.name, std::nullopt)->model;
    models.push_back({entry.name, entry.aliases, entry.source, model.parameters(),
                      layer_count(model), model.sequence_length});
  }
  return models;
}

std::string to_json(const std::vector<KnownModel>& models) {
  std::vector<std::string> items;
  for (const KnownModel& model : models) {
    items.push_back(JsonObject()
                        .text("name", model.name)
                        .number("parameters", model.parameters)
                        .number("layers", model.layers)
                        .number("sequence_length", model.sequence_length)
                        .json("aliases", texts(model.aliases))
                        .text("source", model.source)
                        .str());
  }
  return json_lines(items);
}

std::string as_text(const std::vector<KnownModel>& models, const Style& style) {
  Table table({{"model", Align::left},
               {"parameters"},
               {"layers"},
               {"tokens", Align::right, 1},
               {"also called", Align::left, 2}});
  for (const KnownModel& model : models)
    table.row({model.name, grouped(model.parameters), std::to_string(model.layers),
               std::to_string(model.sequence_length),
               fmt::format("{}", fmt::join(model.aliases, ", "))});
  return table.str(style);
}

std::string to_json(const std::vector<DeviceEntry>& devices) {
  std::vector<std::string> items;
  for (const DeviceEntry& entry : devices) items.push_back(device_item(entry));
  return json_lines(items);
}

std::string as_text(const std::vector<DeviceEntry>& devices, const Style& style) {
  Table table({{"device", Align::left},
               {"GiB"},
               {"GB/s", Align::right, 1},
               {"bf16 TFLOP/s"},
               {"fp16"},
               {"fp8", Align::right, 4},
               {"link GB/s", Align::right, 2},
               {"per node", Align::right, 5},
               {"$/h each"},
               {"price of", Align::left, 6},
               {"constants", Align::left}});
  for (const DeviceEntry& entry : devices) {
    const DeviceType& type = entry.type;
    const auto peak = [&](DType dtype) {
      return type.supports(dtype)
                 ? fmt::format("{:.4g}", type.peak[static_cast<int>(dtype)].value / 1e12)
                 : "-";
    };
    table.row({type.name, fmt::format("{:.0f}", type.memory.value / 0x1p30),
               fmt::format("{:.0f}", type.memory_bandwidth.value / 1e9), peak(DType::bf16),
               peak(DType::fp16), peak(DType::fp8),
               fmt::format("{:.4g} {}", type.intra.bandwidth.value / 1e9, entry.link_kind),
               std::to_string(type.per_node), dollars_an_hour(type.price), entry.usual_instance,
               entry.in_clusters
                   ? fmt::format("{}; {} in clusters", type.basis, entry.basis_in_clusters)
                   : type.basis});
  }
  return table.str(style);
}

std::string to_json(const std::vector<Instance>& instances) {
  std::vector<std::string> items;
  for (const Instance& instance : instances) {
    JsonObject item;
    item.text("name", instance.name)
        .text("provider", instance.provider)
        .text("device", instance.device)
        .number("count", instance.count)
        .number("network_Gbps", gigabits(instance));
    price_member(item, "price_usd_per_hour", instance.price);
    price_member(item, "spot_usd_per_hour", instance.spot);
    items.push_back(item.text("date", instance.date).text("source", instance.source).str());
  }
  return json_lines(items);
}

std::string as_text(const std::vector<Instance>& instances, const Style& style) {
  Table table({{"instance", Align::left},
               {"provider", Align::left, 4},
               {"devices", Align::left},
               {"network Gbit/s", Align::right, 1},
               {"$/h"},
               {"spot $/h", Align::right, 2},
               {"as of", Align::left, 3}});
  for (const Instance& instance : instances)
    table.row({instance.name, instance.provider,
               fmt::format("{} {}", instance.count, instance.device),
               fmt::format("{:.0f}", gigabits(instance)), dollars_an_hour(instance.price),
               dollars_an_hour(instance.spot), instance.date});
  return table.str(style);
}

std::string to_json(const std::vector<FrameworkEntry>& frameworks) {
  std::vector<std::string> items;
  for (const FrameworkEntry& entry : frameworks)
    items.push_back(JsonObject()
                        .text("name", entry.framework.name)
                        .json("aliases", texts(entry.aliases))
                        .text("what", entry.what)
                        .text("runs_on", entry.framework.target)
                        .text("like", entry.like)
                        .str());
  return json_lines(items);
}

std::string as_text(const std::vector<FrameworkEntry>& frameworks, const Style& style) {
  Table table({{"framework", Align::left},
               {"what it is", Align::left},
               {"plans of", Align::left, 1},
               {"also called", Align::left}});
  for (const FrameworkEntry& entry : frameworks)
    table.row({entry.framework.name, entry.what, entry.framework.target,
               fmt::format("{}", fmt::join(entry.aliases, ", "))});
  return table.str(style);
}

}  // namespace plait
