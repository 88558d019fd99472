// The YAML that `accelerate config` writes: keys with one value each, some in a section.
#include "io/plan/accelerate_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <span>
#include <string_view>

#include "base/error.h"
#include "io/format/json_reader.h"
#include "plan/names.h"

namespace plait {
namespace {

constexpr int kMostProcesses = 1'000'000;

struct Entry {
  std::string where;  // "accelerate.yaml:7"
  std::string value;  // lower case, without quotes; "" begins a section
};

// "fsdp_config/fsdp_version": what the file says of it.
using Entries = std::map<std::string, Entry, std::less<>>;

std::string_view stripped(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// Without a comment, which begins the line or follows a blank.
std::string_view without_comment(std::string_view line) {
  for (std::size_t at = line.find('#'); at != line.npos; at = line.find('#', at + 1))
    if (at == 0 || line[at - 1] == ' ' || line[at - 1] == '\t') return line.substr(0, at);
  return line;
}

std::string plain_value(std::string_view value) {
  if (value.size() > 1 && (value.front() == '\'' || value.front() == '"') &&
      value.back() == value.front())
    value = value.substr(1, value.size() - 2);
  std::string out(value);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

// Keys that accelerate 1.15 takes. What is not named here changes neither time nor memory.
constexpr std::string_view kTopKeys[] = {"command_file",
                                         "commands",
                                         "compute_environment",
                                         "debug",
                                         "deepspeed_config",
                                         "distributed_type",
                                         "downcast_bf16",
                                         "dynamo_backend",
                                         "dynamo_config",
                                         "enable_cpu_affinity",
                                         "fp16",
                                         "fp8_config",
                                         "fsdp_config",
                                         "gpu_ids",
                                         "machine_rank",
                                         "main_process_ip",
                                         "main_process_port",
                                         "main_training_function",
                                         "megatron_lm_config",
                                         "mixed_precision",
                                         "mpirun_config",
                                         "num_machines",
                                         "num_processes",
                                         "parallelism_config",
                                         "rdzv_backend",
                                         "same_network",
                                         "tpu_env",
                                         "tpu_name",
                                         "tpu_use_cluster",
                                         "tpu_use_sudo",
                                         "tpu_vm",
                                         "tpu_zone",
                                         "use_cpu",
                                         "use_parallelism_config"};
constexpr std::string_view kFsdpKeys[] = {"fsdp_activation_checkpointing",
                                          "fsdp_activation_checkpointing_offload",
                                          "fsdp_auto_wrap_policy",
                                          "fsdp_backward_prefetch",
                                          "fsdp_cpu_ram_efficient_loading",
                                          "fsdp_forward_prefetch",
                                          "fsdp_ignored_modules",
                                          "fsdp_min_num_params",
                                          "fsdp_offload_params",
                                          "fsdp_reshard_after_forward",
                                          "fsdp_sharding_strategy",
                                          "fsdp_state_dict_type",
                                          "fsdp_sync_module_states",
                                          "fsdp_transformer_layer_cls_to_wrap",
                                          "fsdp_use_orig_params",
                                          "fsdp_version"};
constexpr std::string_view kMeshKeys[] = {"parallelism_config_cp_backend",
                                          "parallelism_config_cp_comm_strategy",
                                          "parallelism_config_cp_size",
                                          "parallelism_config_dp_replicate_size",
                                          "parallelism_config_dp_shard_size",
                                          "parallelism_config_sp_attn_implementation",
                                          "parallelism_config_sp_backend",
                                          "parallelism_config_sp_seq_length",
                                          "parallelism_config_sp_seq_length_is_variable",
                                          "parallelism_config_sp_size",
                                          "parallelism_config_tp_size"};

// A key that accelerate does not have would be left out in silence.
void check_key(const std::string& where, std::string_view section, const std::string& key) {
  const auto check = [&](std::span<const std::string_view> keys) {
    if (std::ranges::find(keys, key) != keys.end()) return;
    throw InputError(where, fmt::format("unknown key '{}'{}", key.substr(0, 80),
                                        suggestion(key, {keys.begin(), keys.end()})));
  };
  if (section.empty()) check(kTopKeys);
  if (section == "fsdp_config") check(kFsdpKeys);
  if (section == "parallelism_config") check(kMeshKeys);
}

// Collects the keys of a file.
struct EntryReader {
  Entries entries{};
  std::string section{};

  void take(const std::string& where, std::string_view bare, bool inside) {
    const std::size_t colon = bare.find(':');
    if (colon == bare.npos || colon == 0)
      throw InputError(where, "is not 'key: value', as in accelerate's files");
    std::string key = plain_value(stripped(bare.substr(0, colon)));
    const std::string_view value = stripped(bare.substr(colon + 1));
    const bool flow = value.starts_with('{');
    if (flow && !value.ends_with('}'))
      throw InputError(where, "'{' is not closed on its line: write one key a line");
    if (!inside) section = value.empty() || flow ? key : "";
    // Its own program puts the prefix before a key that has none.
    if (inside && section == "fsdp_config" && !key.starts_with("fsdp")) key = "fsdp_" + key;
    check_key(where, inside ? section : "", key);
    const std::string path = inside && !section.empty() ? fmt::format("{}/{}", section, key) : key;
    if (!entries.emplace(path, Entry{where, flow ? "" : plain_value(value)}).second)
      throw InputError(where, fmt::format("'{}' is there twice", key.substr(0, 80)));
    if (flow) take_flow(where, stripped(value.substr(1, value.size() - 2)));
  }

 private:
  // {key: value, key: value}
  void take_flow(const std::string& where, std::string_view list) {
    if (list.find_first_of("{}[]&*") != list.npos)
      throw InputError(where, "has a list within braces: write one key a line");
    while (!list.empty()) {
      const std::size_t comma = std::min(list.find(','), list.size());
      take(where, stripped(list.substr(0, comma)), true);
      list = stripped(list.substr(std::min(comma + 1, list.size())));
    }
  }
};

Entries read_entries(const std::string& name, std::string_view text) {
  EntryReader reader;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t newline = std::min(text.find('\n'), text.size());
    const std::string_view line = without_comment(text.substr(0, newline));
    text.remove_prefix(std::min(newline + 1, text.size()));
    const std::string_view bare = stripped(line);
    if (bare.empty() || bare == "---") continue;
    const std::string where = fmt::format("{}:{}", name, number);
    if (bare.starts_with("- ")) continue;  // a list: gpu_ids, commands for a TPU
    const std::size_t blanks = line.find_first_not_of(" \r");
    if (line[blanks] == '\t') throw InputError(where, "a tab is not YAML: put blanks before a key");
    reader.take(where, bare, blanks > 0);
  }
  return std::move(reader.entries);
}

const Entry* find(const Entries& entries, std::string_view key) {
  const auto found = entries.find(key);
  const bool said = found != entries.end() && !found->second.value.empty() &&
                    found->second.value != "null" && found->second.value != "none";
  return said ? &found->second : nullptr;
}

[[noreturn]] void refuse_entry(const Entry& entry, std::string_view key, std::string_view choices) {
  throw InputError(entry.where,
                   fmt::format("{} must be {}, is '{}'", key, choices, entry.value.substr(0, 40)));
}

bool flag_of(const Entries& entries, std::string_view key) {
  const Entry* entry = find(entries, key);
  if (entry == nullptr) return false;
  if (entry->value == "true" || entry->value == "yes") return true;
  if (entry->value != "false" && entry->value != "no") refuse_entry(*entry, key, "true or false");
  return false;
}

std::optional<int> count_of(const Entries& entries, std::string_view key) {
  const Entry* entry = find(entries, key);
  if (entry == nullptr) return std::nullopt;
  int value = 0;
  const char* end = entry->value.data() + entry->value.size();
  const auto [stop, error] = std::from_chars(entry->value.data(), end, value);
  if (stop != end || error != std::errc() || value < 1 || value > kMostProcesses)
    refuse_entry(*entry, key, fmt::format("a whole number from 1 to {}", kMostProcesses));
  return value;
}

// How FSDP 1 calls it, how FSDP 2 does, and the number of the former's enumeration.
void read_sharding(const Entries& entries, AccelerateConfig& out) {
  struct Strategy {
    std::string_view name;
    std::string_view number;
    ZeroStage zero;
    bool hybrid;
  };
  constexpr Strategy kStrategies[] = {
      {"full_shard", "1", ZeroStage::parameters, false},
      {"shard_grad_op", "2", ZeroStage::gradients, false},
      {"no_shard", "3", ZeroStage::off, false},
      {"hybrid_shard", "4", ZeroStage::parameters, true},
      {"hybrid_shard_zero2", "5", ZeroStage::gradients, true},
      {"true", "", ZeroStage::parameters, false},
      {"false", "", ZeroStage::gradients, false},
  };
  constexpr std::string_view kKeys[] = {"fsdp_config/fsdp_reshard_after_forward",
                                        "fsdp_config/fsdp_sharding_strategy"};
  out.layout.zero = ZeroStage::parameters;
  for (const std::string_view key : kKeys) {
    const Entry* entry = find(entries, key);
    if (entry == nullptr) continue;
    const auto named = std::ranges::find_if(kStrategies, [&](const Strategy& one) {
      return one.name == entry->value || (!one.number.empty() && one.number == entry->value);
    });
    if (named == std::end(kStrategies))
      refuse_entry(*entry, key.substr(key.find('/') + 1),
                   "true, false, FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD or "
                   "HYBRID_SHARD_ZERO2");
    out.layout.zero = named->zero;
    out.hybrid = named->hybrid;
    return;
  }
}

// The mesh of FSDP 2.
void read_mesh(const Entries& entries, AccelerateConfig& out) {
  const std::string section = "parallelism_config/parallelism_config_";
  for (const char* axis : {"tp", "cp", "sp"})
    if (const Entry* entry = find(entries, section + axis + "_size");
        entry != nullptr && count_of(entries, section + axis + "_size") != 1)
      throw InputError(entry->where, fmt::format("{}_size {}: plait has no words for FSDP2 with it",
                                                 axis, entry->value.substr(0, 40)));
  const int copies = count_of(entries, section + "dp_replicate_size").value_or(1);
  if (copies == 1) return;
  out.hybrid = true;
  out.zero_group = count_of(entries, section + "dp_shard_size").value_or(0);
}

void read_precision_of(const Entries& entries, const std::optional<Precision>& told,
                       Precision& out) {
  const Entry* entry = find(entries, "mixed_precision");
  if (entry == nullptr) {
    out = told.value_or(Precision::fp32);
    return;
  }
  const std::string& value = entry->value;
  out = value == "bf16"   ? Precision::bf16
        : value == "fp16" ? Precision::fp16
        : value == "fp8"  ? Precision::fp8
                          : Precision::fp32;
  if (out == Precision::fp32 && value != "no")
    refuse_entry(*entry, "mixed_precision", "no, fp16, bf16 or fp8");
  if (!told) return;
  const bool full = value == "no" && (*told == Precision::fp32 || *told == Precision::tf32 ||
                                      *told == Precision::pure_bf16);
  if (*told != out && !full)
    throw InputError(entry->where, fmt::format("mixed_precision is {}, and `precision` is {}: they "
                                               "must be the same",
                                               value, name_of(*told)));
  out = *told;
}

// What prices a training of which accelerate leaves the cutting to DeepSpeed.
std::string deepspeed_words(const Entries& entries) {
  const Entry* stage = find(entries, "deepspeed_config/zero_stage");
  if (stage == nullptr) return "its ds_config.json is read as `from` deepspeed";
  const Entry* states = find(entries, "deepspeed_config/offload_optimizer_device");
  const bool offloads = states != nullptr && states->value == "cpu";
  return fmt::format(
      "plait plan with `framework` deepspeed `zero` {}{}, `model`, `data`, `micro_batch` and "
      "`micro_batches` prices it",
      stage->value.substr(0, 40), offloads ? " `offload` 1" : "");
}

// Whether states are cut (FSDP) or replicas keep everything.
bool is_sharded(const std::string& name, const Entries& entries) {
  const Entry* kind = find(entries, "distributed_type");
  if (kind == nullptr)
    throw InputError(name, "is no configuration of accelerate: distributed_type is missing");
  if (kind->value == "fsdp") return true;
  if (kind->value == "multi_gpu" || kind->value == "no") return false;
  if (kind->value == "deepspeed")
    throw InputError(kind->where, "DeepSpeed trains, not FSDP: " + deepspeed_words(entries));
  throw InputError(kind->where, fmt::format("distributed_type {} is not read: FSDP, MULTI_GPU and "
                                            "NO are",
                                            kind->value.substr(0, 40)));
}

}  // namespace

AccelerateConfig read_accelerate_config(const std::string& name, const std::string& text,
                                        const DeepspeedFilled& filled) {
  const Entries entries = read_entries(name, text);
  AccelerateConfig out;
  out.layout.sizes = filled.sizes;
  if (is_sharded(name, entries)) {
    read_sharding(entries, out);
    read_mesh(entries, out);
  }
  if (flag_of(entries, "fsdp_config/fsdp_offload_params"))
    throw InputError(find(entries, "fsdp_config/fsdp_offload_params")->where,
                     kParametersInHostMemory);
  read_precision_of(entries, filled.precision, out.layout.precision);
  const bool recomputes = flag_of(entries, "fsdp_config/fsdp_activation_checkpointing");
  if (filled.recompute == Recompute::selective)
    throw InputError("`recompute`", "must be none or full with accelerate");
  if (recomputes && filled.recompute == Recompute::none)
    throw InputError(name, "says that activations are recomputed, and `recompute` is none");
  out.layout.recomputes = recomputes || filled.recompute == Recompute::full;
  out.machines = count_of(entries, "num_machines");
  out.processes = count_of(entries, "num_processes");
  return out;
}

}  // namespace plait
