#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "cli/terminal.h"
#include "cli/verbs.h"
#include "io/cluster/catalogue.h"
#include "io/cluster/device_json.h"
#include "io/format/json_writer.h"
#include "io/model/zoo.h"
#include "plan/names.h"
#include "report/quantities.h"
#include "report/summary.h"

namespace plait {
namespace {

struct ListArguments {
  bool json = false;
  std::vector<std::string> catalogue;
};

Flag json_flag(ListArguments& arguments) {
  return {.name = "--json", .value = "", .help = "print JSON", .set = into_switch(arguments.json)};
}

Flag catalogue_flag(ListArguments& arguments) {
  return {.name = "--catalogue",
          .value = "FILE",
          .help = "devices and instances of your own, besides those that are built in",
          .set = [&](const std::string&,
                     const std::string& text) { arguments.catalogue.push_back(text); },
          .repeats = true};
}

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

int list_models(const ListArguments& arguments) {
  Table table({{"model", Align::left},
               {"parameters"},
               {"layers"},
               {"tokens", Align::right, 1},
               {"also called", Align::left, 2}});
  std::vector<std::string> items;
  for (const ZooEntry& entry : zoo_entries()) {
    const Model model = zoo_model(entry.name, std::nullopt)->model;
    std::vector<std::string> aliases;
    for (const std::string& alias : entry.aliases) aliases.push_back(json_text(alias));
    items.push_back(JsonObject()
                        .text("name", entry.name)
                        .number("parameters", model.parameters())
                        .number("layers", layer_count(model))
                        .number("sequence_length", model.sequence_length)
                        .json("aliases", json_list(aliases))
                        .text("source", entry.source)
                        .str());
    table.row({entry.name, grouped(model.parameters()), std::to_string(layer_count(model)),
               std::to_string(model.sequence_length),
               fmt::format("{}", fmt::join(entry.aliases, ", "))});
  }
  print(arguments.json ? json_lines(items) : table.str(style_of(stdout)));
  return kDone;
}

std::string device_item(const DeviceEntry& entry) {
  const DeviceType& type = entry.type;
  JsonObject peak;
  for (int i = 0; i < kDTypes; ++i)
    if (type.supports(static_cast<DType>(i)))
      peak.number(name_of(static_cast<DType>(i)), type.peak[i].value / 1e12);
  std::vector<std::string> aliases;
  for (const std::string& alias : entry.aliases) aliases.push_back(json_text(alias));
  JsonObject item;
  item.text("name", type.name)
      .json("aliases", json_list(aliases))
      .number("memory_GiB", type.memory.value / 0x1p30)
      .number("memory_bandwidth_GBps", type.memory_bandwidth.value / 1e9)
      .json("peak_TFLOPs", peak.str())
      .text("link_kind", entry.link_kind)
      .number("link_GBps", type.intra.bandwidth.value / 1e9)
      .number("per_node", type.per_node);
  return price_member(item, "price_usd_per_hour", type.price).text("source", entry.source).str();
}

int list_devices(const ListArguments& arguments) {
  Table table({{"device", Align::left},
               {"GiB"},
               {"GB/s", Align::right, 1},
               {"bf16 TFLOP/s"},
               {"fp16"},
               {"fp8", Align::right, 4},
               {"link GB/s", Align::right, 2},
               {"per node", Align::right, 5},
               {"$/h each"}});
  std::vector<std::string> items;
  for (const DeviceEntry& entry : load_catalogue(arguments.catalogue).devices) {
    const DeviceType& type = entry.type;
    const auto peak = [&](DType dtype) {
      return type.supports(dtype)
                 ? fmt::format("{:.4g}", type.peak[static_cast<int>(dtype)].value / 1e12)
                 : "-";
    };
    items.push_back(device_item(entry));
    table.row({type.name, fmt::format("{:.0f}", type.memory.value / 0x1p30),
               fmt::format("{:.0f}", type.memory_bandwidth.value / 1e9), peak(DType::bf16),
               peak(DType::fp16), peak(DType::fp8),
               fmt::format("{:.4g} {}", type.intra.bandwidth.value / 1e9, entry.link_kind),
               std::to_string(type.per_node), dollars_an_hour(type.price)});
  }
  print(arguments.json ? json_lines(items) : table.str(style_of(stdout)));
  return kDone;
}

int list_instances(const ListArguments& arguments) {
  Table table({{"instance", Align::left},
               {"provider", Align::left, 4},
               {"devices", Align::left},
               {"network Gbit/s", Align::right, 1},
               {"$/h"},
               {"spot $/h", Align::right, 2},
               {"as of", Align::left, 3}});
  std::vector<std::string> items;
  for (const Instance& instance : load_catalogue(arguments.catalogue).instances) {
    const double gbps = instance.network.bandwidth.value * 8e-9;
    JsonObject item;
    item.text("name", instance.name)
        .text("provider", instance.provider)
        .text("device", instance.device)
        .number("count", instance.count)
        .number("network_Gbps", gbps);
    price_member(item, "price_usd_per_hour", instance.price);
    price_member(item, "spot_usd_per_hour", instance.spot);
    items.push_back(item.text("date", instance.date).text("source", instance.source).str());
    table.row({instance.name, instance.provider,
               fmt::format("{} {}", instance.count, instance.device), fmt::format("{:.0f}", gbps),
               dollars_an_hour(instance.price), dollars_an_hour(instance.spot), instance.date});
  }
  print(arguments.json ? json_lines(items) : table.str(style_of(stdout)));
  return kDone;
}

Command list_command(int (*list)(const ListArguments&), bool has_catalogue) {
  const auto arguments = std::make_shared<ListArguments>();
  Command command;
  command.groups = {{"Flags", {json_flag(*arguments)}}};
  if (has_catalogue) command.groups[0].flags.push_back(catalogue_flag(*arguments));
  command.run = [arguments, list] { return list(*arguments); };
  return command;
}

}  // namespace

Command models_command() { return list_command(list_models, false); }
Command devices_command() { return list_command(list_devices, true); }
Command instances_command() { return list_command(list_instances, true); }

}  // namespace plait
