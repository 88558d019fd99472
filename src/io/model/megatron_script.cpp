#include "io/model/megatron_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "io/format/shell_flags.h"
#include "io/format/text_file.h"
#include "io/model/megatron_flags.h"
#include "io/shell/script_tokens.h"
#include "io/shell/shell_script.h"

namespace plait {
namespace {

namespace fs = std::filesystem;

// A file that the script includes, from its own folder.
std::optional<std::string> included(const std::string& script, const std::string& path) {
  const fs::path place = fs::path(path).is_absolute() || script == "-"
                             ? fs::path(path)
                             : fs::path(script).parent_path() / path;
  std::error_code error;
  if (!fs::is_regular_file(place, error)) return std::nullopt;
  try {
    std::string text = read_text_file(place.string());
    if (text.size() > kMostScriptBytes) return std::nullopt;
    return text;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

// Whether the words say what network is trained, or are all flags.
bool trains(const std::vector<std::string>& words) {
  return words.front().starts_with("--") || std::ranges::any_of(words, [](const std::string& word) {
           return word.starts_with("--") && has_megatron_flags(word);
         });
}

// As ShellFlags reads it back.
std::string quoted(const std::string& word) {
  std::string out = word;
  const char quote = out.find('\'') == out.npos ? '\'' : '"';
  std::erase(out, quote);
  return quote + out + quote;
}

std::string one_line(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += quoted(word) + " ";
  return out;
}

}  // namespace

MegatronScript read_megatron_script(const std::string& path, const std::string& text) {
  MegatronScript out{text, {}};
  if (text.size() > kMostScriptBytes) return out;  // refused where it is read as a list of flags
  ScriptCommands commands;
  std::error_code error;
  const std::string own = path == "-" ? "" : fs::absolute(path, error).lexically_normal().string();
  try {
    commands = commands_of(
        text, [&](const std::string& file) { return included(path, file); }, own);
  } catch (const ScriptFault& fault) {
    out.warnings.push_back(
        fmt::format("line {} cannot be followed ({}): all flags are taken, whatever conditions say",
                    fault.line, fault.what));
    return out;
  }
  std::string line;
  int first = 0;  // line of the first training
  for (const auto& command : commands.commands) {
    if (!trains(command.words)) continue;
    const std::string words = one_line(command.words);
    const bool flags = command.words.front().starts_with("--");  // one line of several
    if (first > 0 && !flags && words != line)
      throw InputError(path, fmt::format("starts trainings that differ, in lines {} and {}: leave "
                                         "the one that is meant",
                                         first, command.line));
    if (flags)
      line += words;
    else
      line = words, first = command.line;
  }
  if (line.empty()) return {text, std::move(commands.warnings)};
  return {line, std::move(commands.warnings)};
}

}  // namespace plait
