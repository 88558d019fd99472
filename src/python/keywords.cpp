#include "python/keywords.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "base/error.h"
#include "cli/flags/field_flags.h"
#include "cli/flags/other_words.h"
#include "io/format/json_reader.h"

namespace plait {
namespace {

bool is_keyword(const std::string& name) { return name.starts_with("--"); }

// All spellings of all flags, and the flag that each stands for.
std::map<std::string, const Flag*, std::less<>> spellings_of(const std::vector<FlagGroup>& groups) {
  std::map<std::string, const Flag*, std::less<>> spellings;
  for (const FlagGroup& group : groups)
    for (const Flag& flag : group.flags) {
      if (is_keyword(flag.name)) spellings.emplace(keyword_of(flag.name), &flag);
      for (const std::string& other : flag.hidden) spellings.emplace(keyword_of(other), &flag);
    }
  return spellings;
}

[[noreturn]] void refuse_unknown_keyword(const std::string& name,
                                         const std::vector<FlagGroup>& groups) {
  std::vector<std::string> known;
  for (const KeywordEntry& entry : keyword_entries(groups)) {
    known.push_back(entry.name);
    known.insert(known.end(), entry.aliases.begin(), entry.aliases.end());
  }
  std::string flag = "--" + name;
  std::ranges::replace(flag, '_', '-');
  const std::string other = in_keywords(said_otherwise(groups, flag));
  throw InputError(name,
                   "is not an argument of this function" +
                       (other.empty() ? suggestion(name, {known.begin(), known.end()}) : other));
}

void set_flag(const Flag& flag, const std::string& name, const KeywordValue& value) {
  const bool is_switch = flag.value.empty();
  if (std::holds_alternative<bool>(value) != is_switch)
    throw InputError(name, is_switch
                               ? "is True or False"
                               : fmt::format("needs a value ({}), not True or False", flag.value));
  if (is_switch) return flag.set(name, "");
  if (const auto* text = std::get_if<std::string>(&value)) return flag.set(name, *text);
  const auto& texts = std::get<std::vector<std::string>>(value);
  if (texts.empty()) throw InputError(name, "is empty");
  if (!flag.repeats) return flag.set(name, fmt::format("{}", fmt::join(texts, ",")));
  for (const std::string& text : texts) flag.set(name, text);
}

// A keyword that stands for a flag, with the name that the user gave it.
struct Given {
  const Flag* flag;
  std::string name;
  KeywordValue value;
};

void check_required(const std::vector<FlagGroup>& groups,
                    const std::map<const Flag*, std::string>& names) {
  std::set<std::string> given;
  for (const auto& [flag, name] : names) given.insert(flag->name);
  for (const FlagGroup& group : groups)
    for (const Flag& flag : group.flags)
      if (flag.required && is_keyword(flag.name) && !given.contains(flag.name) &&
          std::ranges::none_of(flag.unless, [&](const auto& name) { return given.contains(name); }))
        throw InputError(keyword_of(flag.name), "is missing: " + in_keywords(flag.help));
}

}  // namespace

std::string keyword_of(std::string_view flag) {
  std::string name(flag.substr(std::min(flag.find_first_not_of('-'), flag.size())));
  std::ranges::replace(name, '-', '_');
  return name;
}

void set_keywords(const std::vector<FlagGroup>& groups, const Keywords& keywords) {
  const auto spellings = spellings_of(groups);
  std::vector<Given> all;
  std::map<const Flag*, std::string> names;
  for (const auto& [name, value] : keywords) {
    auto found = spellings.find(name);
    if (found == spellings.end()) refuse_unknown_keyword(name, groups);
    KeywordValue meant = value;
    if (const bool* yes = std::get_if<bool>(&value); yes && !*yes && found->second->value.empty()) {
      found = spellings.find("no_" + name);
      if (found == spellings.end()) continue;
      meant = true;
    }
    const auto [before, is_new] = names.emplace(found->second, name);
    if (!is_new)
      throw InputError(name, fmt::format("is the same as {}, which is also given", before->second));
    all.push_back({found->second, name, std::move(meant)});
  }
  std::stable_partition(all.begin(), all.end(),
                        [](const Given& given) { return given.flag->early; });
  for (const Given& given : all) set_flag(*given.flag, given.name, given.value);
  check_required(groups, names);
}

std::string in_keywords(std::string_view text) {
  const std::string flags = in_flags(text);
  std::string out;
  for (std::size_t i = 0; i < flags.size();) {
    const bool starts =
        flags.compare(i, 2, "--") == 0 && i + 2 < flags.size() &&
        std::islower(static_cast<unsigned char>(flags[i + 2])) != 0 &&
        (i == 0 || std::string_view(" ('\"\n").find(flags[i - 1]) != std::string_view::npos);
    if (!starts) {
      out += flags[i++];
      continue;
    }
    std::size_t end = i + 2;
    while (end < flags.size() &&
           (std::isalnum(static_cast<unsigned char>(flags[end])) != 0 || flags[end] == '-'))
      ++end;
    out += keyword_of(std::string_view(flags).substr(i, end - i));
    i = end;
  }
  return out;
}

std::vector<KeywordEntry> keyword_entries(const std::vector<FlagGroup>& groups) {
  std::vector<KeywordEntry> entries;
  for (const FlagGroup& group : groups)
    for (const Flag& flag : group.flags) {
      if (!is_keyword(flag.name)) continue;
      KeywordEntry entry{.name = keyword_of(flag.name),
                         .aliases = {},
                         .value = flag.value,
                         .help = in_keywords(flag.help),
                         .repeats = flag.repeats};
      for (const std::string& other : flag.hidden) entry.aliases.push_back(keyword_of(other));
      entries.push_back(std::move(entry));
    }
  return entries;
}

}  // namespace plait
