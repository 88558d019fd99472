#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>
#include <vector>

#include "base/error.h"
#include "cli/flags/command.h"
#include "cli/flags/other_words.h"
#include "io/format/json_reader.h"

namespace plait {
namespace {

const Flag* flag_named(const Command& command, const std::string& name) {
  for (const FlagGroup& group : command.groups)
    for (const Flag& flag : group.flags)
      if (flag.name == name || std::ranges::find(flag.hidden, name) != flag.hidden.end())
        return &flag;
  return nullptr;
}

// Adds one spelling of a flag to the parser. `given` is the spelling that was used, "" = none yet.
void add_spelling(CLI::App& app, const Command& command, const Flag& flag, const std::string& names,
                  std::string& given) {
  const bool positional = !names.starts_with('-');
  const std::string shown = names.substr(names.find("--") == names.npos ? 0 : names.find("--"));
  const auto take = [&command, &flag, &given, shown,
                     positional](const std::vector<std::string>& texts) {
    if (!flag.repeats && (!given.empty() || texts.size() > 1))
      throw InputError(shown, given.empty() || given == shown
                                  ? "is given twice"
                                  : fmt::format("is the same as {}, which is also given", given));
    given = shown;
    for (const std::string& text : texts) {
      // "--qlora --seq 2k": the value was forgotten.
      if (!positional && flag_named(command, text.substr(0, text.find('='))) != nullptr)
        throw InputError(shown, fmt::format("needs a value: {}", flag.help));
      flag.set(shown, text);
    }
    return true;
  };
  if (flag.value.empty() && !positional) {
    app.add_flag_function(
        names,
        [take](std::int64_t count) {
          take(std::vector<std::string>(static_cast<std::size_t>(count)));
        },
        "");
  } else {
    constexpr int kMostWords = 1000;
    app.add_option(names, take, "")
        ->expected(1, positional && flag.repeats ? kMostWords : 1)
        ->allow_extra_args(positional && flag.repeats)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
}

std::vector<std::string_view> known_flags(const Command& command) {
  std::vector<std::string_view> known{"--help"};
  for (const FlagGroup& group : command.groups)
    for (const Flag& flag : group.flags) {
      if (flag.name.starts_with('-')) known.push_back(flag.name);
      known.insert(known.end(), flag.hidden.begin(), flag.hidden.end());
    }
  return known;
}

bool is_switch(const Command& command, const std::string& name) {
  for (const FlagGroup& group : command.groups)
    for (const Flag& flag : group.flags)
      if (flag.name == name || std::ranges::find(flag.hidden, name) != flag.hidden.end())
        return flag.value.empty();
  return false;
}

[[noreturn]] void refuse_word(const Verb& verb, const Command& command, const std::string& word) {
  const std::string more = fmt::format("; plait {} --help lists what there is", verb.name);
  if (!word.starts_with('-'))
    throw InputError(
        word, fmt::format("is one word too many{}{}", word_otherwise(command.groups, word), more));
  const std::string name = word.substr(0, word.find('='));
  const std::string other = said_otherwise(command.groups, name);
  throw InputError(
      name, fmt::format("is not a flag of plait {}{}{}", verb.name,
                        other.empty() ? suggestion(name, known_flags(command)) : other, more));
}

// "--global-batch 4M tokens" as "--global-batch 4Mtokens", "4 M tokens" too.
void join_units(const Command& command, std::vector<std::string>& words) {
  for (std::size_t i = 0; i + 1 < words.size();) {
    const bool joined = words[i].starts_with("--") && words[i].find('=') != words[i].npos;
    const std::string& name = joined || i == 0 ? words[i] : words[i - 1];
    const Flag* flag = flag_named(command, name.substr(0, name.find('=')));
    if (flag == nullptr || std::ranges::find(flag->units, words[i + 1]) == flag->units.end()) {
      ++i;
      continue;
    }
    words[i] += words[i + 1];
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
}

}  // namespace

bool parse_flags(const Verb& verb, const Command& command, std::vector<std::string> words) {
  if (std::ranges::any_of(words, [](const std::string& w) { return w == "--help" || w == "-h"; }))
    return true;
  for (std::string& word : words) {
    if (!word.starts_with("--")) continue;
    const std::size_t end = std::min(word.find('='), word.size());
    std::replace(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(end), '_', '-');
    if (end < word.size() && is_switch(command, word.substr(0, end)))
      throw InputError(word.substr(0, end), "takes no value");
    if (end + 1 == word.size()) throw InputError(word.substr(0, end), "is empty");
  }
  join_units(command, words);
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::size_t flag_count = 0;
  for (const FlagGroup& group : command.groups) flag_count += group.flags.size();
  std::vector<std::string> given(flag_count);
  // Values are set in the order in which flags are added, not in that of the words.
  for (const bool early : {true, false}) {
    std::size_t place = 0;
    for (const FlagGroup& group : command.groups)
      for (const Flag& flag : group.flags) {
        std::string& spelling = given[place++];
        if (flag.early != early) continue;
        add_spelling(app, command, flag,
                     flag.letter.empty() ? flag.name : flag.letter + "," + flag.name, spelling);
        for (const std::string& alias : flag.hidden)
          add_spelling(app, command, flag, alias, spelling);
      }
  }
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::Error& error) {
    std::string text = error.what();
    const std::size_t colon = text.find(':');
    if (colon == text.npos) throw InputError("plait " + std::string(verb.name), text);
    throw InputError(text.substr(0, colon), "needs a value");
  }
  for (const std::string& word : app.remaining())
    if (word != "--") refuse_word(verb, command, word);
  std::set<std::string> used;
  std::size_t next = 0;
  for (const FlagGroup& group : command.groups)
    for (const Flag& flag : group.flags)
      if (!given[next++].empty()) used.insert(flag.name);
  for (const FlagGroup& group : command.groups)
    for (const Flag& flag : group.flags)
      if (flag.required && !used.contains(flag.name) &&
          std::ranges::none_of(flag.unless,
                               [&](const auto& other) { return used.contains(other); }))
        throw InputError(flag.name, fmt::format("is missing: {}", flag.help));
  return false;
}

}  // namespace plait
