#include <fmt/format.h>

#include "cli/flags/command.h"
#include "cli/terminal/terminal.h"

namespace plait {
namespace {

constexpr int kFlagColumns = 30;  // what stands before the explanations

constexpr std::string_view kProgramExamples =
    R"(  plait plan --model llama-2-7b --cluster 2xA100-80GB:8+4xV100-16GB:4 --global-batch 512
  plait plan --model gpt2-xl --cluster 4xT4:4 --global-batch 64 -o plan.json
  plait explain plan.json
)";

constexpr std::string_view kExitCodes =
    R"(    0  done
    1  a rank of plait train failed
    2  a flag or a file is wrong; the message names the place and the fix
    3  nothing fits, or the plan cannot be executed or written; the message says why
    4  a training of plait train diverges
   75  of one rank of plait train: another rank is gone
  130  stopped by Ctrl-C or the batch system
  134  an error of plait itself
)";

// "  --tp N               tensor-parallel degree", wrapped under itself.
std::string entry(const std::string& left, const std::string& right, const Style& style) {
  std::string out = "  " + left;
  const bool fits = static_cast<int>(left.size()) + 4 <= kFlagColumns;
  out += fits ? std::string(kFlagColumns - 2 - left.size(), ' ')
              : "\n" + std::string(kFlagColumns, ' ');
  return out + paragraph(right, style, kFlagColumns);
}

std::string spelled(const Flag& flag) {
  std::string out = flag.letter.empty() ? "" : flag.letter + ", ";
  out += flag.name;
  if (flag.name.starts_with('-') && !flag.value.empty()) out += " " + flag.value;
  return out;
}

// A summary as a sentence.
std::string sentence(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] -= 'a' - 'A';
  return text.ends_with('.') ? text : text + ".";
}

std::string usage_line(const Verb& verb, const Command& command) {
  std::string out = fmt::format("plait {}", verb.name);
  bool optional = false;
  for (const FlagGroup& group : command.groups)
    for (const Flag& flag : group.flags) {
      const bool several = flag.repeats && !flag.name.starts_with('-');
      if (flag.required) out += " " + spelled(flag) + (several ? " ..." : "");
      optional = optional || !flag.required;
    }
  return out + (optional ? " [flags]" : "");
}

}  // namespace

std::string verb_help(const Verb& verb) {
  const Style style = style_of(stdout);
  const Command command = verb.make();
  std::string out = usage_line(verb, command) + "\n\n";
  out += paragraph(sentence(std::string(verb.summary)), style);
  for (const FlagGroup& group : command.groups) {
    if (group.title.empty()) continue;
    out += "\n" + style.bold(group.title) + "\n";
    for (const Flag& flag : group.flags) out += entry(spelled(flag), flag.help, style);
  }
  out += "\n" + style.bold("Examples") + "\n" + std::string(verb.examples);
  return out;
}

std::string program_help() {
  const Style style = style_of(stdout);
  std::string out = paragraph(
      "plait finds the fastest way to train a neural network on the accelerators you have, and "
      "says what it will take before anybody rents a GPU.",
      style);
  out += "\nplait VERB [flags]\n\n" + style.bold("Verbs") + "\n";
  for (const Verb& verb : verbs())
    out += entry(std::string(verb.name), std::string(verb.summary), style);
  out += "\n" + style.bold("Examples") + "\n" + std::string(kProgramExamples);
  out += "\n" + style.bold("Exit codes") + "\n" + std::string(kExitCodes);
  out += "\nplait VERB --help explains a verb.\n";
  return out;
}

}  // namespace plait
