#include "io/model_json.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "io/huggingface.h"
#include "io/zoo.h"

namespace plait {
namespace {

namespace fs = std::filesystem;

// Where a name is a path: the file to read, or nothing when there is no such file.
std::optional<std::string> file_of(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error))
    return fs::exists(path, error) ? std::optional(path) : std::nullopt;
  const std::string inside = (fs::path(path) / "config.json").string();
  if (!fs::exists(inside, error)) throw InputError(path, "is a directory without a config.json");
  return inside;
}

bool looks_like_path(const std::string& text) {
  return text.find('/') != text.npos || text.ends_with(".json") || text.ends_with(".txt") ||
         text.ends_with(".sh");
}

}  // namespace

LoadedModel read_model(const JsonValue& root, std::optional<int> sequence) {
  TransformerReading reading = read_huggingface(root, sequence);
  return {build_transformer(reading.config), std::move(reading.warnings)};
}

LoadedModel load_model(const std::string& name_or_path, std::optional<int> sequence) {
  if (!looks_like_path(name_or_path))
    if (auto known = zoo_model(name_or_path, sequence)) return std::move(*known);
  if (const auto file = file_of(name_or_path)) return read_model(read_json_file(*file), sequence);
  if (looks_like_path(name_or_path)) throw InputError(name_or_path, "no such file");
  throw InputError("model " + name_or_path,
                   fmt::format("neither a file nor a known model{}; `plait models` lists them",
                               zoo_suggestion(name_or_path)));
}

}  // namespace plait
