#include "io/profile/aceso_models.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "cost/aceso_rules.h"
#include "io/format/json_reader.h"
#include "io/profile/import_aceso.h"

namespace plait {
namespace {

constexpr std::string_view kPrefix = "aceso:";
constexpr std::string_view kMeasuredFamily = "V100";
constexpr const char* kScaled = "scale-layer";
constexpr int kMostScaledLayers = 100'000;

AcesoModel gpt(const char* size, int layers, int hidden, int heads) {
  return {fmt::format("gpt_{}", size),
          "gpt",
          fmt::format("gpt_{}", size),
          {layers},
          {{"seq_length", 2048},
           {"max_position_embeddings", 2048},
           {"num_attention_heads", heads},
           {"hidden_size", hidden}}};
}

AcesoModel t5(const char* size, const char* table, int layers, int inner, int heads, int channels) {
  return {fmt::format("t5_{}", size),
          "t5",
          fmt::format("t5_{}", table),
          {layers},
          {{"encoder_seq_length", 2048},
           {"decoder_seq_length", 512},
           {"max_position_embeddings", 2048},
           {"num_attention_heads", heads},
           {"kv_channels", channels},
           {"hidden_size", 1024},
           {"ffn_hidden_size", inner}}};
}

AcesoModel resnet(const char* size, std::vector<int> blocks, int channels, int width) {
  return {fmt::format("resnet_{}", size),
          "resnet",
          fmt::format("resnet_{}", size),
          std::move(blocks),
          {{"in_channels", channels}, {"width_factor", width}}};
}

// The settings of the published experiments (Liu et al., EuroSys 2024, and the scripts beside it).
const std::vector<AcesoModel>& models() {
  static const std::vector<AcesoModel> table = [] {
    const std::vector<int> short_net{3, 4, 6, 3};
    const std::vector<int> long_net{3, 4, 23, 3};
    std::vector<AcesoModel> all{gpt("350M", 24, 1024, 16),
                                gpt("1_3B", 24, 2048, 32),
                                gpt("2_6B", 32, 2560, 32),
                                gpt("6_7B", 32, 4096, 32),
                                gpt("13B", 40, 5120, 40),
                                t5("770M", "770M", 24, 4096, 16, 64),
                                t5("3B", "3B", 24, 16384, 32, 128),
                                t5("6B", "6B", 24, 32768, 64, 128),
                                t5("11B", "11B", 24, 65536, 128, 128),
                                t5("22B", "11B", 48, 65536, 128, 128),
                                resnet("250M", short_net, 160, 2),
                                resnet("500M", short_net, 224, 2),
                                resnet("1B", short_net, 320, 2),
                                resnet("2B", short_net, 448, 2),
                                resnet("4B", short_net, 640, 2),
                                resnet("6_8B", short_net, 320, 16),
                                resnet("13B", long_net, 320, 16)};
    AcesoModel scaled = gpt(kScaled, 0, 512, 8);
    scaled.name = kScaled;
    scaled.layers.clear();
    all.push_back(std::move(scaled));
    return all;
  }();
  return table;
}

// Weights are divided by the tensor degree.
bool is_cut(const AcesoTable& table, const std::string& name) {
  const Bytes* whole = nullptr;
  const Bytes* part = nullptr;
  for (const auto& [point, rows] : table.points) {
    const auto row = rows.find(name);
    if (row == rows.end() || row->second.weights <= Bytes(0)) continue;
    if (point.tensor == 1) whole = &row->second.weights;
    if (point.tensor == 2) part = &row->second.weights;
  }
  return whole != nullptr && part != nullptr && *part < *whole * 0.75;
}

// Decoders of T5 are what its encoders are; Aceso's own table of layouts has none of their names.
std::string as_encoder(std::string name) {
  if (!name.starts_with("dec-")) return name;
  name.replace(0, 3, "enc");
  if (name.ends_with("-1") || name.ends_with("-2"))
    if (!name.ends_with("GEMM-1") && !name.ends_with("GEMM-2")) name.resize(name.size() - 2);
  return name == "enc-3rd-layernorm" ? "enc-2nd-layernorm" : name;
}

// Products may be cut in two ways, whatever Aceso's runtime has of them. The sums over the tensor
// group are in their measured times.
int ways_of(const std::string& name) {
  for (const std::string_view word : {"qkv", "dense", "GEMM", "conv", "downsample"})
    if (name.find(word) != name.npos) return 2;
  return 1;
}

std::vector<OpCut> cuts_of_aceso(const std::string& name, bool cuts_weights) {
  const auto layout = [&](int algorithm, bool input) {
    const AcesoLayout own = aceso_layout(as_encoder(name), 2, 1, algorithm, input);
    return own.known && own.copies == 1 ? TensorLayout::by_feature : TensorLayout::whole;
  };
  std::vector<OpCut> cuts;
  for (int algorithm = 0; algorithm < ways_of(name); ++algorithm) {
    OpCut cut{Split::replicated, layout(algorithm, true), layout(algorithm, false)};
    cut.input_gradient = cut.input;
    const bool reads_parts = cut.input == TensorLayout::by_feature;
    const bool leaves_parts = cut.output == TensorLayout::by_feature;
    if (reads_parts && leaves_parts)
      cut.split = Split::shard;
    else if (reads_parts || leaves_parts)
      cut.split = reads_parts ? Split::row : Split::column;
    else if (cuts_weights)
      cut.split = algorithm == 0 ? Split::column : Split::row;
    cuts.push_back(cut);
  }
  return cuts;
}

}  // namespace

int AcesoModel::sequence() const {
  for (const auto& [key, value] : fields)
    if (key.ends_with("seq_length")) return value;
  return 1;
}

const AcesoModel* find_aceso_model(const std::string& name) {
  const std::string wanted = name == "gpt_scale-layer" ? kScaled : name;
  const auto found = std::ranges::find(models(), wanted, &AcesoModel::name);
  return found == models().end() ? nullptr : &*found;
}

std::vector<std::string> aceso_model_names() {
  std::vector<std::string> names;
  for (const AcesoModel& model : models()) names.push_back(model.name);
  return names;
}

bool is_aceso_name(const std::string& name) { return name.starts_with(kPrefix); }

AcesoModel aceso_model_named(const std::string& name, std::optional<int> layers) {
  const std::string plain = name.substr(kPrefix.size());
  const AcesoModel* known = find_aceso_model(plain);
  if (known == nullptr) {
    const std::vector<std::string> names = aceso_model_names();
    throw InputError("model " + name,
                     fmt::format("must be one of {} after 'aceso:'{}", fmt::join(names, ", "),
                                 suggestion(plain, {names.begin(), names.end()})));
  }
  AcesoModel model = *known;
  if (layers && model.is_image_model())
    throw InputError("model " + name, "has blocks, not layers; leave the number of layers out");
  if (layers && (*layers < 1 || *layers > kMostScaledLayers))
    throw InputError("model " + name,
                     fmt::format("has from 1 to {} layers, not {}", kMostScaledLayers, *layers));
  if (layers) model.layers = {*layers};
  if (model.layers.empty())
    throw InputError("model " + name, "needs a number of `layers`, for example 64");
  return model;
}

Model chain_of_ops(const AcesoTable& table, const std::vector<std::string>& ops, double bytes) {
  const auto whole =
      std::ranges::find_if(table.points, [](const auto& entry) { return entry.first.tensor == 1; });
  if (whole == table.points.end())
    throw InputError(table.name, "has no file with tp1, which sizes are taken from");
  Model model;
  model.name = table.name;
  std::map<std::string, int> kinds;
  for (const std::string& name : ops) {
    const auto [it, is_new] = kinds.emplace(name, static_cast<int>(model.kinds.size()));
    if (is_new) {
      const AcesoOp& row = whole->second.at(name);
      Op op;
      op.name = name;
      op.parameters = row.weights.value / bytes;
      op.cuts = cuts_of_aceso(name, is_cut(table, name));
      op.split = op.cuts.front().split;
      model.kinds.push_back({.name = name,
                             .ops = {op},
                             .output = row.output.value / bytes / whole->first.micro_batch,
                             .starts_layer = starts_aceso_layer(name)});
    }
    model.units.push_back(it->second);
  }
  return model;
}

void load_aceso_model(const AcesoModel& named, const std::string& database, Problem& problem,
                      std::vector<std::string>& warnings) {
  const ProfilePath files = find_profile_files(database);
  const AcesoTable table = read_aceso_ops(files, named.table);
  const std::vector<std::string> ops = aceso_op_list(named.family, named.layers);
  const auto& types = problem.cluster.device_types;
  for (const DeviceType& type : types) {
    const bool as_measured = type.name.starts_with(kMeasuredFamily);
    if (!as_measured && types.size() > 1) continue;
    if (!as_measured)
      warnings.push_back(fmt::format("{} is taken as measured on {}", table.name, type.name));
    add_aceso_ops(table, ops, type, problem.profile);
    read_aceso_links(files, type.name, problem.profile);
  }
  problem.profile.provenance.source = "aceso";
  problem.model = chain_of_ops(table, ops, named.is_image_model() ? 4 : 2);
  problem.model.name = named.name;
  problem.model.sequence_length = named.sequence();
}

}  // namespace plait
