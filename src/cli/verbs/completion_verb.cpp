#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "cli/flags/command.h"
#include "cli/terminal/terminal.h"

namespace plait {
namespace {

std::string join(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

bool is_positional(const Flag& flag) { return !flag.name.starts_with('-'); }

// A sentence that can stand between single quotes, in zsh also between brackets.
std::string quotable(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c != '\'' && c != '[' && c != ']' && c != ':' && c != '\\') out += c;
  return out;
}

// The flags of a verb that are shown, in order.
std::vector<Flag> shown_flags(const Command& command) {
  std::vector<Flag> flags;
  for (const FlagGroup& group : command.groups)
    if (!group.title.empty()) flags.insert(flags.end(), group.flags.begin(), group.flags.end());
  return flags;
}

// A name from a list, or a file as well.
bool takes_file(const Flag& flag) {
  return flag.choices.empty() || flag.help.find("file") != flag.help.npos;
}

std::string bash_case(const Verb& verb) {
  std::vector<std::string> words;
  std::string values;
  std::string positional;
  bool files = true;  // as the positional argument
  for (const Flag& flag : shown_flags(verb.make())) {
    if (is_positional(flag)) {
      positional = flag.choices.empty() ? "" : join(flag.choices);
      files = takes_file(flag);
      continue;
    }
    words.push_back(flag.name);
    if (flag.value.empty()) continue;
    const std::string pattern = flag.letter.empty() ? flag.name : flag.letter + "|" + flag.name;
    values += fmt::format("        {}) words='{}'{} ;;\n", pattern, join(flag.choices),
                          takes_file(flag) ? "" : " files=''");
  }
  words.emplace_back("--help");
  return fmt::format(
      "    {})\n      case $previous in\n{}        *) words='{}'{}\n           [[ $current == -* "
      "]] "
      "&& words='{}' ;;\n      esac ;;\n",
      verb.name, values, positional, files ? "" : " files=''", join(words));
}

std::string bash_script() {
  std::vector<std::string> names;
  std::string cases;
  for (const Verb& verb : verbs()) {
    names.emplace_back(verb.name);
    cases += bash_case(verb);
  }
  return fmt::format(R"(# plait completion for bash: source <(plait completion bash)
_plait() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} words='' files=yes
  # --flag=value is three words to bash.
  if [[ $current == '=' ]]; then current=''
  elif [[ $previous == '=' ]]; then previous=${{COMP_WORDS[COMP_CWORD-2]}}; fi
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '{} --help' -- "$current"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
{}  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if [[ $files && $current != -* ]]; then COMPREPLY+=($(compgen -f -- "$current")); fi
}}
complete -o filenames -F _plait plait
)",
                     join(names), cases);
}

std::string zsh_script() {
  std::string names;
  std::string cases;
  for (const Verb& verb : verbs()) {
    names += fmt::format("    '{}:{}'\n", verb.name, quotable(verb.summary));
    cases += fmt::format("    {})\n      _arguments '--help[explain the verb]'", verb.name);
    for (const Flag& flag : shown_flags(verb.make())) {
      const std::string values =
          flag.choices.empty() ? "_files" : fmt::format("({})", join(flag.choices));
      const std::string lower = quotable(flag.value);
      if (is_positional(flag))
        cases += fmt::format(" \\\n        '1:{}:{}'", lower, values);
      else if (flag.value.empty())
        cases += fmt::format(" \\\n        '{}[{}]'", flag.name, quotable(flag.help));
      else
        cases += fmt::format(" \\\n        '{}[{}]:{}:{}'", flag.name, quotable(flag.help), lower,
                             values);
    }
    cases += " ;;\n";
  }
  return fmt::format(R"(#compdef plait
# plait completion for zsh: source <(plait completion zsh)
_plait() {{
  local -a verbs=(
{}  )
  if ((CURRENT == 2)); then
    _describe verb verbs
    return
  fi
  local verb=$words[2]
  shift words
  ((CURRENT--))
  case $verb in
{}  esac
}}
compdef _plait plait
)",
                     names, cases);
}

std::string fish_script() {
  std::string out =
      "# plait completion for fish: plait completion fish | source\n"
      "complete -c plait -e\n";
  for (const Verb& verb : verbs()) {
    out += fmt::format("complete -c plait -n __fish_use_subcommand -f -a {} -d '{}'\n", verb.name,
                       quotable(verb.summary));
    const std::string here =
        fmt::format("complete -c plait -n '__fish_seen_subcommand_from {}'", verb.name);
    for (const Flag& flag : shown_flags(verb.make())) {
      if (is_positional(flag)) {
        if (!flag.choices.empty()) out += fmt::format("{} -a '{}'\n", here, join(flag.choices));
        continue;
      }
      out += fmt::format("{} -l {} -d '{}'", here, flag.name.substr(2), quotable(flag.help));
      if (!flag.letter.empty()) out += " -s " + flag.letter.substr(1);
      if (!flag.choices.empty())
        out += fmt::format(" -x -a '{}'", join(flag.choices));
      else if (!flag.value.empty())
        out += " -r";
      out += "\n";
    }
  }
  return out;
}

int complete(const std::string& shell) {
  static const std::vector<std::string_view> shells{"bash", "zsh", "fish"};
  if (std::ranges::find(shells, shell) == shells.end()) refuse_choice("SHELL", shell, shells);
  print(shell == "bash" ? bash_script() : shell == "zsh" ? zsh_script() : fish_script());
  return kDone;
}

}  // namespace

Command completion_command() {
  const auto shell = std::make_shared<std::string>();
  Command command;
  command.groups = {{"Arguments",
                     {{.name = "SHELL",
                       .value = "SHELL",
                       .help = "bash, zsh or fish",
                       .set = into_text(*shell),
                       .choices = {"bash", "zsh", "fish"},
                       .required = true}}}};
  command.run = [shell] { return complete(*shell); };
  return command;
}

}  // namespace plait
