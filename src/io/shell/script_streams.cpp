// What the commands of a script read and print, and the files that it takes in or writes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "io/shell/script_runner.h"

namespace plait {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostNumbers = 1'000;  // of seq and {1..9}

// printf, with %s and %d only.
std::optional<std::string> formatted(const std::vector<std::string>& words) {
  if (words.empty()) return std::nullopt;
  std::string out;
  std::size_t next = 1;
  do {
    const std::size_t before = next;
    const std::string& format = words[0];
    for (std::size_t i = 0; i < format.size(); ++i) {
      const char c = i + 1 < format.size() ? format[i + 1] : '\0';
      if (format[i] == '\\' && (c == 'n' || c == 't'))
        out += c == 'n' ? '\n' : '\t', ++i;
      else if (format[i] == '%' && (c == 's' || c == 'd'))
        out += next < words.size() ? words[next] : "", ++next, ++i;
      else if (format[i] == '%' && c == '%')
        out += '%', ++i;
      else if (format[i] == '%')
        return std::nullopt;
      else
        out += format[i];
    }
    if (next == before) break;
  } while (next < words.size());
  return out;
}

std::optional<std::vector<std::string>> numbers(long long first, long long last) {
  const long long step = first <= last ? 1 : -1;
  long long distance = 0;
  if (__builtin_sub_overflow(last, first, &distance) ||
      distance * step >= static_cast<long long>(kMostNumbers))
    return std::nullopt;
  std::vector<std::string> out;
  for (long long i = first; i != last + step; i += step) out.push_back(std::to_string(i));
  return out;
}

// Words apart at the characters between, of which blanks count as one.
std::vector<std::string> split(const std::string& text, const std::string& between) {
  std::vector<std::string> out;
  const bool blanks = between.find_first_not_of(" \t\n") == between.npos;
  std::string word;
  for (const char c : text) {
    if (between.find(c) == between.npos)
      word += c;
    else if (!blanks || !word.empty())
      out.push_back(std::exchange(word, ""));
  }
  if (!word.empty()) out.push_back(word);
  return out;
}

// Without "..", and without a slash at its end.
std::string plain(const fs::path& path) {
  std::string out = path.lexically_normal().string();
  if (out.size() > 1 && out.ends_with('/')) out.pop_back();
  return out;
}

}  // namespace

std::vector<std::string> in_braces(const std::string& raw, ScriptVariables& variables) {
  const std::size_t dots = raw.find("..");
  if (raw.starts_with('{') && raw.ends_with('}') && dots != raw.npos) {
    const auto first = arithmetic(raw.substr(1, dots - 1), variables);
    const auto last = arithmetic(raw.substr(dots + 2, raw.size() - dots - 3), variables);
    if (first && last)
      if (auto all = numbers(*first, *last)) return std::move(*all);
  }
  return expand_words(raw, variables);
}

ScriptRunner::ScriptRunner(const IncludedFile& included, ScriptCommands& out,
                           const std::string& path)
    : included_(included), out_(out) {
  variables_.script = path;
  if (!path.empty()) variables_.values["BASH_SOURCE"] = {path};
  variables_.printed_by = [this](const std::string& commands) { return printed_by(commands); };
}

std::string ScriptRunner::text_of(const Token& document) {
  if (document.literal) return document.text;
  return expand_text(document.text, variables_, !document.string);
}

std::vector<std::string> ScriptRunner::lines_of(const Token& document) {
  const std::string text = text_of(document);
  count(text);
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  std::ranges::reverse(lines);
  return lines;
}

// read [-ra] NAME.. of a document or a line of the loop's; -d '': of the whole document. What else
// is read, only a run tells.
ScriptStatus ScriptRunner::take(const std::vector<std::string>& words,
                                const std::vector<const Token*>& documents) {
  std::vector<std::string> names;
  bool whole = false;
  bool list = false;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const char option = words[i].back();
    if (!words[i].starts_with('-')) {
      names.push_back(words[i]);
    } else if (option == 'a') {
      list = true;
    } else if (std::string_view("dinNptu").find(option) != std::string_view::npos) {
      whole = whole || option == 'd';
      ++i;
    }
  }
  for (const std::string& name : names) variables_.values.erase(name);
  const auto separator = variables_.values.extract("IFS");  // IFS=, read ..
  if (names.empty()) return ScriptStatus::unknown;
  std::string text;
  if (!documents.empty()) {
    text = text_of(*documents.back());
    if (!whole) text.resize(std::min(text.find('\n'), text.size()));
  } else if (!lines_.empty()) {
    text = lines_.back();
    lines_.pop_back();
  } else {
    return ScriptStatus::unknown;
  }
  count(text);
  const bool own = !separator.empty() && !separator.mapped().empty();
  if (names.size() == 1 && !list) {
    variables_.values[names.front()] = {std::move(text)};
    return whole ? ScriptStatus::no : ScriptStatus::yes;
  }
  if (has_unknown(text)) return ScriptStatus::unknown;
  std::vector<std::string> parts = split(text, own ? separator.mapped().front() : " \t\n");
  if (list) {
    variables_.values[names.front()] = std::move(parts);
    return ScriptStatus::yes;
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool last = i + 1 == names.size();
    const auto begin = parts.begin() + static_cast<std::ptrdiff_t>(std::min(i, parts.size()));
    const auto end = last || begin == parts.end() ? parts.end() : begin + 1;
    variables_.values[names[i]] = {fmt::format("{}", fmt::join(begin, end, " "))};
  }
  return ScriptStatus::yes;
}

std::optional<std::string> ScriptRunner::printed_path(const std::vector<std::string>& words) const {
  const std::string& name = words.front();
  if (name == "pwd") return folder_.empty() ? std::nullopt : std::optional(folder_ + "\n");
  if (words.size() < 2 || has_unknown(words.back()) || words.back().empty()) return std::nullopt;
  const fs::path path(words.back());
  if (name == "dirname") {
    const std::string folder = path.parent_path().string();
    return (folder.empty() ? "." : folder) + "\n";
  }
  if (name == "basename") return path.filename().string() + "\n";
  const bool whole = name == "realpath" || (name == "readlink" && words[1].starts_with("-"));
  return whole && path.is_absolute() ? std::optional(plain(path) + "\n") : std::nullopt;
}

std::optional<std::string> ScriptRunner::printed(const std::vector<std::string>& words) {
  const std::string& name = words.front();
  std::vector<std::string> rest(words.begin() + 1, words.end());
  if (name == "echo") {
    const bool line = rest.empty() || rest.front() != "-n";
    while (!rest.empty() && is_one_of(rest.front(), {"-n", "-e", "-E"})) rest.erase(rest.begin());
    return fmt::format("{}{}", fmt::join(rest, " "), line ? "\n" : "");
  }
  if (name == "printf") {
    if (rest.size() > 2 && rest[0] == "-v" && is_variable_name(rest[1])) {
      const std::string variable = rest[1];
      rest.erase(rest.begin(), rest.begin() + (rest[2] == "--" ? 3 : 2));
      const auto text = formatted(rest);
      variables_.values.erase(variable);
      if (text) variables_.values[variable] = {*text};
      return std::string();
    }
    if (!rest.empty() && rest[0] == "--") rest.erase(rest.begin());
    return formatted(rest);
  }
  if (!printed_) return std::nullopt;
  if (name == "seq" && (rest.size() == 1 || rest.size() == 2)) {
    const auto first = rest.size() == 1 ? 1 : value_of_word(rest[0], variables_);
    const auto last = value_of_word(rest.back(), variables_);
    const auto all = first && last ? numbers(*first, *last) : std::nullopt;
    if (all && *first <= *last) return fmt::format("{}\n", fmt::join(*all, "\n"));
    return std::nullopt;
  }
  if (name == "expr") {
    const auto value = value_of_word(fmt::format("{}", fmt::join(rest, " ")), variables_);
    return value ? std::optional(std::to_string(*value) + "\n") : std::nullopt;
  }
  if (is_one_of(name, {"pwd", "dirname", "basename", "realpath", "readlink"}))
    return printed_path(words);
  return std::nullopt;
}

bool ScriptRunner::pipe(bool live) {
  if (!live || !printed_) return false;
  const bool sum = is_word("bc");
  std::string text = std::exchange(printed_->text, "");
  if (sum && printed_->known) {
    ++at_;
    while (text.ends_with('\n')) text.pop_back();
    const auto value = value_of_word(text, variables_);
    printed_->known = value.has_value();
    for (; !ended() && token().kind != TokenKind::mark; ++at_) printed_->known = false;
    if (value) printed_->text = std::to_string(*value);
    return true;
  }
  Printed elsewhere;  // of a filter that is not known
  Printed* const own = std::exchange(printed_, &elsewhere);
  command(true);
  printed_ = own;
  printed_->known = false;
  return true;
}

// In a shell of its own: what is set there is forgotten, and what is started is not the training.
std::optional<std::string> ScriptRunner::printed_by(const std::string& commands) {
  ScriptVariables kept = variables_;
  for (const auto& [name, values] : kept.values)
    for (const std::string& value : values) count(value);
  const std::size_t at = at_;
  const int depth = depth_;
  const Tokens tokens = tokens_;
  const Leaving leaving = leaving_;
  const std::string folder = folder_;
  const std::string unknown = unknown_;
  const std::size_t started = out_.commands.size();
  Printed printed;
  Printed* const outer = std::exchange(printed_, &printed);
  try {
    inside(commands);
  } catch (const ScriptFault&) {
    printed.known = false;
  }
  out_.commands.resize(started);
  printed_ = outer;
  unknown_ = unknown;
  folder_ = folder;
  leaving_ = leaving;
  tokens_ = tokens;
  depth_ = depth;
  at_ = at;
  variables_ = std::move(kept);
  while (printed.text.ends_with('\n')) printed.text.pop_back();
  if (!printed.known || has_unknown(printed.text)) return std::nullopt;
  return printed.text;
}

void ScriptRunner::change_folder(const std::vector<std::string>& words) {
  const std::string to = words.size() > 1 ? words.back() : "";
  const fs::path path =
      fs::path(to).is_absolute() || folder_.empty() ? fs::path(to) : folder_ / fs::path(to);
  folder_ = path.is_absolute() && !has_unknown(to) ? plain(path) : "";
}

// set -- WORD..: the script's own arguments from here on.
void ScriptRunner::set_arguments(const std::vector<std::string>& words) {
  const auto dashes = std::ranges::find(words, "--");
  if (dashes == words.end()) return;
  variables_.arguments = {dashes + 1, words.end()};
  variables_.arguments_known = true;
}

// bash FILE WORD.., sbatch FILE and ./FILE: a script that was written here, or stands beside.
bool ScriptRunner::script_file(const std::vector<std::string>& words) {
  auto file = words.begin();
  if (is_one_of(words.front(), {"bash", "sh", "sbatch", "qsub", "bsub"})) {
    file = std::find_if(words.begin() + 1, words.end(),
                        [](const std::string& word) { return !word.starts_with('-'); });
  } else if (!words.front().ends_with(".sh")) {
    return false;
  }
  if (file == words.end() || has_unknown(*file)) return false;
  std::optional<std::string> text;
  if (const auto own = written_.find(*file); own != written_.end())
    text = own->second;
  else if (included_ && file->ends_with("sh"))
    text = included_(*file);
  if (!text) return false;
  const ScriptVariables kept = variables_;
  variables_.arguments = {file + 1, words.end()};
  variables_.arguments_known = true;
  const Leaving leaving = leaving_;
  inside(*text);
  leaving_ = leaving;
  variables_ = kept;
  return true;
}

ScriptStatus ScriptRunner::include(const std::string& path, int line) {
  std::optional<std::string> text;
  if (const auto own = written_.find(path); own != written_.end()) text = own->second;
  if (!text && included_ && !has_unknown(path)) text = included_(path);
  std::string warning =
      fmt::format("line {}: '{}' is not read: there is no such file", line, path.substr(0, 60));
  // $(pwd)/env.sh: most scripts are started where they are.
  const std::size_t slash = has_unknown(path) ? path.rfind('/') : path.npos;
  if (!text && included_ && slash != path.npos && !has_unknown(path.substr(slash))) {
    text = included_(path.substr(slash + 1));
    if (text)
      warning = fmt::format("line {}: '{}' is taken from the script's own folder", line,
                            path.substr(0, 60));
  } else if (text) {
    warning.clear();
  }
  if (!warning.empty() && out_.warnings.size() < kMostScriptWarnings)
    out_.warnings.push_back(std::move(warning));
  if (!text) return ScriptStatus::unknown;
  inside(*text);
  if (leaving_ == Leaving::function) leaving_ = Leaving::no;
  return ScriptStatus::yes;
}

}  // namespace plait
