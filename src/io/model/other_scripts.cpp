#include "io/model/other_scripts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <initializer_list>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>

#include "base/printable.h"

namespace plait {
namespace {

// "per_device_train_batch_size" of "--per-device-train-batch-size"
std::string key_of(std::string_view word) {
  std::string key;
  for (const char c : word.substr(
           word.find_first_not_of('-') == word.npos ? word.size() : word.find_first_not_of('-')))
    key += c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return key;
}

std::string unquoted(std::string text) {
  std::erase_if(text, [](char c) { return c == '"' || c == '\'' || c == ','; });
  return text;
}

// Flags ("--key value", "--key=value") and lines ("key: value") alike; the last one counts.
class Settings {
 public:
  explicit Settings(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) take(line);
  }

  std::string text(std::initializer_list<std::string_view> keys) const {
    for (const std::string_view key : keys)
      if (const auto found = values_.find(key); found != values_.end() && !found->second.empty())
        return found->second;
    return "";
  }
  // A whole number of at least 1, or 0.
  int size(std::initializer_list<std::string_view> keys) const {
    const std::string value = text(keys);
    int number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    return error == std::errc() && end == value.data() + value.size() ? std::max(0, number) : 0;
  }
  bool flag(std::initializer_list<std::string_view> keys) const {
    return std::ranges::any_of(keys, [&](std::string_view key) {
      const auto found = values_.find(key);
      if (found == values_.end()) return false;
      const std::string value = key_of(found->second);
      return value != "false" && value != "no" && value != "0" && value != "null";
    });
  }

 private:
  void take(const std::string& line) {
    std::istringstream words(line);
    std::string before;  // a flag that waits for its value
    bool first = true;
    for (std::string word; words >> word; first = false) {
      if (word.starts_with('#')) return;
      const bool is_flag = word.starts_with("--") && word.size() > 2;
      const std::size_t cut = word.find('=');
      if (is_flag && cut != word.npos) {
        values_[key_of(word.substr(0, cut))] = unquoted(word.substr(cut + 1));
        before.clear();
      } else if (is_flag || (first && word.size() > 1 && word.ends_with(':'))) {
        before = key_of(is_flag ? word : word.substr(0, word.size() - 1));
        values_[before];
      } else if (!before.empty() && word != "\\") {
        values_[std::exchange(before, "")] = unquoted(word);
      }
    }
  }

  std::map<std::string, std::string, std::less<>> values_;
};

// `lora` 16 and the like.
void add_number(std::string& out, std::string_view field, int number) {
  if (number > 0) out += fmt::format(" `{}` {}", field, number);
}

int replicas_of(const Settings& said) {
  if (const int processes = said.size({"num_processes"}); processes > 0) return processes;
  const int here = said.size({"nproc_per_node", "num_gpus"});
  return here * std::max(1, said.size({"nnodes", "num_nodes", "num_machines"}));
}

// What the script says that the prediction needs, as fields of a request.
std::string fields_of(const Settings& said, bool counts_replicas) {
  const std::string model =
      said.text({"model_name_or_path", "base_model", "pretrained_model_name_or_path", "model_id",
                 "model_name", "model"});
  std::string out = fmt::format(" `model` {}", model.empty() ? "NAME" : printable(model));
  const int micro = said.size({"per_device_train_batch_size", "per_gpu_train_batch_size",
                               "train_micro_batch_size_per_gpu", "micro_batch_size",
                               "train_batch_size", "batch_size"});
  const int accumulated =
      said.size({"gradient_accumulation_steps", "accumulate_grad_batches", "grad_accum"});
  add_number(out, "micro_batch", std::max(1, micro));
  add_number(out, "micro_batches", std::max(1, accumulated));
  if (counts_replicas) {
    const int replicas = replicas_of(said);
    out += replicas > 0 ? fmt::format(" `data` {}", replicas) : " `data` GPUS";
  }
  if (said.flag({"bf16"}) || said.text({"mixed_precision", "precision"}).find("bf16") == 0)
    out += " `precision` bf16";
  else if (said.flag({"fp16"}) || said.text({"mixed_precision", "precision"}).find("fp16") == 0)
    out += " `precision` fp16";
  const std::string cut = said.text({"fsdp", "fsdp_sharding_strategy"});
  if (cut.find("full_shard") != cut.npos || cut.find("hybrid_shard") != cut.npos)
    out += " `zero` 3";
  if (cut.find("shard_grad_op") != cut.npos) out += " `zero` 2";
  if (said.flag({"gradient_checkpointing", "activation_checkpointing"})) out += " `recompute` full";
  add_number(out, "sequence",
             said.size({"max_seq_length", "max_length", "model_max_length", "sequence_len",
                        "cutoff_len", "block_size", "max_seq_len", "seq_length"}));
  const bool adapters = said.flag({"use_peft", "use_lora"}) ||
                        said.text({"adapter", "finetuning_type"}).find("lora") != std::string::npos;
  const int rank = said.size({"lora_r", "lora_rank", "lora_dim"});
  const bool four_bits = said.flag({"load_in_4bit"}) || said.size({"quantization_bit"}) == 4 ||
                         said.text({"adapter"}) == "qlora";
  if (adapters || rank > 0) add_number(out, four_bits ? "qlora" : "lora", rank > 0 ? rank : 16);
  return out;
}

}  // namespace

bool is_toml(std::string_view text) {
  const std::string_view line = text.substr(0, text.find_first_of("\r\n"));
  if (line.size() < 3 || line.front() != '[' || line.back() != ']') return false;
  return std::ranges::all_of(line.substr(1, line.size() - 2),
                             [](char c) { return c == '_' || c == '.' || (c >= 'a' && c <= 'z'); });
}

std::string of_another_program(const std::string& text) {
  if (is_toml(text))
    return "; files of TorchTitan's settings are not read: `model` NAME `framework` torchtitan "
           "says the same with `tensor`, `pipeline`, `context`, `zero`, `micro_batch`, "
           "`global_batch` and `sequence`";
  const auto has = [&](std::string_view word) { return text.find(word) != text.npos; };
  if (has("distributed_type:"))
    return "; this is a file of accelerate, which plait estimate reads as `from` fsdp, with "
           "`model`";
  const bool launches =
      has("torchrun") || has("accelerate launch") || has("deepspeed ") || has("torch.distributed");
  if (!launches && (has("import torch") || has("from transformers")))
    return "; programs are not read: what its trainer is told is `micro_batch`, `micro_batches`, "
           "`data`, `zero`, `recompute`, `precision` and `sequence`, beside `model` and "
           "`framework`";
  const bool recipe = has("model_name_or_path:") || has("base_model:");
  if (!launches && !recipe) return "";
  const Settings said(text);
  const bool cuts = !said.text({"fsdp", "fsdp_config", "fsdp_version"}).empty() || has("FSDP");
  std::string command;
  const std::string deepspeed =
      said.text({"deepspeed", "deepspeed_config", "deepspeed_config_file"});
  if (deepspeed.ends_with(".json"))
    command = fmt::format("plait estimate `from` deepspeed {}{}", printable(deepspeed),
                          fields_of(said, false));
  else if (const std::string file = said.text({"config_file"}); !file.empty())
    command =
        fmt::format("plait estimate `from` fsdp {}{}", printable(file), fields_of(said, false));
  else
    command = fmt::format("plait plan `framework` {}{}",
                          has("deepspeed") ? "deepspeed"
                          : cuts           ? "fsdp"
                                           : "ddp",
                          fields_of(said, true));
  return fmt::format("; what this {} trains is priced by {}", launches ? "script" : "recipe",
                     command);
}

}  // namespace plait
