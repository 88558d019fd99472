#include "io/profile/import_amp.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>

#include "base/error.h"
#include "io/cluster/catalogue.h"
#include "io/format/npy.h"

namespace plait {
namespace {

// The instances that AMP's experiments ran on: g4dn.12xlarge and p3.8xlarge.
constexpr std::array kAmpDevices{ListedDevice{"G4", "T4"}, ListedDevice{"P3", "V100-16GB"}};

// Embedding and a transposition; transposition, final norm, language-model head and a cast.
constexpr ListLayout kAmpLists{.before = 2, .after = 4};

struct ListName {
  std::string model;
  std::string device_type;
  int tensor = 1;
};

// "gpt2_G4_2.npy" -> gpt2, T4, 2
std::optional<ListName> parse_name(std::string_view name, std::span<const ListedDevice> devices) {
  constexpr std::string_view ending = ".npy";
  if (!name.ends_with(ending)) return std::nullopt;
  name.remove_suffix(ending.size());
  const std::size_t last = name.rfind('_');
  if (last == name.npos || last == 0) return std::nullopt;
  const std::size_t before = name.rfind('_', last - 1);
  if (before == name.npos) return std::nullopt;
  ListName parsed;
  const std::string_view number = name.substr(last + 1);
  const auto [stop, fault] =
      std::from_chars(number.data(), number.data() + number.size(), parsed.tensor);
  if (fault != std::errc() || stop != number.data() + number.size() || parsed.tensor < 1 ||
      parsed.tensor > 1'000'000)
    return std::nullopt;
  const std::string_view code = name.substr(before + 1, last - before - 1);
  const auto device = std::ranges::find(devices, code, &ListedDevice::code);
  if (device == devices.end()) return std::nullopt;
  parsed.device_type = device->type;
  parsed.model = name.substr(0, before);
  return parsed;
}

bool recognises_amp(const ProfilePath& files) { return has_listed_devices(files, kAmpDevices); }

LoadedProfile read_amp(const ProfilePath& files, const Model& model) {
  return read_forward_lists(files, model, kAmpDevices, kAmpLists);
}

// Both AMP and FASOP wait for the device before and after every layer.
LayerList read_list(const std::string& path, const ListName& name) {
  LayerList list{.where = path,
                 .device_type = name.device_type,
                 .tensor = name.tensor,
                 .micro_batch = 1,
                 .entries = {}};
  for (const double seconds : read_npy_file(path)) {
    if (seconds < 0)
      throw InputError(
          path, fmt::format("value {} is a negative time, {}", list.entries.size(), seconds));
    ComputeSample sample;
    sample.forward = Seconds(seconds);
    sample.communication_inside = true;
    sample.synchronised = true;
    list.entries.push_back(sample);
  }
  if (list.entries.empty()) throw InputError(path, "is empty");
  return list;
}

}  // namespace

bool has_listed_devices(const ProfilePath& files, std::span<const ListedDevice> devices) {
  return std::ranges::any_of(
      files.names, [&](const auto& name) { return parse_name(name, devices).has_value(); });
}

LoadedProfile read_forward_lists(const ProfilePath& files, const Model& model,
                                 std::span<const ListedDevice> devices, ListLayout layout) {
  std::map<std::string, std::vector<std::pair<std::string, ListName>>> by_model;
  for (const std::string& file : files.names)
    if (const auto name = parse_name(file, devices))
      by_model[name->model].emplace_back(files.path(file), *name);
  if (by_model.empty()) {
    std::vector<std::string_view> codes;
    for (const ListedDevice& device : devices) codes.push_back(device.code);
    throw InputError(files.directory, fmt::format("has no file named like gpt2_{}_1.npy (the "
                                                  "devices are {})",
                                                  codes.front(), fmt::join(codes, ", ")));
  }
  auto chosen = by_model.begin();
  if (by_model.size() > 1) {
    // The longest name that the model's begins with: "gpt2" for "GPT2-350M".
    chosen = by_model.end();
    for (auto it = by_model.begin(); it != by_model.end(); ++it)
      if (plain_name(model.name).starts_with(plain_name(it->first)) &&
          (chosen == by_model.end() || it->first.size() > chosen->first.size()))
        chosen = it;
    std::vector<std::string> names;
    for (const auto& entry : by_model) names.push_back(entry.first);
    if (chosen == by_model.end())
      throw InputError(files.directory,
                       fmt::format("has profiles of {}; name one: {}/{}", fmt::join(names, ", "),
                                   files.directory, names.front()));
  }
  std::vector<LayerList> lists;
  for (const auto& [path, name] : chosen->second) lists.push_back(read_list(path, name));
  MappedLists mapped = map_lists(lists, model, layout);
  return {std::move(mapped.profile), std::move(mapped.notes)};
}

const Importer kAmpImporter{"amp", "AMP's MODEL_G4_TP.npy and MODEL_P3_TP.npy", recognises_amp,
                            read_amp};

}  // namespace plait
