#include "io/plan/metis_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "io/format/json_reader.h"
#include "io/format/shell_flags.h"
#include "model/transformer.h"

namespace plait {
namespace {

namespace fs = std::filesystem;

constexpr int kMostMetisLayers = 100'000;
constexpr int kMostMetisBatch = 1'000'000;
constexpr int kMostPermuteLength = 12;

// The script's name for each of the program's flags.
constexpr std::pair<const char*, const char*> kVariables[] = {
    {"model-name", "MODEL_NAME"},
    {"model-size", "MODEL_SIZE"},
    {"num-layers", "NUM_LAYERS"},
    {"gbs", "GBS"},
    {"hidden-size", "HIDDEN_SIZE"},
    {"sequence-length", "SEQUENCE_LENGTH"},
    {"vocab-size", "VOCAB_SIZE"},
    {"attention-head-size", "ATTENTION_HEAD_SIZE"},
    {"hostfile-path", "HOST_FILE_PATH"},
    {"clusterfile-path", "CLUSTER_INFO_FILE_PATH"},
    {"profile-data-path", "PROFILE_DATA_PATH"},
    {"max-profiled-tp-degree", "MAX_PROFILED_TP"},
    {"max-profiled-batch-size", "MAX_PROFILED_BATCH_SIZE"},
    {"min-group-scale-variance", "SCALE_VARIANCE"},
    {"max-permute-len", "MAX_PERMUTE_LEN"},
    {"home-dir", "HOME_DIR"}};

// The path as it is, or from the directory of `file`, or from one above it.
std::string found(const std::string& path, const std::string& file) {
  std::error_code fault;
  if (fs::exists(path, fault) || fs::path(path).is_absolute()) return path;
  for (fs::path folder = fs::absolute(file, fault).parent_path();; folder = folder.parent_path()) {
    if (fs::exists(folder / path, fault)) return (folder / path).string();
    if (folder == folder.parent_path()) return path;
  }
}

std::string path_of(const ShellFlags& flags, const std::string& flag, const char* in_home,
                    const std::string& file) {
  std::string said = flags.text(flag, "");
  const std::string home = flags.text("home-dir", "");
  if (said.empty() && !home.empty()) said = (fs::path(home) / in_home).string();
  if (said.empty()) throw InputError(file, flags.spelled(flag) + " is missing");
  std::string path = found(said, file);
  std::error_code fault;
  if (!fs::exists(path, fault))
    flags.fail(
        flag, fmt::format("there is no {}, neither here nor beside {}", said.substr(0, 200), file));
  return path;
}

int at_most(const ShellFlags& flags, const std::string& flag, int value, int most) {
  if (value > most) flags.fail(flag, fmt::format("must be at most {}, is {}", most, value));
  return value;
}

}  // namespace

MetisArguments read_metis_arguments(const std::string& path) {
  ShellFlags flags(path, read_text_file(path), '_');
  for (const auto& [flag, variable] : kVariables) flags.fill(flag, variable);
  MetisArguments a;
  a.where = path;
  const std::string size = flags.text("model-size", "");
  const std::string family = flags.text("model-name", "metis");
  a.name = family + (size.empty() ? "" : "-" + size);
  // What the script knows of the one size that it knows.
  const bool known = family == "GPT" && size == "1.5B";
  a.layers = at_most(flags, "num-layers", flags.required("num-layers"), kMostMetisLayers);
  if (a.layers < 3)
    flags.fail("num-layers", fmt::format("counts embedding and head: at least 3, is {}", a.layers));
  a.batch = at_most(flags, "gbs", flags.required("gbs"), kMostMetisBatch);
  a.hidden = known ? flags.size("hidden-size", 4096) : flags.required("hidden-size");
  a.sequence = known ? flags.size("sequence-length", 1024) : flags.required("sequence-length");
  a.vocabulary = known ? flags.size("vocab-size", 51200) : flags.required("vocab-size");
  a.heads = flags.size("attention-head-size", known && a.hidden == 4096 ? 32 : 0);
  a.hostfile = path_of(flags, "hostfile-path", "hostfile", path);
  a.clusterfile = path_of(flags, "clusterfile-path", "clusterfile.json", path);
  a.profile = path_of(flags, "profile-data-path", "profile", path);
  a.max_tensor = flags.size("max-profiled-tp-degree", 0);
  a.max_micro_batch = flags.size("max-profiled-batch-size", 0);
  a.group_scale_variance = flags.number("min-group-scale-variance", 1);
  if (a.group_scale_variance > 1)
    flags.fail("min-group-scale-variance", "must be from 0 to 1: no group can be above the mean");
  a.max_permute_len =
      at_most(flags, "max-permute-len", flags.size("max-permute-len", 0), kMostPermuteLength);
  return a;
}

LoadedModel metis_model(const MetisArguments& arguments, std::optional<int> sequence) {
  TransformerConfig config;
  config.name = arguments.name;
  config.layers = arguments.layers - 2;
  config.hidden = arguments.hidden;
  config.sequence = sequence.value_or(arguments.sequence);
  config.vocabulary = arguments.vocabulary;
  config.heads = arguments.heads;
  LoadedModel loaded;
  if (config.heads == 0) {
    const int width = config.hidden % 128 == 0 ? 128 : config.hidden % 64 == 0 ? 64 : config.hidden;
    config.heads = config.hidden / width;
    loaded.warnings.push_back(fmt::format("{}: no --attention_head_size: {} heads are assumed",
                                          arguments.where, config.heads));
  }
  if (const std::string fault = fault_of(config); !fault.empty())
    throw InputError(arguments.where, fault);
  loaded.model = build_transformer(config);
  return loaded;
}

}  // namespace plait
