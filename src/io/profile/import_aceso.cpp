#include "io/profile/import_aceso.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include "base/error.h"
#include "io/cluster/catalogue.h"
#include "io/format/checked_number.h"
#include "io/format/csv.h"
#include "io/format/json_reader.h"
#include "io/format/unit_factors.h"
#include "io/profile/aceso_mapping.h"
#include "io/profile/import_profile.h"

namespace plait {
namespace {

constexpr double kDidNotFit = 1e7;       // in every measured column
constexpr double kNotMeasured = 1e8;     // milliseconds: collectives over the size limit have 1e9
constexpr const char* kDevice = "V100";  // what Aceso's databases were measured on
constexpr int kMostDegree = 1'000'000;

struct OpFile {
  std::string model;
  AcesoPoint point;
};

// Takes `word` and the number after it off the end of `text`.
bool take_last_number(std::string_view& text, std::string_view word, int& into) {
  const std::size_t at = text.rfind(word);
  if (at == text.npos) return false;
  const std::string_view digits = text.substr(at + word.size());
  const auto [stop, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), into);
  if (fault != std::errc() || stop != digits.data() + digits.size() || into < 0 ||
      into > kMostDegree)
    return false;
  text = text.substr(0, at);
  return true;
}

// "gpt_1_3B_mbs1_tp2_algo0.csv"
std::optional<OpFile> parse_op_file(std::string_view name) {
  if (!name.ends_with(".csv")) return std::nullopt;
  name.remove_suffix(4);
  OpFile file;
  if (!take_last_number(name, "_algo", file.point.algorithm) ||
      !take_last_number(name, "_tp", file.point.tensor) ||
      !take_last_number(name, "_mbs", file.point.micro_batch))
    return std::nullopt;
  if (name.empty() || file.point.tensor < 1 || file.point.micro_batch < 1) return std::nullopt;
  file.model = name;
  return file;
}

double number(const CsvTable& table, const CsvTable::Row& row, std::string_view column) {
  const std::string_view text = table.cell(row, column);
  const std::optional<double> value = checked_number(text);
  if (!value || *value < 0)
    throw InputError(
        table.where(row),
        fmt::format("{} must be 0 or a number from {} to {}, is '{}'", column, kSmallestQuantity,
                    kLargestQuantity, std::string(text.substr(0, 40))));
  return *value;
}

std::map<std::string, AcesoOp> read_op_file(const std::string& path) {
  const CsvTable table = parse_csv(path, read_text_file(path));
  for (const char* column :
       {"op_name", "forward-compute", "backward-compute", "input_size", "output_size", "weights",
        "activations", "fwd_reserved", "bwd_reserved"})
    if (!table.has(column))
      throw InputError(path, fmt::format("has no column '{}'; is it a table of ops?", column));
  std::map<std::string, AcesoOp> ops;
  for (const CsvTable::Row& row : table.rows) {
    const auto column = [&](const char* name) { return number(table, row, name); };
    if (column("forward-compute") >= kDidNotFit)
      throw InputError(table.where(row), "did not fit into memory when it was measured");
    AcesoOp op{.forward = Seconds(column("forward-compute") * kMicrosecond),
               .backward = Seconds(column("backward-compute") * kMicrosecond),
               .input = Bytes(column("input_size") * kMebibyte),
               .output = Bytes(column("output_size") * kMebibyte),
               .weights = Bytes(column("weights") * kMebibyte),
               .activations = Bytes(column("activations") * kMebibyte),
               .forward_reserved = Bytes(column("fwd_reserved") * kMebibyte),
               .backward_reserved = Bytes(column("bwd_reserved") * kMebibyte)};
    if (!ops.emplace(std::string(table.cell(row, "op_name")), op).second)
      throw InputError(table.where(row), "the same op is there twice");
  }
  if (ops.empty()) throw InputError(path, "has no op");
  return ops;
}

// Sizes of all-gathers and all-to-alls are those of one member's part; the profile has the whole
// tensor of an all-gather.
struct Collective {
  std::string_view word;
  const char* name;
  bool size_is_part;
};
constexpr Collective kCollectives[] = {{"_all_gather", "all_gather", true},
                                       {"_all_reduce", "all_reduce", false},
                                       {"_reduce_scatter", "reduce_scatter", false},
                                       {"_all_to_all", "all_to_all", false}};

using Curves = std::map<CollectiveKey, std::map<double, std::vector<double>>>;  // seconds by bytes

// "prim_gpt_1_3B_all_gather_2gpus.csv"
void read_collective(const ProfilePath& files, std::string_view name,
                     const std::string& device_type, Curves& curves) {
  const std::string path = files.path(std::string(name));
  if (!name.starts_with("prim_") || !name.ends_with("gpus.csv")) return;
  name.remove_suffix(8);
  int members = 0;
  if (!take_last_number(name, "_", members) || members < 2) return;
  for (const Collective& collective : kCollectives) {
    if (!name.ends_with(collective.word)) continue;
    const CsvTable table = parse_csv(path, read_text_file(path));
    for (const char* column : {"data_size(MB)", "time(ms)"})
      if (!table.has(column)) throw InputError(path, fmt::format("has no column '{}'", column));
    auto& curve = curves[{.collective = collective.name,
                          .device_type = device_type,
                          .nodes = 1,
                          .devices_per_node = members}];
    for (const CsvTable::Row& row : table.rows) {
      const double size = number(table, row, "data_size(MB)") * kMebibyte;
      const double time = number(table, row, "time(ms)");
      if (time < kNotMeasured)
        curve[collective.size_is_part ? size * members : size].push_back(time * 1e-3);
    }
  }
}

// Two lines: sizes in MB, and GB/s of a message of each.
void read_sends(const std::string& path, CollectiveKey key, Profile& profile) {
  const CsvTable table = parse_csv(path, read_text_file(path));
  if (table.rows.size() != 1) throw InputError(path, "must have two lines: sizes in MB, and GB/s");
  std::vector<CollectivePoint> points;
  for (const std::string& size : table.header) {
    const double mebibytes = checked_number(size).value_or(-1);
    const double rate = number(table, table.rows[0], size);
    if (!(mebibytes > 0) || !(rate > 0) || mebibytes > 1e9)
      throw InputError(path, fmt::format("must have sizes and rates above 0, has '{}' and {}",
                                         size.substr(0, 40), rate));
    const Bytes bytes(mebibytes * kMebibyte);
    if (!points.empty() && bytes <= points.back().size) throw InputError(path, "sizes must ascend");
    points.push_back({.size = bytes, .time = bytes / BytesPerSecond(rate * 1e9)});
  }
  profile.collectives.emplace(std::move(key), std::move(points));
}

bool recognises_aceso(const ProfilePath& files) {
  return std::ranges::any_of(files.names,
                             [](const auto& name) { return parse_op_file(name).has_value(); });
}

// The unit of the model that an op is a part of.
std::string kind_of(const std::string& op, bool has_encoder) {
  if (op == "encoder-embedding") return "embedding";
  if (op == "enc-final-layernorm" || op == "decoder-embedding") return "decoder_embedding";
  if (op.find("final-layernorm") != op.npos || op.find("post-process") != op.npos ||
      op == "avgpool" || op == "fc")
    return "head";
  if (op.starts_with("enc-")) return has_encoder ? "encoder" : "decoder";
  if (op.starts_with("dec-")) return "decoder";
  if (!op.starts_with("block-")) return "stem";
  const int stage = op[6] - '0' + 1;
  return fmt::format("stage{}{}", stage, op[8] == '0' && op[9] == '-' ? "_first" : "");
}

void add(ComputeSample& sum, const ComputeSample& part) {
  const bool first = !sum.forward;
  sum.forward = sum.forward.value_or(Seconds(0)) + *part.forward;
  sum.backward = sum.backward.value_or(Seconds(0)) + *part.backward;
  sum.communication_inside = true;
  sum.saved_activations = sum.saved_activations.value_or(Bytes(0)) + *part.saved_activations;
  if (first) sum.input = part.input;
  sum.workspace = std::max(sum.workspace.value_or(Bytes(0)), *part.workspace);
}

// Ops of one layer of each kind that the model has, in order.
std::vector<std::string> ops_of_model(const AcesoTable& table, const Model& model) {
  const auto has = [&](std::string_view name) {
    return std::ranges::any_of(model.kinds, [&](const LayerKind& k) { return k.name == name; });
  };
  const std::string family = table.name.substr(0, table.name.find('_'));
  if (family != "resnet") return aceso_op_list(family, {1});
  std::vector<int> blocks;
  for (int stage = 1; has(fmt::format("stage{}_first", stage)); ++stage)
    blocks.push_back(has(fmt::format("stage{}", stage)) ? 2 : 1);
  if (blocks.empty())
    throw InputError(table.name, fmt::format("is a ResNet, which {} is not", model.name));
  return aceso_op_list(family, blocks);
}

// The unit of a model whose units are ops: "decoder.attention.core" for the third op of "decoder"
// and several of Aceso's. "" where the op is a part of one that has its sample already.
std::string unit_of(const std::string& op, const Model& model, const std::string& family) {
  for (const AcesoMapping& mapping : aceso_mappings(family)) {
    if (mapping.aceso != op) continue;
    for (const LayerKind& kind : model.kinds)
      if (kind.name.starts_with(std::string(mapping.kind) + ".") && kind.ops.size() == 1 &&
          matches(mapping, kind.ops[0]))
        return kind.name;
  }
  return "";
}

bool is_op_by_op(const Model& model, const std::string& family) {
  return !unit_of("enc-attention-qkv", model, family).empty();
}

// Ops that are inside one of Aceso's with other ops: measured with that one, and nothing by
// themselves.
void add_empty_units(const Model& model, std::map<std::string, ComputeSample>& kinds) {
  for (const LayerKind& kind : model.kinds)
    if (!kinds.contains(kind.name)) {
      ComputeSample& sample = kinds[kind.name];
      sample.forward = sample.backward = Seconds(0);
      sample.saved_activations = sample.input = sample.workspace = Bytes(0);
      sample.communication_inside = true;
    }
}

// How far the weights of the table's query, key and value product are from the model's.
double distance(const AcesoTable& table, const Model& model) {
  double wanted = 0;
  for (const LayerKind& kind : model.kinds)
    for (const Op& op : kind.ops)
      if (op.name == "attention.qkv") wanted = std::max(wanted, op.parameters);
  for (const auto& [point, rows] : table.points) {
    const auto row = rows.find("enc-attention-qkv");
    if (point.tensor != 1 || row == rows.end() || wanted <= 0) continue;
    return std::abs(std::log(row->second.weights.value / 2 / wanted));
  }
  return HUGE_VAL;
}

// Of several models in one directory, that of the same family and size.
AcesoTable table_of(const ProfilePath& files, const Model& model) {
  constexpr double kSameSize = 0.05;
  const auto has = [&](std::string_view name) {
    return std::ranges::any_of(model.kinds,
                               [&](const LayerKind& k) { return k.name.starts_with(name); });
  };
  const std::string family = has("stage1_first") ? "resnet" : has("encoder") ? "t5" : "gpt";
  std::set<std::string> models;
  for (const std::string& name : files.names)
    if (const auto file = parse_op_file(name)) models.insert(file->model);
  if (models.size() < 2 || family == "resnet") return read_aceso_ops(files);
  AcesoTable best;
  double nearest = kSameSize;
  for (const std::string& name : models) {
    if (aceso_family(name) != family) continue;
    AcesoTable table = read_aceso_ops(files, name);
    const double away = distance(table, model);
    if (away >= nearest) continue;
    nearest = away;
    best = std::move(table);
  }
  return best.points.empty() ? read_aceso_ops(files) : best;
}

LoadedProfile read_aceso(const ProfilePath& files, const Model& model) {
  const AcesoTable table = table_of(files, model);
  const std::string family = aceso_family(table.name);
  const DeviceType device = find_device(builtin_catalogue(), kDevice, files.directory).type;
  const bool by_unit = is_op_by_op(model, family);
  const std::vector<std::string> ops = ops_of_model(table, model);
  Profile by_op;
  add_aceso_ops(table, ops, device, by_op);
  const bool has_encoder =
      std::ranges::any_of(model.kinds, [](const LayerKind& k) { return k.name == "encoder"; });
  LoadedProfile loaded;
  for (const auto& [point, rows] : table.points) {
    if (point.algorithm != 0) continue;  // layers are cut in the usual way
    std::map<std::string, ComputeSample> kinds;
    for (const std::string& op : ops) {
      const ComputeKey key{.unit = op,
                           .device_type = device.name,
                           .tensor = point.tensor,
                           .micro_batch = point.micro_batch};
      const std::string kind = by_unit ? unit_of(op, model, family) : kind_of(op, has_encoder);
      if (!kind.empty()) add(kinds[kind], by_op.compute.at(key));
    }
    if (by_unit) add_empty_units(model, kinds);
    for (const auto& [kind, sample] : kinds)
      loaded.profile.compute[{.unit = kind,
                              .device_type = kDevice,
                              .tensor = point.tensor,
                              .micro_batch = point.micro_batch}] = sample;
  }
  read_aceso_links(files, kDevice, loaded.profile);
  loaded.warnings.push_back(fmt::format(
      "{}: measured on {}; the accumulation of gradients is not in the database and was added",
      table.name, kDevice));
  return loaded;
}

}  // namespace

AcesoTable read_aceso_ops(const ProfilePath& files, const std::string& wanted) {
  std::set<std::string> models;
  for (const std::string& name : files.names)
    if (const auto file = parse_op_file(name)) models.insert(file->model);
  if (models.empty())
    throw InputError(files.directory, "has no file named like gpt_1_3B_mbs1_tp1_algo0.csv");
  if (!wanted.empty() && !models.contains(wanted))
    throw InputError(files.directory, fmt::format("has no ops of {}; it has those of {}", wanted,
                                                  fmt::join(models, ", ")));
  if (wanted.empty() && models.size() > 1)
    throw InputError(files.directory,
                     fmt::format("has ops of {}; name one: {}/{}_mbs", fmt::join(models, ", "),
                                 files.directory, *models.begin()));
  AcesoTable table;
  table.name = wanted.empty() ? *models.begin() : wanted;
  for (const std::string& name : files.names) {
    const auto file = parse_op_file(name);
    if (file && file->model == table.name)
      table.points.emplace(file->point, read_op_file(files.path(name)));
  }
  return table;
}

void read_aceso_links(const ProfilePath& files, const std::string& device_type, Profile& profile) {
  const ProfilePath all = find_profile_files(files.directory.empty() ? "." : files.directory);
  Curves curves;
  for (const std::string& name : all.names) {
    read_collective(all, name, device_type, curves);
    if (name == "p2p_intra_node.csv" || name == "p2p_inter_node.csv")
      read_sends(all.path(name),
                 {.collective = "send",
                  .device_type = device_type,
                  .nodes = name == "p2p_intra_node.csv" ? 1 : 2,
                  .devices_per_node = 1},
                 profile);
  }
  for (const auto& [key, curve] : curves) {
    std::vector<CollectivePoint> points;
    for (const auto& [size, times] : curve) {
      double sum = 0;
      for (const double time : times) sum += time;
      points.push_back(
          {.size = Bytes(size), .time = Seconds(sum / static_cast<double>(times.size()))});
    }
    if (!points.empty()) profile.collectives.emplace(key, std::move(points));
  }
}

namespace {

std::vector<double> read_rates(const std::string& path) {
  Profile profile;
  read_sends(path, {.collective = "send"}, profile);  // says what is wrong with it
  const CsvTable table = parse_csv(path, read_text_file(path));
  std::vector<double> rates;
  for (const std::string& size : table.header) rates.push_back(number(table, table.rows[0], size));
  return rates;
}

}  // namespace

AcesoTable read_aceso_tables(const ProfilePath& files, const std::string& wanted) {
  AcesoTable table = read_aceso_ops(files, wanted);
  const ProfilePath all = find_profile_files(files.directory.empty() ? "." : files.directory);
  for (const std::string& name : all.names) {
    if (name == "p2p_intra_node.csv") table.intra_node = read_rates(all.path(name));
    if (name == "p2p_inter_node.csv") table.inter_node = read_rates(all.path(name));
    for (const Collective& collective : kCollectives) {
      std::string_view rest = name;
      const std::string prefix = fmt::format("prim_{}{}_", table.name, collective.word);
      int members = 0;
      if (!rest.starts_with(prefix) || !rest.ends_with("gpus.csv")) continue;
      rest.remove_suffix(8);
      if (!take_last_number(rest, "_", members) || members < 2) continue;
      const CsvTable csv = parse_csv(all.path(name), read_text_file(all.path(name)));
      for (const char* column : {"data_size(MB)", "time(ms)"})
        if (!csv.has(column))
          throw InputError(all.path(name), fmt::format("has no column '{}'", column));
      auto& times = table.collectives[{collective.name, members}];
      for (const CsvTable::Row& row : csv.rows)
        times[std::llrint(number(csv, row, "data_size(MB)"))] =
            Seconds(number(csv, row, "time(ms)") * 1e-3);
    }
  }
  return table;
}

const Importer kAcesoImporter{"aceso", "Aceso's MODEL_mbsM_tpT_algoA.csv", recognises_aceso,
                              read_aceso};

}  // namespace plait
