#include "io/profile/import_aceso.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "io/cluster/catalogue.h"
#include "io/profile/aceso_mapping.h"
#include "io/profile/import_profile.h"

namespace plait {
namespace {

constexpr const char* kDevice = "V100";  // what Aceso's databases were measured on

// The unit of the model that an op is a part of.
std::string kind_of(const std::string& op, bool has_encoder) {
  if (op == "encoder-embedding") return "embedding";
  if (op == "enc-final-layernorm" || op == "decoder-embedding") return "decoder_embedding";
  if (op.find("final-layernorm") != op.npos || op.find("post-process") != op.npos) return "head";
  if (op.starts_with("enc-")) return has_encoder ? "encoder" : "decoder";
  if (op.starts_with("dec-")) return "decoder";
  return resnet_layer(op);
}

void add(ComputeSample& sum, const ComputeSample& part) {
  if (part.out_of_memory || sum.out_of_memory) {
    sum = {.out_of_memory = true};
    return;
  }
  const bool first = !sum.forward;
  sum.forward = sum.forward.value_or(Seconds(0)) + *part.forward;
  sum.backward = sum.backward.value_or(Seconds(0)) + *part.backward;
  sum.communication_inside = true;
  sum.saved_activations = sum.saved_activations.value_or(Bytes(0)) + *part.saved_activations;
  if (first) sum.input = part.input;
  sum.workspace = std::max(sum.workspace.value_or(Bytes(0)), *part.workspace);
}

// Whether it has layers of that kind, or, taken apart, their ops.
bool has_layer(const Model& model, const std::string& name) {
  return std::ranges::any_of(model.kinds, [&](const LayerKind& kind) {
    return kind.name == name || kind.name.starts_with(name + ".");
  });
}

// Ops of one layer of each kind that the model has, in order.
std::vector<std::string> ops_of_model(const AcesoTable& table, const Model& model) {
  const std::string family = aceso_family(table.name);
  if (family != "resnet") return aceso_op_list(family, {1});
  std::vector<int> blocks;
  for (int stage = 1; has_layer(model, fmt::format("stage{}_first", stage)); ++stage)
    blocks.push_back(has_layer(model, fmt::format("stage{}", stage)) ? 2 : 1);
  if (blocks.empty())
    throw InputError(table.name, fmt::format("is a ResNet, which {} is not", model.name));
  return aceso_op_list(family, blocks);
}

// The first unit of a model whose units are ops that an op is a part of, or "": those that are
// inside it as well are measured with it.
std::string unit_of(const std::string& op, const Model& model, const std::string& family) {
  const auto unit = std::ranges::find_if(
      model.kinds, [&](const LayerKind& kind) { return is_unit_of(family, op, kind); });
  return unit == model.kinds.end() ? "" : unit->name;
}

bool is_op_by_op(const Model& model, const std::string& family) {
  return !unit_of(family == "resnet" ? "conv1" : "enc-attention-qkv", model, family).empty();
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

// The product whose weights tell sizes of a family apart.
struct SizedOp {
  std::string aceso;
  std::string layer;  // "" = any
  std::string op;
  double bytes;  // of a weight in the table
};

SizedOp sized_op(const std::string& family) {
  if (family == "resnet") return {"block-0-0-conv2", "stage1_first", "conv2", 4};
  return {"enc-attention-qkv", "", "attention.qkv", 2};
}

// How many times as many weights the table's has as the model's; nothing where one has none.
std::optional<double> weights_ratio(const AcesoTable& table, const Model& model) {
  const SizedOp sized = sized_op(aceso_family(table.name));
  double own = 0;
  for (const LayerKind& kind : model.kinds)
    for (const Op& op : kind.ops)
      if (op.name == sized.op && kind.name.starts_with(sized.layer))
        own = std::max(own, op.parameters);
  for (const auto& [point, rows] : table.points) {
    const auto row = rows.find(sized.aceso);
    if (point.tensor == 1 && row != rows.end() && own > 0)
      return row->second.weights.value / sized.bytes / own;
  }
  return std::nullopt;
}

double distance(const AcesoTable& table, const Model& model) {
  const std::optional<double> ratio = weights_ratio(table, model);
  return ratio && *ratio > 0 ? std::abs(std::log(*ratio)) : HUGE_VAL;
}

constexpr double kSameSize = 0.05;

// Of several models in one directory, that of the same family and size.
AcesoTable table_of(const ProfilePath& files, const Model& model) {
  const std::string family = has_layer(model, "stage1_first") ? "resnet"
                             : has_layer(model, "encoder")    ? "t5"
                                                              : "gpt";
  const std::set<std::string> models = aceso_tables_in(files);
  if (models.size() < 2) return read_aceso_ops(files);
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

bool recognises_aceso(const ProfilePath& files) { return !aceso_tables_in(files).empty(); }

LoadedProfile read_aceso(const ProfilePath& files, const Model& model) {
  const AcesoTable table = table_of(files, model);
  const std::string family = aceso_family(table.name);
  const DeviceType device = find_device(builtin_catalogue(), kDevice, files.directory).type;
  const bool by_unit = is_op_by_op(model, family);
  const std::vector<std::string> ops = ops_of_model(table, model);
  Profile by_op;
  add_aceso_ops(table, ops, device, by_op);
  const bool has_encoder = has_layer(model, "encoder");
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
  if (distance(table, model) >= kSameSize)
    if (const auto ratio = weights_ratio(table, model))
      loaded.warnings.push_back(
          fmt::format("{} is not of the size of {}: its '{}' has {:.3g} times the weights",
                      table.name, model.name, sized_op(family).aceso, *ratio));
  loaded.warnings.push_back(fmt::format(
      "{}: measured on {}; the accumulation of gradients is not in the database and was added",
      table.name, kDevice));
  return loaded;
}

}  // namespace

const Importer kAcesoImporter{"aceso", "Aceso's MODEL_mbsM_tpT_algoA.csv", recognises_aceso,
                              read_aceso};

}  // namespace plait
