#include "io/profile/import_metis.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <set>
#include <utility>

#include "base/error.h"
#include "io/format/unit_factors.h"
#include "io/profile/import_profile.h"
#include "io/profile/layer_lists.h"

namespace plait {
namespace {

constexpr int kMostMetisLayers = 100'000;
constexpr int kMostMetisDegree = 1'000'000;

// Takes `word` and the number after it off `text`.
bool take_first_number(std::string_view& text, std::string_view word, int& into) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  const auto [stop, fault] = std::from_chars(text.data(), text.data() + text.size(), into);
  if (fault != std::errc() || into < 1 || into > kMostMetisDegree) return false;
  text.remove_prefix(stop - text.data());
  return true;
}

Seconds milliseconds(const JsonValue& value) { return Seconds(value.at_least(0) * kMillisecond); }

Seconds milliseconds_or_none(const JsonValue& object, std::string_view key) {
  const auto value = object.find(key);
  return value ? milliseconds(*value) : Seconds(0);
}

// A list with an entry for each of `layers` layers.
std::vector<JsonValue> list_of(const JsonValue& value, std::size_t layers) {
  std::vector<JsonValue> items = value.items();
  if (items.size() != layers)
    throw InputError(value.where(), fmt::format("has {} entries, but layer_compute_total_ms has {}",
                                                items.size(), layers));
  return items;
}

// One list for the mapping: the unexplained time belongs to the last layer, the batch generator's
// to the first, the optimizer's to all by their parameters.
LayerList as_list(const MetisFile& file, const std::string& where) {
  LayerList list{.where = where,
                 .device_type = file.device_type,
                 .tensor = file.tensor,
                 .micro_batch = file.micro_batch,
                 .entries = {}};
  const std::size_t layers = file.layers.size();
  const double all = std::accumulate(file.parameters.begin(), file.parameters.end(), 0.0);
  for (std::size_t i = 0; i < layers; ++i) {
    ComputeSample sample;
    sample.both = file.layers[i];
    sample.communication_inside = true;
    if (!file.memory.empty()) sample.memory = file.memory[i];
    if (file.optimizer > Seconds(0) && all > 0)
      sample.optimizer = file.optimizer * (file.parameters[i] / all);
    list.entries.push_back(sample);
  }
  *list.entries.front().both += file.batch_generator;
  *list.entries.back().both += file.unexplained();
  return list;
}

bool recognises_metis(const ProfilePath& files) {
  MetisFile ignored;
  return std::ranges::any_of(files.names,
                             [&](const auto& name) { return parse_metis_name(name, ignored); });
}

// A sentence when the profile's layers are not of the size of the model's.
std::string size_warning(const MetisFile& file, const Model& model, const std::string& path) {
  if (file.parameters.size() < 3) return "";
  const double measured = file.parameters[file.parameters.size() / 2];
  const double own = model.unit(model.unit_count() / 2).parameters();
  for (const double width : {1.0, 2.0, 4.0})  // elements, or bytes of 16 or 32 bits
    if (std::abs(measured / width / own - 1) < 0.1) return "";
  return fmt::format(
      "{}: a layer there has {:.0f} parameters and one of {} has {:.0f}; is it a profile of this "
      "model?",
      path, measured, model.name, own);
}

LoadedProfile read_metis(const ProfilePath& files, const Model& model) {
  std::vector<LayerList> lists;
  LoadedProfile loaded;
  for (const std::string& name : files.names) {
    MetisFile named;
    if (!parse_metis_name(name, named)) continue;
    const std::string path = files.path(name);
    const MetisFile file = read_metis_file(named, read_json_file(path));
    if (lists.empty())
      if (std::string warning = size_warning(file, model, path); !warning.empty())
        loaded.warnings.push_back(std::move(warning));
    lists.push_back(as_list(file, path));
  }
  if (lists.empty())
    throw InputError(files.directory, "has no file named like DeviceType.A100_tp1_bs1.json");
  MappedLists mapped = map_lists(lists, model, {.before = 1, .after = 1});
  loaded.profile = std::move(mapped.profile);
  loaded.warnings.insert(loaded.warnings.end(), mapped.notes.begin(), mapped.notes.end());
  return loaded;
}

MetisTable::Point as_point(const MetisFile& file, const Model& model, const std::string& path) {
  if (static_cast<int>(file.layers.size()) != model.unit_count())
    throw InputError(path, fmt::format("has {} layers and {} has {} units, embedding and head "
                                       "included: Metis' formula needs as many",
                                       file.layers.size(), model.name, model.unit_count()));
  if (file.memory.empty())
    throw InputError(path, "has no layer_memory_total_mb, which Metis' formula needs");
  Seconds sync = file.forward_backward;
  for (const Seconds layer : file.layers) sync -= layer;
  return {file.layers, file.memory, sync};
}

void refuse_unmeasured(const std::string& path, const Problem& problem, const MetisTable& table) {
  for (std::size_t type = 0; type < table.points.size(); ++type)
    if (table.points[type].empty()) {
      const std::string& name = problem.cluster.device_types[type].name;
      throw InputError(path, fmt::format("has no measurement of {} within the limits, such as "
                                         "DeviceType.{}_tp1_bs1.json",
                                         name, name.substr(0, name.find('-'))));
    }
}

}  // namespace

bool is_metis_profile(const std::string& path) {
  std::error_code fault;
  return std::filesystem::is_directory(path, fault) && recognises_metis(find_profile_files(path));
}

MetisTable load_metis_table(const std::string& path, const Problem& problem,
                            const MetisLimits& limits) {
  const ProfilePath files = find_profile_files(path);
  std::set<std::string> measured;
  for (const std::string& name : files.names)
    if (MetisFile named; parse_metis_name(name, named)) measured.insert(named.device_type);
  MetisTable table;
  table.points.resize(problem.cluster.device_types.size());
  bool first = true;
  for (const std::string& name : files.names) {
    MetisFile named;
    if (!parse_metis_name(name, named)) continue;
    const MetisFile file = read_metis_file(named, read_json_file(files.path(name)));
    MetisTable::Point point = as_point(file, problem.model, files.path(name));
    if (std::exchange(first, false)) {
      table.optimizer = file.optimizer;
      table.batch_generator = file.batch_generator;
      table.parameters = file.parameters;
    }
    if (limits.max_tensor > 0 && file.tensor > limits.max_tensor) continue;
    if (limits.max_samples > 0 && file.micro_batch > limits.max_samples) continue;
    for (std::size_t type = 0; type < table.points.size(); ++type)
      if (measured_name(measured, problem.cluster.device_types[type].name) == file.device_type)
        table.points[type][{file.tensor, file.micro_batch}] = point;
  }
  if (table.parameters.empty())
    for (const int kind : problem.model.units)
      table.parameters.push_back(problem.model.kinds[kind].parameters());
  refuse_unmeasured(path, problem, table);
  return table;
}

Seconds MetisFile::unexplained() const {
  Seconds sum;
  for (const Seconds layer : layers) sum += layer;
  return std::max(Seconds(0), forward_backward - sum);
}

bool parse_metis_name(const std::string& name, MetisFile& into) {
  std::string_view text = name;
  const std::string_view front = "DeviceType.";
  if (!text.starts_with(front)) return false;
  text.remove_prefix(front.size());
  const std::size_t end = text.rfind("_tp");
  if (end == text.npos || end == 0) return false;
  into.device_type = text.substr(0, end);
  text.remove_prefix(end);
  return take_first_number(text, "_tp", into.tensor) &&
         take_first_number(text, "_bs", into.micro_batch) && text == ".json";
}

MetisFile read_metis_file(const MetisFile& named, const JsonValue& root) {
  MetisFile file = named;
  const JsonValue times = root.at("execution_time");
  const JsonValue layers = times.at("layer_compute_total_ms");
  for (const JsonValue& layer : layers.items()) file.layers.push_back(milliseconds(layer));
  if (file.layers.empty() || file.layers.size() > kMostMetisLayers)
    throw InputError(layers.where(),
                     fmt::format("must have from 1 to {} layers", kMostMetisLayers));
  if (const auto whole = times.find("forward_backward_time_ms")) {
    file.forward_backward = milliseconds(*whole);
  } else {
    for (const Seconds layer : file.layers) file.forward_backward += layer;
  }
  file.optimizer = milliseconds_or_none(times, "optimizer_time_ms");
  file.batch_generator = milliseconds_or_none(times, "batch_generator_time_ms");
  if (const auto memory = root.find("execution_memory"))
    if (const auto list = memory->find("layer_memory_total_mb"))
      for (const JsonValue& layer : list_of(*list, file.layers.size()))
        file.memory.emplace_back(layer.at_least(0) * 0x1p20);
  if (const auto model = root.find("model"))
    if (const auto parameters = model->find("parameters"))
      if (const auto list = parameters->find("parameters_per_layer_bytes"))
        for (const JsonValue& layer : list_of(*list, file.layers.size()))
          file.parameters.push_back(layer.at_least(0));
  return file;
}

const Importer kMetisImporter{"metis", "Metis' DeviceType.X_tpT_bsB.json", recognises_metis,
                              read_metis};

}  // namespace plait
