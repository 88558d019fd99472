#include "io/model/load_model.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "io/model/huggingface/huggingface.h"
#include "io/model/megatron_flags.h"
#include "io/model/megatron_script.h"
#include "io/model/other_scripts.h"
#include "io/model/plait_model.h"
#include "io/model/zoo.h"

namespace plait {
namespace {

namespace fs = std::filesystem;

// Where a name is a path: the file to read, or nothing when there is no such file.
std::optional<std::string> file_of(const std::string& path) {
  std::error_code error;
  if (path == "-") return path;
  if (!fs::is_directory(path, error))
    return fs::exists(path, error) ? std::optional(path) : std::nullopt;
  const std::string inside = (fs::path(path) / "config.json").string();
  if (!fs::exists(inside, error)) throw InputError(path, "is a directory without a config.json");
  return inside;
}

bool names_model_file(const std::string& text) {
  return text.find('/') != text.npos || text.ends_with(".json") || text.ends_with(".txt") ||
         text.ends_with(".sh");
}

LoadedModel built(TransformerReading reading) {
  return {build_transformer(reading.config), std::move(reading.warnings), {}};
}

// JSON begins with a brace; anything else can only be a command line.
LoadedModel read_model_file(const std::string& path, std::optional<int> sequence) {
  const std::string text = read_text_file(path);
  const std::size_t first = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (first == text.npos) throw InputError(path, "is empty");
  LoadedModel loaded;
  // A script may begin with a test, settings of TorchTitan with a table.
  if (text[first] == '[' && is_toml(text.substr(first)))
    throw InputError(path, "neither a model nor Megatron-LM flags" + of_another_program(text));
  if (text[first] == '{' || (text[first] == '[' && !has_megatron_flags(text)))
    loaded = read_model(parse_json(path, text), sequence);
  else if (const MegatronScript script = read_megatron_script(path, text);
           has_megatron_flags(script.text)) {
    loaded = built(read_megatron_flags(path, script.text, sequence));
    loaded.launch = read_megatron_launch(path, script.text);
    loaded.warnings.insert(loaded.warnings.begin(), script.warnings.begin(), script.warnings.end());
  } else
    throw InputError(path,
                     "neither JSON (a config.json or a plait model file) nor Megatron-LM flags "
                     "(--num-layers ...)" +
                         of_another_program(script.text));
  return loaded;
}

}  // namespace

LoadedModel read_model(const JsonValue& root, std::optional<int> sequence) {
  if (!root.is_object())
    throw InputError(root.where(), "a model is an object: a config.json or a plait model file");
  if (root.find("plait_model")) return read_plait_model(root, sequence);
  if (root.find("pipe_parallel_size") || root.find("pipe-parallel-size"))
    throw InputError(root.where(),
                     "this is a configuration of GPT-NeoX, which is not read; its sizes as "
                     "Megatron-LM's flags are a model (--num-layers 44 --hidden-size 6144 "
                     "--num-attention-heads 64 --seq-length 2048 in a file), with `framework` "
                     "megatron-deepspeed");
  if (root.find("zero_optimization") || root.find("train_micro_batch_size_per_gpu"))
    throw InputError(
        root.where(),
        "this is a configuration of DeepSpeed, not a model: plait estimate reads it as "
        "`from` deepspeed, with `model`");
  return built(read_huggingface(root, sequence));
}

LoadedModel load_model(const std::string& name_or_path, std::optional<int> sequence) {
  if (is_json_text(name_or_path)) return read_model(parse_json("model", name_or_path), sequence);
  if (!names_model_file(name_or_path))
    if (auto known = zoo_model(name_or_path, sequence)) return std::move(*known);
  if (const auto file = file_of(name_or_path)) return read_model_file(*file, sequence);
  if (names_model_file(name_or_path)) {
    // The hub's spelling: "meta-llama/Llama-2-7b-hf".
    const std::string last = name_or_path.substr(name_or_path.rfind('/') + 1);
    if (auto known = zoo_model(last, sequence)) return std::move(*known);
    const bool is_file = last.ends_with(".json") || last.ends_with(".txt") || last.ends_with(".sh");
    if (is_file || name_or_path.starts_with('/') || name_or_path.starts_with('.'))
      throw InputError(name_or_path, "no such file");
    if (const std::string why = other_family_named(name_or_path); !why.empty())
      throw InputError("model " + name_or_path, why);
    throw InputError(name_or_path,
                     fmt::format("no such file, and no model of that name is known{}; "
                                 "the model's config.json is read as a file",
                                 zoo_suggestion(last)));
  }
  if (const std::string why = other_family_named(name_or_path); !why.empty())
    throw InputError("model " + name_or_path, why);
  throw InputError("model " + name_or_path,
                   fmt::format("neither a file nor a known model{}; `plait models` lists them, and "
                               "any Hugging Face config.json is read",
                               zoo_suggestion(name_or_path)));
}

}  // namespace plait
